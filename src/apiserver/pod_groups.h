// PodGroup and Workload of scheduling.k8s.io/v1beta1: pods that are scheduled together, and templates of such groups.
//
// Shape:   as Kubernetes 1.37 has them with the gates GenericWorkload, TopologyAwareWorkloadScheduling and
//          PodGroupPreemptionPolicy on; what its other gates guard (claims of groups, groups of groups) is left out of what
//          is stored.
// Source:  k8s.io/kubernetes v1.37.0 pkg/registry/scheduling, pkg/printers/internalversion.
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

// The finalizer that keeps a group while it has pods (controller_pod_group.h).
inline constexpr const char* kGroupProtection = "scheduling.k8s.io/podgroup-protection";

void add_pod_group_kinds(Kinds& kinds);

// Among the built-in kinds.
bool is_pod_group(const Kind& kind);

}  // namespace tessera::apiserver
