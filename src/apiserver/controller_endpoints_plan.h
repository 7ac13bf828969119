// Where a Service leads: the EndpointSlices and the Endpoints of its pods, pure.
//
// Shape:   pods with an address that have not ended are endpoints; those whose named ports resolve alike share slices of at
//          most 100. Slices that are there keep the endpoints that they have.
// Source:  Kubernetes 1.36 pkg/controller/{endpointslice,endpoint}, k8s.io/endpointslice (behaviour). IPv4 alone; the time
//          of the last change is not noted.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "kube/object.h"

namespace tessera::apiserver::controller {

inline constexpr std::string_view kServiceName = "kubernetes.io/service-name";
inline constexpr std::string_view kSliceOwner = "endpointslice.kubernetes.io/managed-by";
inline constexpr std::string_view kSliceController = "endpointslice-controller.k8s.io";

// The Service has endpoints of its own: it selects pods and is no name of elsewhere.
bool leads_to_pods(const kube::Object& service);

struct Backend {
  kube::Object pod;
  std::string zone;  // of its node
};

struct SlicePlan {
  std::vector<json::Value> create;
  std::vector<json::Value> update;
  std::vector<kube::Object> remove;
};
SlicePlan plan_slices(const kube::Object& service, const std::vector<Backend>& backends,
                      const std::vector<kube::Object>& slices, base::Random& random);

// The Endpoints of the Service; null where `before` is right already.
json::Value plan_endpoints(const kube::Object& service, const std::vector<Backend>& backends,
                           const kube::Object& before);

}  // namespace tessera::apiserver::controller
