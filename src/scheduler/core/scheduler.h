// Decides where one pod goes: the best node under the policy, or the verdict that says why none
// will do.
//
// Shape:   place() answers quickly and changes nothing but its own caches; the caller puts the pod
//          into the cluster (directly, or through a Txn) and the next call sees it through the
//          cluster's change log. The mix of typical pods that FGD measures against is either given
//          or learned from arrivals.
// Threads: the scheduler's strand. The same cluster, requests and seed give the same placements.
#pragma once

#include <functional>
#include <optional>
#include <variant>

#include "base/random.h"
#include "scheduler/core/explain.h"
#include "scheduler/core/shape_cache.h"

namespace tessera::scheduler::core {

struct SchedulerOptions {
  Policy policy = Policy::kFgd;
  TypicalMix mix = {};  // empty: learned through observe()
  uint64_t seed = 1;    // for Policy::kRandom
  bool cached = true;   // false: score every node anew each time, for measuring and for tests
};

using Decision = std::variant<Placement, Verdict>;

class PodRules;

class Scheduler {
 public:
  explicit Scheduler(SchedulerOptions options);

  std::optional<Placement> place(const Cluster& cluster, const PodRequest& request);
  // The same, on nodes that `allowed` says yes to; walks all nodes that could hold the pod.
  std::optional<Placement> place_where(const Cluster& cluster, const PodRequest& request,
                                       const std::function<bool(NodeId)>& allowed);
  Decision decide(const Cluster& cluster, const PodRequest& request);

  // Counts an arrival; now and then the mix is drawn anew, at arrival counts that do not depend on
  // time.
  void observe(const Shape& shape);
  // Forgets all cached scores, so that the next decision is the first of its shape.
  void forget() { cache_.clear(); }

  Policy policy() const { return options_.policy; }
  const FragMeter& meter() const { return scorer_.meter(); }

 private:
  int32_t best_node(const Cluster& cluster, const PodRequest& request);
  int32_t best_uncached(const Cluster& cluster, const PodRequest& request, const PodRules& rules);
  using Allowed = std::function<bool(NodeId)>;
  static int32_t best_by_rules(const Cluster& cluster, const ScoreTree& tree, const PodRules& rules,
                               const Allowed* allowed = nullptr);
  std::optional<Placement> placement_on(const Cluster& cluster, int32_t node, const Shape& shape);
  int32_t any_feasible(const Cluster& cluster, const ScoreTree& tree, const PodRules& rules);

  SchedulerOptions options_;
  Scorer scorer_;
  ShapeCache cache_;
  base::Random random_;
  ArrivalCounts arrivals_;
  int64_t observed_ = 0;
  int64_t next_refresh_ = 16;
};

}  // namespace tessera::scheduler::core
