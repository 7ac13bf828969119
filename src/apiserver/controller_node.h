// The node life cycle: who is silent for too long is not ready, and its pods go elsewhere; pods of nodes that are gone go.
//
// Shape:   signs of life are renewed leases (kube-node-lease) and posted statuses, timed by when they were seen here. A node
//          that never had a lease is left alone.
// Units:   node_grace is the longest silence.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/{nodelifecycle,tainteviction,podgc} (behaviour).
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/controller_node_plan.h"
#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class NodeController {
 public:
  NodeController(Cluster& cluster, OwnerIndex& pods, base::Duration node_grace);
  void start();

 private:
  void on_lease(const kube::Object& before, const kube::Object& after);
  void on_node(const kube::Object& before, const kube::Object& after);
  void on_pod(const kube::Object& before, const kube::Object& after);
  void look_around();
  bool is_silent(const std::string& node) const;
  void sync(const std::string& name, Done done);
  void sync_taints(const std::string& name, Done done);
  void sync_pods(const std::string& name, Done done);
  Action mark_not_ready(const kube::Object& pod, json::Value status);
  Action evict(const kube::Object& node, const kube::Object& pod);
  void collect_pods(const std::string& name, Done done);
  Action force_delete(const kube::Object& pod);

  Cluster& cluster_;
  OwnerIndex& pod_index_;
  Cache& nodes_;
  Cache& leases_;
  Cache& pods_;
  const base::Duration grace_;
  std::unordered_map<std::string, base::Time> last_seen_;
  Reconciler queue_;
};

}  // namespace tessera::apiserver::controller
