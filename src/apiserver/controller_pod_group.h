// PodGroups that still have pods stay: a group that is deleted keeps its finalizer until no pod that names it is active.
//
// Shape:   admission puts the finalizer on every group (pod_groups.h); this takes it off.
// Errors:  a write that fails is tried again with back-off.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.37 pkg/controller/scheduling/podgroupprotection (behaviour).
#pragma once

#include <map>
#include <set>
#include <string>

#include "apiserver/controllers_cluster.h"
#include "kube/work_queue.h"

namespace tessera::apiserver::controller {

class PodGroupController {
 public:
  explicit PodGroupController(Cluster& cluster);
  void start();

 private:
  void see_pod(const kube::Object& before, const kube::Object& after);
  void sync(const std::string& key, Done done);

  Cluster& cluster_;
  Cache& groups_;
  kube::WorkQueue queue_;
  std::map<std::string, std::set<std::string>> active_;  // keys of pods, by the key of their group
};

}  // namespace tessera::apiserver::controller
