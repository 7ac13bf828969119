// The DaemonSet controller: a pod on each node that fits, as controller_daemon_set_plan.h says.
//
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/daemon (behaviour).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apiserver/controller_daemon_set_plan.h"
#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class DaemonSetController {
 public:
  // `pods` indexes Pods by owner, `revisions` ControllerRevisions.
  DaemonSetController(Cluster& cluster, OwnerIndex& pods, OwnerIndex& revisions);
  void start() { queue_.enqueue_all(sets_); }

 private:
  using RevisionDone = std::function<void(base::Result<kube::Object>)>;

  void on_pod(const kube::Object& before, const kube::Object& after);
  void on_node(const kube::Object& before, const kube::Object& after);
  void on_revision(const kube::Object& before, const kube::Object& after);
  void enqueue_matching(const kube::Object& orphan);
  std::vector<DaemonNode> nodes() const;
  std::vector<kube::Object> pods_of(const DaemonSet& set) const;

  void sync(const std::string& key, Done done);
  void claim_pods(const DaemonSet& set, Done done);
  void settle(const DaemonSet& set, const Done& done);

  std::vector<kube::Object> revisions_of(const DaemonSet& set) const;
  void find_revision(const DaemonSet& set, RevisionDone done);
  void make_revision(const DaemonSet& set, int64_t number, RevisionDone done);
  void raise_collisions(const DaemonSet& set, const Done& done);
  void merge_revisions(const DaemonSet& set, const kube::Object& kept,
                       const std::vector<kube::Object>& equal, int64_t number, Done done);

  void carry_out(const DaemonSet& set, std::string_view hash, Done done);
  void carry_out_plan(const DaemonSet& set, std::string_view hash, const DaemonPlan& plan,
                      Done done);
  void report(const DaemonSet& set, const kube::Object& revision, const base::Status& outcome,
              const Done& done);

  Cluster& cluster_;
  OwnerIndex& pod_index_;
  OwnerIndex& revision_index_;
  Cache& sets_;
  Cache& pods_;
  Cache& revisions_;
  std::map<std::string, DaemonNode, std::less<>> nodes_;
  FailureBackoff backoff_;
  Reconciler queue_;
};

}  // namespace tessera::apiserver::controller
