// The best node of one shape: a tournament over the scores of all nodes.
//
// Shape:   a complete binary tree in an array, leaves in node order; set() is O(log n), best()
//          finds the first node of the highest score in O(log n), each leaf 4 bytes and each inner
//          node 4 bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scheduler/core/policy.h"

namespace tessera::scheduler::core {

class ScoreTree {
 public:
  void reset(size_t nodes) {
    width_ = 1;
    while (width_ < nodes) width_ *= 2;
    scores_.assign(2 * width_, kInfeasible);
    feasible_ = 0;
  }
  size_t width() const { return width_; }
  size_t bytes() const { return scores_.capacity() * sizeof(int32_t); }
  int64_t feasible() const { return feasible_; }
  int32_t at(size_t node) const { return scores_[width_ + node]; }

  // Sets a leaf only: build() must follow before best().
  void put(size_t node, int32_t score) {
    int32_t& leaf = scores_[width_ + node];
    feasible_ += (score != kInfeasible) - (leaf != kInfeasible);
    leaf = score;
  }
  void build() {
    for (size_t at = width_ - 1; at > 0; --at)
      scores_[at] = std::max(scores_[2 * at], scores_[2 * at + 1]);
  }
  void set(size_t node, int32_t score) {
    put(node, score);
    for (size_t at = (width_ + node) / 2; at > 0; at /= 2) {
      int32_t best = std::max(scores_[2 * at], scores_[2 * at + 1]);
      if (scores_[at] == best) break;
      scores_[at] = best;
    }
  }

  // The first node with the highest score, or -1 where none is feasible.
  int32_t best() const {
    if (feasible_ == 0) return -1;
    size_t at = 1;
    while (at < width_) at = scores_[2 * at] == scores_[at] ? 2 * at : 2 * at + 1;
    return static_cast<int32_t>(at - width_);
  }

 private:
  size_t width_ = 1;
  std::vector<int32_t> scores_ = {kInfeasible, kInfeasible};
  int64_t feasible_ = 0;
};

}  // namespace tessera::scheduler::core
