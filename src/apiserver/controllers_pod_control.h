// Making, deleting, taking over and letting go of pods, with the events that tell of it.
//
// Shape:   all pods of one call go out together, makings in growing batches, so that a refusal (a quota, say) costs few calls.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/controller_utils.go, controller_ref_manager.go (behaviour).
#pragma once

#include <functional>
#include <vector>

#include "apiserver/controllers_pods.h"
#include "kube/work_queue.h"

namespace tessera::apiserver::controller {

// For writes whose object nobody needs.
ObjectDone as_status(Done done);
// What is gone needs no change any more.
Done unless_gone(Done done);

// At most this many pods are made or deleted in one go.
inline constexpr size_t kBurstPods = 500;

// Keys of one controller, worked on once everything is listed.
class Reconciler {
 public:
  using Sync = kube::WorkQueue::Handler;
  Reconciler(Cluster& cluster, std::string name, Sync sync);
  void enqueue(std::string key);
  void enqueue_after(std::string key, base::Duration delay);
  void enqueue_all(const Cache& cache);
  int failures(const std::string& key) const { return queue_.failures(key); }

 private:
  Cluster& cluster_;
  kube::WorkQueue queue_;
};

// True where the refusal only says that the namespace goes away: nothing to retry.
bool is_namespace_terminating(const base::Error& error);

void create_pods(Cluster& cluster, const kube::Object& owner, std::vector<json::Value> pods,
                 Done done);
void delete_pods(Cluster& cluster, const kube::Object& owner, std::vector<kube::Object> pods,
                 Done done);
// Asks the API first whether the owner still stands: a taken pod of an owner that is gone would be collected.
// They get the finalizer, too, where one is named.
void adopt(Cluster& cluster, Cache& dependents, const Cache& owners, const kube::Object& owner,
           std::vector<kube::Object> objects, Done done, std::string_view finalizer = {});
void release(Cluster& cluster, Cache& dependents, const kube::Object& owner,
             std::vector<kube::Object> objects, Done done);
// Lets go of what the owner has and `mine` denies, then takes over what nobody has and `mine` accepts.
void claim(Cluster& cluster, Cache& dependents, const Cache& owners, const OwnerIndex& index,
           const kube::Object& owner, const std::function<bool(const kube::Object&)>& mine,
           Done done);
// Writes the status where it differs from the object's.
void write_status(Cluster& cluster, Cache& cache, const kube::Object& object, json::Value status,
                  Done done);

}  // namespace tessera::apiserver::controller
