// Keeps the EndpointSlices and the Endpoints of Services true to their pods.
//
// Shape:   which pods a Service selects is kept up change by change; a Service is planned anew where one of them, its node's
//          zone or one of its slices changed.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/{endpointslice,endpoint} (behaviour).
#pragma once

#include <map>
#include <set>
#include <string>

#include "apiserver/controller_endpoints_plan.h"
#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class EndpointsController {
 public:
  explicit EndpointsController(Cluster& cluster);
  void start();

 private:
  struct Selected {
    kube::StringMap selector;
    std::set<std::string> pods;  // keys
  };
  using ByName = std::map<std::string, Selected, std::less<>>;

  void on_service(const kube::Object& before, const kube::Object& after);
  void on_pod(const kube::Object& before, const kube::Object& after);
  void on_slice(const kube::Object& before, const kube::Object& after);
  void select(const kube::Object& service, Selected& selected);
  std::vector<Backend> backends_of(const kube::Object& service) const;
  std::vector<kube::Object> slices_of(const kube::Object& service) const;
  void sync(const std::string& key, Done done);
  void sync_gone(const std::string& key, Done done);

  Cluster& cluster_;
  Cache& services_;
  Cache& pods_;
  Cache& nodes_;
  Cache& slices_;
  Cache& endpoints_;
  std::map<std::string, ByName, std::less<>> selected_;  // by namespace
  Reconciler queue_;
};

}  // namespace tessera::apiserver::controller
