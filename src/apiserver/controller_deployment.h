// The Deployment controller: moves pods from one ReplicaSet to the next as controller_deployment_plan.h says.
//
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/deployment (behaviour).
#pragma once

#include <vector>

#include "apiserver/controller_deployment_plan.h"
#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class DeploymentController {
 public:
  // `sets` indexes ReplicaSets by owner, `pods` Pods.
  DeploymentController(Cluster& cluster, OwnerIndex& sets, OwnerIndex& pods);
  void start() { queue_.enqueue_all(deployments_); }

 private:
  void on_set(const kube::Object& before, const kube::Object& after);
  void on_pod_gone(const kube::Object& pod);
  void enqueue_matching(const kube::Object& orphan);
  std::vector<OwnedSet> owned_sets(const kube::Object& object,
                                   const kube::Deployment& deployment) const;
  std::vector<kube::Object> to_adopt(const kube::Object& object,
                                     const kube::Deployment& deployment) const;
  bool old_pods_run(const std::vector<OwnedSet>& sets) const;
  void sync(const std::string& key, Done done);
  void carry_out(const kube::Object& object, const kube::Deployment& deployment, Done done);
  Action create_set(const kube::Object& object, const kube::Deployment& deployment,
                    int32_t replicas, int64_t revision);
  Action resize_set(const kube::Object& object, const kube::Deployment& deployment,
                    const OwnedSet& set, int32_t replicas);
  void annotate(const kube::Object& object, const kube::Deployment& deployment,
                const std::vector<OwnedSet>& sets, bool creates, std::vector<Action>& actions);
  void report(const std::string& key, const base::Status& outcome, const Done& done);

  Cluster& cluster_;
  OwnerIndex& set_index_;
  OwnerIndex& pod_index_;
  Cache& deployments_;
  Cache& sets_;
  Reconciler queue_;
};

}  // namespace tessera::apiserver::controller
