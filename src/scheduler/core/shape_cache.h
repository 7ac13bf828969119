// Per shape, the score of every node, kept in step with the cluster: a shape seen before costs only
// the nodes that changed since, a new one costs one pass.
//
// Shape:   Entry{shape, tree of scores, rules and preference per node, position in the cluster's
//          change log}; entries used longest ago go when the whole takes more than `bytes_max`.
// Threads: the scheduler's strand.
#pragma once

#include <memory>
#include <unordered_map>

#include "scheduler/core/filter.h"
#include "scheduler/core/policy.h"
#include "scheduler/core/score_tree.h"

namespace tessera::scheduler::core {

class ShapeCache {
 public:
  explicit ShapeCache(size_t bytes_max = size_t{48} << 20) : bytes_max_(bytes_max) {}
  // A copy starts empty: what it would hold belongs to another cluster.
  ShapeCache(const ShapeCache& other) : bytes_max_(other.bytes_max_) {}
  ShapeCache& operator=(const ShapeCache& other) {
    clear();
    bytes_max_ = other.bytes_max_;
    return *this;
  }

  struct Entry {
    Shape shape;
    ScoreTree tree;
    std::vector<int16_t> preference;  // kForbidden where a rule keeps the shape off
    uint64_t position = 0;
    uint64_t last_used = 0;
    const Cluster* cluster = nullptr;
    size_t bytes() const { return tree.bytes() + preference.capacity() * sizeof(int16_t) + 512; }
  };

  // The entry of a shape, brought up to date. Good until the next call.
  const Entry& get(const Cluster& cluster, const Shape& shape, const Scorer& scorer);
  // Forgets all scores: the scorer has changed.
  void clear();
  size_t size() const { return entries_.size(); }

 private:
  Entry& entry_for(const Shape& shape);
  static void rebuild(Entry& entry, const Cluster& cluster, const Scorer& scorer);
  static void update(Entry& entry, const Cluster& cluster, const Scorer& scorer);
  void shrink(const Entry& keep);

  size_t bytes_max_;
  size_t bytes_ = 0;
  uint64_t uses_ = 0;
  std::unordered_multimap<uint64_t, std::unique_ptr<Entry>> entries_;
};

// The score of one node from nothing: what the cache must agree with.
int32_t score_node(const Cluster& cluster, NodeId node, const Shape& shape, const Scorer& scorer);

}  // namespace tessera::scheduler::core
