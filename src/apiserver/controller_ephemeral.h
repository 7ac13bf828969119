// Claims of ephemeral volumes: a pod with one gets a claim "<pod>-<volume>" that belongs to it and goes with it.
//
// Errors:  a claim of that name that is not the pod's: event FailedBinding on the pod, tried again with back-off.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/volume/ephemeral (behaviour).
#pragma once

#include <string>

#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class EphemeralController {
 public:
  explicit EphemeralController(Cluster& cluster);
  void start();

 private:
  void enqueue(const kube::Object& pod);
  void sync(const std::string& key, Done done);
  Action claim_for(const kube::Object& pod, const json::Value& volume);

  Cluster& cluster_;
  Cache& pods_;
  Cache& claims_;
  kube::WorkQueue queue_;
};

}  // namespace tessera::apiserver::controller
