// What must hold after every change of the cluster, checked from the objects alone.
//
// Shape:   see() takes each change of nodes and pods as a watch shows it; check() looks at the node it touched. Rules:
//          - no device id (whole GPU, MIG instance, replica) is in two unfinished pods at once;
//          - shares of one GPU add up to at most 1000 thousandths, and never beside a whole-GPU pod;
//          - requests of unfinished pods on a node stay within its capacity, for every resource;
//          - a pod never moves: nodeName once set stays;
//          - nothing new is bound to a node that has been cordoned for a while, nor to a device sick for a while;
//          - resource versions of one kind only grow (first sights come in any order).
// Errors:  kInternal with a sentence naming node, pods and device.
// Threads: one owner.
// Source:  docs/design.md, section 9.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "kube/client.h"
#include "kube/quantity.h"

namespace tessera::sim {

class Invariants {
 public:
  // `grace`: how long the components may act on what they knew before a cordon or a device failure.
  explicit Invariants(base::Duration grace) : grace_(grace) {}

  base::Status see_node(const kube::WatchEvent& event, base::Time now);
  base::Status see_pod(const kube::WatchEvent& event, base::Time now);
  base::Status see_version(std::string_view resource, const kube::WatchEvent& event);

  uint64_t bound() const { return bound_; }
  uint64_t finished() const { return finished_; }

 private:
  struct PodFacts {
    std::string uid;
    std::string node;
    kube::ResourceList requests;
    std::set<std::string> devices;
    std::map<int, int64_t> gpu_milli;
    bool finished = false;
    bool of_daemon = false;  // goes to cordoned nodes too
  };
  struct NodeFacts {
    kube::ResourceList capacity;
    bool present = false;
    bool cordoned = false;
    base::Time cordoned_at;
    std::map<int, base::Time> sick_since;
    std::set<std::string> pods;
  };

  void leave(const std::string& key, const PodFacts& pod);
  base::Status check_binding(const std::string& key, const PodFacts& pod, base::Time now) const;
  base::Status check_node(const std::string& node) const;
  base::Status check_devices(const std::string& name, const NodeFacts& node) const;
  base::Status check_resources(const std::string& name, const NodeFacts& node) const;

  base::Duration grace_;
  std::map<std::string, PodFacts> pods_;
  std::map<std::string, NodeFacts> nodes_;
  std::map<std::string, uint64_t, std::less<>> newest_;  // of each resource
  uint64_t bound_ = 0;
  uint64_t finished_ = 0;
};

}  // namespace tessera::sim
