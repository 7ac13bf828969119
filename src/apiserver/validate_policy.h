// What Kubernetes demands of PodDisruptionBudgets, RuntimeClasses, PodTemplates and ReplicationControllers.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/{policy,node,core}/validation.
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

void validate_disruption_budget(const json::Value& object, FieldErrors& errors);
void validate_runtime_class(const json::Value& object, FieldErrors& errors);
void validate_runtime_class_update(const json::Value& object, const json::Value& before,
                                   FieldErrors& errors);
void validate_pod_template_object(const json::Value& object, FieldErrors& errors);
void validate_replication_controller(const json::Value& object, FieldErrors& errors);

}  // namespace tessera::apiserver
