// The values that Kubernetes fills into Deployments, ReplicaSets, Jobs and Services.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/{apps,batch,core}/v1/defaults.go, pkg/registry/batch/job.
#pragma once

#include "json/value.h"

namespace tessera::apiserver {

void default_deployment(json::Value& object);
void default_replica_set(json::Value& object);
void default_job(json::Value& object);
// In spec.podFailurePolicy of a Job or a CronJob's template.
void default_failure_conditions(json::Value& spec);
// The selector by the job's uid and the labels that it selects, unless spec.manualSelector.
void generate_job_selector(json::Value& object);
void default_service(json::Value& object);

}  // namespace tessera::apiserver
