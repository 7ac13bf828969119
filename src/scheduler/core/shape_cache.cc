#include "scheduler/core/shape_cache.h"

#include <algorithm>

namespace tessera::scheduler::core {
namespace {

constexpr int16_t kForbidden = std::numeric_limits<int16_t>::min();

int16_t preference_or_forbidden(const Cluster& cluster, NodeId node, const Shape& shape) {
  if (check_rules(cluster, node, shape)) return kForbidden;
  return static_cast<int16_t>(std::clamp(preference(cluster, node, shape), -30'000, 30'000));
}

int32_t score_with(const Cluster& cluster, NodeId node, const Shape& shape, const Scorer& scorer,
                   int16_t preference) {
  if (preference == kForbidden || !fits(cluster, node, shape)) return kInfeasible;
  return scorer.score(cluster.load(node), node, shape) + preference;
}

}  // namespace

int32_t score_node(const Cluster& cluster, NodeId node, const Shape& shape, const Scorer& scorer) {
  return score_with(cluster, node, shape, scorer, preference_or_forbidden(cluster, node, shape));
}

ShapeCache::Entry& ShapeCache::entry_for(const Shape& shape) {
  uint64_t hash = hash_of(shape);
  auto [first, last] = entries_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (at->second->shape == shape) return *at->second;
  }
  auto entry = std::make_unique<Entry>();
  entry->shape = shape;
  bytes_ += entry->bytes();
  return *entries_.emplace(hash, std::move(entry))->second;
}

const ShapeCache::Entry& ShapeCache::get(const Cluster& cluster, const Shape& shape,
                                         const Scorer& scorer) {
  Entry& entry = entry_for(shape);
  entry.last_used = ++uses_;
  size_t before = entry.bytes();
  if (entry.cluster != &cluster || entry.preference.size() < cluster.node_slots()) {
    rebuild(entry, cluster, scorer);
  } else {
    update(entry, cluster, scorer);
  }
  bytes_ += entry.bytes() - before;
  if (bytes_ > bytes_max_) shrink(entry);
  return entry;
}

void ShapeCache::rebuild(Entry& entry, const Cluster& cluster, const Scorer& scorer) {
  size_t nodes = cluster.node_slots();
  entry.cluster = &cluster;
  entry.preference.assign(nodes, kForbidden);
  entry.tree.reset(nodes);
  for (size_t n = 0; n < nodes; ++n) {
    NodeId node(static_cast<int32_t>(n));
    entry.preference[n] = preference_or_forbidden(cluster, node, entry.shape);
    entry.tree.put(n, score_with(cluster, node, entry.shape, scorer, entry.preference[n]));
  }
  entry.tree.build();
  entry.position = cluster.log_position();
}

void ShapeCache::update(Entry& entry, const Cluster& cluster, const Scorer& scorer) {
  bool reached = cluster.changed_since(entry.position, [&](NodeId node, bool rules_changed) {
    size_t n = static_cast<size_t>(node.value);
    if (rules_changed) entry.preference[n] = preference_or_forbidden(cluster, node, entry.shape);
    entry.tree.set(n, score_with(cluster, node, entry.shape, scorer, entry.preference[n]));
  });
  if (!reached) rebuild(entry, cluster, scorer);
  entry.position = cluster.log_position();
}

void ShapeCache::shrink(const Entry& keep) {
  while (bytes_ > bytes_max_ && entries_.size() > 1) {
    auto oldest = entries_.end();
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (at->second.get() == &keep) continue;
      if (oldest == entries_.end() || at->second->last_used < oldest->second->last_used)
        oldest = at;
    }
    bytes_ -= oldest->second->bytes();
    entries_.erase(oldest);
  }
}

void ShapeCache::clear() {
  entries_.clear();
  bytes_ = 0;
}

}  // namespace tessera::scheduler::core
