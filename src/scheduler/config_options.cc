#include "scheduler/config_options.h"

#include <utility>

namespace tessera::scheduler {

queueing::EngineOptions engine_options(const SchedulerConfig& config) {
  queueing::EngineOptions out;
  out.scheduler.policy = config.policy;
  out.broken_after = config.broken_after;
  out.claim_timeout = config.claim_timeout;
  out.reservations_max = config.reservations_max;
  out.half_life = config.half_life;
  out.patience = config.patience;
  out.evictions = config.evictions;
  return out;
}

Scheduler::Options scheduler_options(const SchedulerConfig& config) {
  Scheduler::Options out;
  out.names = config.scheduler_names;
  out.policy = config.policy;
  out.engine = engine_options(config);
  out.binds_in_flight_max = static_cast<size_t>(config.binds_in_flight_max);
  out.explain_period = config.explain_period;
  out.volume_timeout = config.volume_timeout;
  if (config.shard) {
    out.shard_key = config.shard->key;
    out.shard_value = config.shard->value;
  }
  return out;
}

kube::LeaderElection::Options leader_options(const SchedulerConfig& config, std::string identity) {
  const SchedulerConfig::LeaderElection& from = config.leader_election;
  kube::LeaderElection::Options out;
  out.ns = from.ns.empty() ? std::string(kLeaseNamespace) : from.ns;
  out.name = from.name;
  out.identity = std::move(identity);
  out.lease_duration = from.lease_duration;
  out.renew_deadline = from.renew_deadline;
  out.retry_period = from.retry_period;
  out.request_timeout = request_timeout(from);
  return out;
}

}  // namespace tessera::scheduler
