// How much of each resource a pod takes from its node, and its quality-of-service class.
//
// Shape:   walk the init containers in order and keep the sum of the sidecars begun so far; an
//          ordinary init container needs that sum and its own; the pod needs the most of those and
//          of all sidecars with all containers, then its overhead. Requests given for the pod as a
//          whole (cpu, memory, hugepages) replace the sums.
// Source:  k8s.io/component-helpers v0.36.3 resource/helpers.go; pkg/apis/core/v1/helper/qos;
//          cases/C13.
#pragma once

#include <string_view>

#include "kube/pod.h"

namespace tessera::kube {

ResourceList pod_requests(const Pod& pod);
ResourceList pod_limits(const Pod& pod);
// "Guaranteed", "Burstable" or "BestEffort".
std::string_view qos_class(const Pod& pod);

}  // namespace tessera::kube
