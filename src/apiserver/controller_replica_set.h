// The ReplicaSet controller: as many pods as wanted, no more at any time.
//
// Shape:   plan_replica_set and replica_set_status are pure; ReplicaSetController carries them out. A plan starts from a
//          cache that knows the outcome of every earlier write (controllers_cluster.h), so nothing is made twice.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/replicaset (behaviour).
#pragma once

#include <vector>

#include "apiserver/controllers_pod_control.h"
#include "kube/job.h"

namespace tessera::apiserver::controller {

struct ReplicaSetPlan {
  std::vector<kube::Object> adopt;
  std::vector<kube::Object> release;
  size_t create = 0;
  std::vector<kube::Object> remove;
};

// `owned` are the set's pods, `orphans` those of its namespace without a controller.
ReplicaSetPlan plan_replica_set(const kube::ReplicaSet& set, const std::vector<kube::Object>& owned,
                                const std::vector<kube::Object>& orphans);
// `failure`: why pods could not be made or deleted; empty: they could.
json::Value replica_set_status(const kube::ReplicaSet& set, const json::Value& before,
                               const std::vector<kube::Object>& owned, base::Time now,
                               std::string_view failure);

class ReplicaSetController {
 public:
  ReplicaSetController(Cluster& cluster, OwnerIndex& index);
  void start() { queue_.enqueue_all(sets_); }

 private:
  void on_pod(const kube::Object& before, const kube::Object& after);
  void enqueue_matching(const kube::Object& orphan);
  void sync(const std::string& key, Done done);
  void carry_out(const kube::Object& object, const kube::ReplicaSet& set, Done done);
  void report(const std::string& key, const base::Status& outcome, const Done& done);

  Cluster& cluster_;
  OwnerIndex& index_;
  Cache& sets_;
  Cache& pods_;
  Reconciler queue_;
};

}  // namespace tessera::apiserver::controller
