#include "scheduler/queueing/fair_tree.h"

#include <algorithm>
#include <limits>

namespace tessera::scheduler::queueing {
namespace {

class Walk {
 public:
  Walk(const std::vector<FairNode>& nodes, std::vector<FairRank>& ranks)
      : nodes_(nodes), ranks_(ranks), children_(nodes.size() + 1) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      children_[static_cast<size_t>(nodes[i].parent + 1)].push_back(i);
      users_ += nodes[i].user;
    }
    next_ = users_;
  }

  void levels() {
    for (const std::vector<size_t>& siblings : children_) {
      double shares = 0;
      double usage = 0;
      for (size_t i : siblings) {
        shares += nodes_[i].shares;
        usage += nodes_[i].usage;
      }
      for (size_t i : siblings) {
        FairRank& rank = ranks_[i];
        rank.shares_norm = shares > 0 ? nodes_[i].shares / shares : 0;
        rank.usage_norm = usage > 0 ? nodes_[i].usage / usage : 0;
        if (nodes_[i].shares <= 0) {
          rank.level = 0;
        } else {
          rank.level = rank.usage_norm > 0 ? rank.shares_norm / rank.usage_norm
                                           : std::numeric_limits<double>::infinity();
        }
      }
    }
  }

  void descend(std::vector<size_t> siblings) {
    std::stable_sort(siblings.begin(), siblings.end(),
                     [&](size_t a, size_t b) { return ranks_[a].level > ranks_[b].level; });
    for (size_t from = 0; from < siblings.size();) {
      size_t to = from;
      std::vector<size_t> users;
      std::vector<size_t> under;
      for (; to < siblings.size() && ranks_[siblings[to]].level == ranks_[siblings[from]].level;
           ++to) {
        size_t i = siblings[to];
        if (nodes_[i].user) {
          users.push_back(i);
        } else {
          under.insert(under.end(), children_[i + 1].begin(), children_[i + 1].end());
        }
      }
      // Users first: their rank is the best that any user of the tied accounts can get.
      const double rank =
          static_cast<double>(next_) / static_cast<double>(std::max<size_t>(users_, 1));
      for (size_t i : users) ranks_[i].rank = rank;
      if (under.empty()) {
        next_ -= users.size();
      } else {
        const size_t tied = users.size();
        descend(std::move(under));
        next_ -= tied;
      }
      from = to;
    }
  }

  const std::vector<size_t>& top() const { return children_[0]; }

 private:
  const std::vector<FairNode>& nodes_;
  std::vector<FairRank>& ranks_;
  std::vector<std::vector<size_t>> children_;  // by parent + 1
  size_t users_ = 0;
  size_t next_ = 0;
};

}  // namespace

std::vector<FairRank> fair_tree(const std::vector<FairNode>& nodes) {
  std::vector<FairRank> ranks(nodes.size());
  Walk walk(nodes, ranks);
  walk.levels();
  walk.descend(walk.top());
  return ranks;
}

}  // namespace tessera::scheduler::queueing
