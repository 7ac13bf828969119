// The garbage collector: what is owned goes with its owners.
//
// Shape:   knows for every kept object its owners by uid. Background: a dependent whose owners are all gone is deleted.
//          Foreground: an owner with the finalizer "foregroundDeletion" goes after the dependents that block it. Orphan: the
//          finalizer "orphan" cuts the dependents loose. An owner that the cache does not show is looked for in the API
//          before anything is deleted. Kinds of CustomResourceDefinitions join and leave while it runs.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/garbagecollector (behaviour).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

// How an owner of an object stands.
enum class OwnerState { kSolid, kGone, kGoing };  // kGoing: deleted in the foreground

struct GarbagePlan {
  enum class Act { kNothing, kDropReferences, kDelete, kDeleteForeground };
  Act act = Act::kNothing;
  std::vector<std::string> drop;  // uids of owners
};
// `owners`: uid and state of each owner.
GarbagePlan plan_garbage(const std::vector<std::pair<std::string, OwnerState>>& owners,
                         bool has_dependents);

class GarbageCollector {
 public:
  GarbageCollector(Cluster& cluster, const Kinds& kinds);
  void start();

 private:
  struct Item {
    Cache* cache = nullptr;
    kube::Object object;
  };
  using Owners = std::vector<std::pair<std::string, OwnerState>>;

  std::string id_of(size_t cache, const kube::Object& object) const;
  Item resolve(const std::string& id) const;
  void on_change(size_t cache, const kube::Object& before, const kube::Object& after);
  void index(const std::string& id, const kube::Object& object, bool add);
  void enqueue_going_owners(const kube::Object& dependent);
  std::string owner_key(const kube::Object& dependent, const json::Value& reference,
                        const Cache& owners) const;
  bool is_known(const kube::Object& dependent, const json::Value& reference) const;
  bool any_unknown(const kube::Object& object) const;
  void sync(const std::string& id, Done done);
  void look_up(const kube::Object& object, std::function<void(base::Result<Owners>)> done);
  void act(const std::string& id, const GarbagePlan& plan, Done done);
  void orphan(const Item& item, Done done);
  void foreground(const Item& item, Done done);
  void drop_members(const Item& item, const char* field,
                    const std::function<bool(const json::Value&)>& goes, Done done);
  void drop_finalizer(const Item& item, std::string_view finalizer, Done done);
  void drop_references(const Item& item, const std::vector<std::string>& uids, Done done);

  void watch(Cache& cache);
  void see_definition(const kube::Object& before, const kube::Object& after);

  Cluster& cluster_;
  const Kinds& kinds_;
  bool started_ = false;
  std::map<std::string, Cache*> customs_;  // by the name of the definition
  std::vector<Cache*> caches_;
  // Owner's uid to its dependents, each as "<number of its cache>|<key>".
  std::unordered_map<std::string, std::set<std::string>> dependents_;
  Reconciler queue_;
};

}  // namespace tessera::apiserver::controller
