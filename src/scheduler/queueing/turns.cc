#include "scheduler/queueing/turns.h"

#include <algorithm>

#include "scheduler/queueing/shares.h"

namespace tessera::scheduler::queueing {
namespace {

constexpr int64_t kNothingDue = kUnlimited;

size_t slot(QueueId id) {
  return static_cast<size_t>(id.value);
}

int64_t ratio_of(int64_t part, int64_t whole) {
  if (whole <= 0) return part > 0 ? kNothingDue : kNothingDue - 1;
  __int128_t ratio = (static_cast<__int128_t>(part) << 20) / whole;
  return ratio > kNothingDue - 2 ? kNothingDue - 2 : static_cast<int64_t>(ratio);
}

}  // namespace

Turns::Turns(const QueueTree& tree, const std::vector<QueueUse>& uses)
    : tree_(tree), uses_(uses), live_(tree.size()), known_(tree.size()) {
  for (size_t i = 1; i < tree.size(); ++i) {
    QueueId id(static_cast<int32_t>(i));
    if (uses[i].waiting == 0) continue;
    known_[i] = standing_of(id);
    live_[slot(tree.at(id).parent)].insert(known_[i]);
  }
}

Turns::Standing Turns::standing_of(QueueId id) const {
  const QueueSpec& spec = tree_.at(id).spec;
  const QueueUse& use = uses_[slot(id)];
  bool below_quota = false;
  bool at_quota = false;
  int64_t of_quota = 0;
  for (const auto& [dim, quota] : spec.quota) {
    if (use.wanted.at(dim) == 0) continue;
    (use.used.at(dim) < quota ? below_quota : at_quota) = true;
    of_quota = std::max(of_quota, ratio_of(use.used.at(dim), quota));
  }
  if (below_quota && !at_quota) return {false, 0, of_quota, id.value};
  int64_t of_share = 0;
  for (Dim dim = 0; dim < use.share.size(); ++dim) {
    if (use.share[dim] == kUndivided) continue;
    if (use.used.at(dim) == 0 && use.wanted.at(dim) == 0) continue;
    of_share = std::max(of_share, ratio_of(use.used.at(dim), use.share[dim]));
  }
  return {true, -spec.priority, of_share, id.value};
}

QueueId Turns::next() const {
  QueueId at = tree_.root();
  while (!live_[slot(at)].empty()) at = QueueId(live_[slot(at)].begin()->queue);
  return at == tree_.root() ? QueueId() : at;
}

void Turns::changed(QueueId leaf) {
  tree_.each_up(leaf, [&](QueueId id) {
    QueueId parent = tree_.at(id).parent;
    if (!parent.valid() || live_[slot(parent)].erase(known_[slot(id)]) == 0) return;
    known_[slot(id)] = standing_of(id);
    live_[slot(parent)].insert(known_[slot(id)]);
  });
}

void Turns::done(QueueId leaf) {
  QueueId id = leaf;
  while (tree_.at(id).parent.valid() && live_[slot(id)].empty()) {
    QueueId parent = tree_.at(id).parent;
    live_[slot(parent)].erase(known_[slot(id)]);
    id = parent;
  }
}

}  // namespace tessera::scheduler::queueing
