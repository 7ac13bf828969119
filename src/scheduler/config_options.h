// A SchedulerConfig in the terms of the parts that it is for.
#pragma once

#include <string>

#include "kube/leader.h"
#include "scheduler/config.h"
#include "scheduler/queueing/engine.h"
#include "scheduler/scheduler.h"

namespace tessera::scheduler {

queueing::EngineOptions engine_options(const SchedulerConfig& config);
// All but `leader_election`; its engine is engine_options().
Scheduler::Options scheduler_options(const SchedulerConfig& config);
// Where no namespace is named, in kLeaseNamespace. Options that kube::validate() accepts, whatever parse_config has accepted.
kube::LeaderElection::Options leader_options(const SchedulerConfig& config, std::string identity);

}  // namespace tessera::scheduler
