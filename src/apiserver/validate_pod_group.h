// What Kubernetes demands of PodGroups and Workloads of scheduling.k8s.io/v1beta1.
//
// Shape:   an update is held to the rules for what it changes; most fields never change, the count of a gang may.
// Source:  k8s.io/kubernetes v1.37.0 pkg/apis/scheduling/{validation,v1beta1}.
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

void validate_pod_group(const json::Value& group, FieldErrors& errors);
void validate_pod_group_update(const json::Value& group, const json::Value& before,
                               FieldErrors& errors);
void validate_pod_group_status(const json::Value& group, const json::Value& before,
                               FieldErrors& errors);
// Named so because "workload" means Deployments and the like in validate_workload.h.
void validate_scheduled_workload(const json::Value& workload, FieldErrors& errors);
void validate_scheduled_workload_update(const json::Value& workload, const json::Value& before,
                                        FieldErrors& errors);
// metav1.Condition, as every newer status has them.
void validate_conditions(const json::Value& conditions, std::string_view at, FieldErrors& errors);

}  // namespace tessera::apiserver
