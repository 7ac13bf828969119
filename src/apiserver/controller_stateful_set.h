// The StatefulSet controller: pods with names of their own, one after the other, as controller_stateful_set_plan.h says.
//
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/statefulset (behaviour).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controller_stateful_set_plan.h"
#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class StatefulSetController {
 public:
  // `pods` indexes Pods by owner, `revisions` ControllerRevisions.
  StatefulSetController(Cluster& cluster, OwnerIndex& pods, OwnerIndex& revisions);
  void start() { queue_.enqueue_all(sets_); }

 private:
  using RevisionsDone = std::function<void(base::Result<StatefulRevisions>)>;

  void on_pod(const kube::Object& before, const kube::Object& after);
  void on_claim_gone(const kube::Object& claim);
  void enqueue_matching(const kube::Object& orphan);
  bool is_member(const StatefulSet& set, const kube::Object& pod) const;
  std::vector<kube::Object> pods_of(const StatefulSet& set) const;
  void sync(const std::string& key, Done done);
  void claim_pods(const StatefulSet& set, Done done);
  void settle(const StatefulSet& set, const Done& done);

  std::vector<kube::Object> revisions_of(const StatefulSet& set) const;
  void find_revisions(const StatefulSet& set, RevisionsDone done);
  void make_revision(const StatefulSet& set, int64_t number, int64_t collisions,
                     RevisionsDone done);
  StatefulRevisions with_current(const StatefulSet& set, kube::Object update,
                                 int64_t collisions) const;

  void carry_out(const StatefulSet& set, const StatefulRevisions& revisions, Done done);
  Action take_turn(const StatefulSet& set, const StatefulTurn& turn);
  Action make_claim(const StatefulSet& set, const kube::Object& pod, json::Value claim);
  Action own_claims(const StatefulSet& set, const kube::Object& pod, bool tell);
  Done told(const StatefulSet& set, std::string_view verb, const std::string& what, Done done);
  void tell_failure(const StatefulSet& set, std::string_view verb, const std::string& what,
                    const base::Error& error);
  void report(const StatefulSet& set, const StatefulRevisions& revisions,
              const base::Status& outcome, const Done& done);

  Cluster& cluster_;
  OwnerIndex& pod_index_;
  OwnerIndex& revision_index_;
  Cache& sets_;
  Cache& pods_;
  Cache& claims_;
  Cache& revisions_;
  Reconciler queue_;
};

}  // namespace tessera::apiserver::controller
