// The cluster in memory: nodes with what is left of them, and the pods placed on them. It changes
// by the piece and is never rebuilt; every change is logged, so that whoever caches something per
// node looks only at nodes that changed.
//
// Shape:   nodes in slots, NodeId is the slot; the order of slots is the order in which ties
//          between nodes are broken. Pods in slots, PodId is the slot. A removed node's slot is
//          used again once its last pod has left it.
// Units:   as in node.h. Integers only; nothing wraps, nothing goes below zero.
// Errors:  none: callers hand in what check() accepted. Wrong ids are bugs and end the process.
// Threads: one writer (the scheduler's strand).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "scheduler/core/node.h"
#include "scheduler/core/pod_terms.h"

namespace tessera::scheduler::core {

struct PlacedPod {
  std::shared_ptr<const PodRequest> request;  // null: a free slot
  Placement placement;
  uint32_t index_on_node = 0;
};

class Cluster {
 public:
  Interner& names() { return names_; }
  const Interner& names() const { return names_; }

  NodeId add_node(NodeSpec spec);
  void update_node(NodeId id, NodeSpec spec);
  // The node takes nothing new and counts no more; its pods stay until they are removed.
  void remove_node(NodeId id);

  // Where a pod takes devices but `placement.devices` is 0, the least used devices of the node are
  // charged.
  PodId add_pod(std::shared_ptr<const PodRequest> request, Placement placement);
  void remove_pod(PodId id);
  // The devices that the node really gave, once they are known.
  void update_devices(PodId id, uint32_t devices);

  size_t node_slots() const { return loads_.size(); }
  size_t nodes() const { return nodes_present_; }
  size_t pods() const { return pods_present_; }
  bool present(NodeId id) const;
  const NodeSpec& spec(NodeId id) const { return state(id).spec; }
  const NodeLoad& load(NodeId id) const { return loads_[slot(id)]; }
  std::span<const NodeLoad> loads() const { return loads_; }
  std::span<const PodId> pods_on(NodeId id) const { return state(id).pods; }
  const PlacedPod& pod(PodId id) const;
  int64_t extended_free(NodeId id, ResourceId resource) const;

  std::shared_ptr<const TermCounts> term_counts(const PodTerm& term) const;
  const PodTerms& pod_terms() const { return terms_; }

  // Another number after every change of what nodes are, whatever stands on them.
  uint64_t specs_version() const { return specs_version_; }

  // Positions in the log of changed nodes. changed_since() calls visit(node, rules_changed) once
  // for each node that changed, and returns false where the log no longer reaches back to
  // `position`: then everything may have changed.
  uint64_t log_position() const { return log_begin_ + log_.size(); }
  template <class Visit>
  bool changed_since(uint64_t position, Visit visit) const {
    if (position < log_begin_) return false;
    for (uint64_t at = position; at < log_position(); ++at) {
      uint32_t node = log_[at - log_begin_];
      if (last_change_[node] != at) continue;
      visit(NodeId(static_cast<int32_t>(node)), last_rules_change_[node] >= position);
    }
    return true;
  }

  // A digest of nodes and pods that does not depend on how they came to be.
  uint64_t state_hash() const;

 private:
  friend class Txn;
  struct NodeState {
    NodeSpec spec;
    bool present = false;
    ExactSum cpu_used, memory_used, storage_used;
    int64_t pods_used = 0;
    std::vector<std::pair<ResourceId, ExactSum>> extended_used;
    std::array<int32_t, kGpusPerNodeMax> gpu_used{};
    std::array<int32_t, kGpusPerNodeMax + 1> class_pods{};
    std::vector<PodId> pods;
  };

  static size_t slot(NodeId id) { return static_cast<size_t>(id.value); }
  const NodeState& state(NodeId id) const;
  NodeState& state(NodeId id);
  void attach(PodId id);
  void detach(PodId id);
  void restore_pod(PodId id, std::shared_ptr<const PodRequest> request, Placement placement);
  void charge(NodeState& node, const PodRequest& request, const Placement& placement, int sign);
  uint32_t least_used_devices(const NodeState& node, int64_t count) const;
  void refresh(NodeId id, bool rules_changed);
  void log_change(NodeId id, bool rules_changed);
  void each_pod(const std::function<void(const PodRequest&, const Labels&)>& visit) const;

  Interner names_;
  std::vector<NodeState> states_;
  std::vector<NodeLoad> loads_;
  std::vector<NodeId> free_nodes_;
  std::vector<PlacedPod> pods_;
  std::vector<PodId> free_pods_;
  size_t nodes_present_ = 0;
  size_t pods_present_ = 0;
  mutable PodTerms terms_;  // asking for a new term counts it, which changes no answer
  std::vector<uint32_t> log_;
  uint64_t log_begin_ = 0;
  uint64_t specs_version_ = 1;
  std::vector<uint64_t> last_change_;
  std::vector<uint64_t> last_rules_change_;
};

}  // namespace tessera::scheduler::core
