// The values that Kubernetes fills into StatefulSets, DaemonSets and CronJobs.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/{apps,batch}/v1 (defaults.go, conversion.go), pkg/registry/apps/daemonset.
#pragma once

#include "json/value.h"

namespace tessera::apiserver {

void default_stateful_set(json::Value& object);
void default_daemon_set(json::Value& object);
// How often the template changed stands in an annotation.
void prepare_new_daemon_set(json::Value& object);
void prepare_daemon_set_update(json::Value& object, const json::Value& before);
void default_cron_job(json::Value& object);

}  // namespace tessera::apiserver
