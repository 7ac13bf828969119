// The cluster as the API tells it: nodes and pods of the informers as slots of a core::Cluster.
//
// Shape:   one Tracked a pod, by "namespace/name". A pod holds its place from the moment it is assumed (or seen bound)
//          until it is finished or gone; a terminating pod still holds it.
// Threads: the scheduler's strand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/time.h"
#include "kube/object.h"
#include "scheduler/core/cluster.h"
#include "scheduler/translate.h"

namespace tessera::scheduler {

struct Tracked {
  kube::Object object;  // newest seen
  kube::Object asked;   // the one that `request` was read from
  std::string uid;
  std::shared_ptr<const core::PodRequest> request;  // null: could not be translated, see `problem`
  std::string problem;
  std::string waits_for;  // what has to happen to its claims before any node will do
  std::optional<core::PodId> placed;
  core::NodeId node;
  std::string node_name;  // of a pod seen bound
  bool assumed = false;   // placed by us, not yet seen bound
  uint64_t arrival = 0;
  int failures = 0;
  std::string told;  // the reason last written to the API
  base::Time told_at{INT64_MIN / 2};
  bool explain_due = false;  // a newer reason is to be worked out and written
};

class Mirror {
 public:
  core::Cluster& cluster() { return cluster_; }
  const core::Cluster& cluster() const { return cluster_; }

  // True when the change may make room: a node that is new or other than before.
  bool on_node(const kube::Object& before, const kube::Object& after);
  // Node with that slot; must be present.
  const NodeView& node(core::NodeId id) const { return nodes_.at(id); }
  std::string_view node_name(core::NodeId id) const { return names_.at(id); }
  size_t nodes() const { return nodes_.size(); }

  Tracked* find(const std::string& key);
  // Makes or refreshes the entry of a pod that the API shows.
  Tracked& track(const kube::Object& pod);
  // The pod is bound to `node_name`: charges it there, whatever was assumed before.
  void confirm(Tracked& pod, const std::string& node_name);
  void assume(Tracked& pod, const core::Placement& placement);
  // Gives back the place; true when it had one.
  bool release(Tracked& pod);
  // The pod is gone; true when that gave back a place.
  bool forget(const std::string& key);
  size_t assumed() const { return assumed_; }

 private:
  base::Result<core::PodRequest> request_of(const kube::Object& pod);
  void place_waiting_for(const std::string& node_name);

  core::Cluster cluster_;
  std::unordered_map<std::string, core::NodeId> by_name_;
  std::unordered_map<core::NodeId, NodeView> nodes_;
  std::unordered_map<core::NodeId, std::string> names_;
  std::unordered_map<std::string, Tracked> pods_;
  uint64_t arrivals_ = 0;
  size_t assumed_ = 0;
};

}  // namespace tessera::scheduler
