#include "scheduler/core/scheduler.h"

#include <algorithm>

#include "scheduler/core/pod_rules.h"

namespace tessera::scheduler::core {
namespace {

constexpr int64_t kRefreshEveryMax = 1024;
constexpr int64_t kArrivalsKept = 65'536;

}  // namespace

Scheduler::Scheduler(SchedulerOptions options)
    : options_(std::move(options)),
      scorer_(options_.policy, options_.mix),
      random_(options_.seed) {}

std::optional<Placement> Scheduler::place(const Cluster& cluster, const PodRequest& request) {
  return placement_on(cluster, best_node(cluster, request), request.shape);
}

std::optional<Placement> Scheduler::place_where(const Cluster& cluster, const PodRequest& request,
                                                const Allowed& allowed) {
  PodRules rules(cluster, request);
  const ScoreTree& tree = cache_.get(cluster, request.shape, scorer_).tree;
  return placement_on(cluster, best_by_rules(cluster, tree, rules, &allowed), request.shape);
}

std::optional<Placement> Scheduler::placement_on(const Cluster& cluster, int32_t node,
                                                 const Shape& shape) {
  if (node < 0) return std::nullopt;
  Placement placement;
  placement.node = NodeId(node);
  const NodeLoad& load = cluster.load(placement.node);
  if (shape.gpu.count > 0) {
    placement.milli = milli_on(load, shape.gpu);
    placement.devices = options_.policy == Policy::kRandom
                            ? scorer_.choose_random(load, shape, random_)
                            : scorer_.choose(load, shape);
  }
  return placement;
}

Decision Scheduler::decide(const Cluster& cluster, const PodRequest& request) {
  if (auto placement = place(cluster, request)) return *placement;
  return explain(cluster, request);
}

int32_t Scheduler::best_node(const Cluster& cluster, const PodRequest& request) {
  PodRules rules(cluster, request);
  if (!options_.cached) return best_uncached(cluster, request, rules);
  const ScoreTree& tree = cache_.get(cluster, request.shape, scorer_).tree;
  if (options_.policy == Policy::kRandom) return any_feasible(cluster, tree, rules);
  return rules.none() ? tree.best() : best_by_rules(cluster, tree, rules);
}

int32_t Scheduler::best_uncached(const Cluster& cluster, const PodRequest& request,
                                 const PodRules& rules) {
  ScoreTree tree;
  tree.reset(cluster.node_slots());
  for (size_t n = 0; n < cluster.node_slots(); ++n) {
    tree.put(n, score_node(cluster, NodeId(static_cast<int32_t>(n)), request.shape, scorer_));
  }
  if (options_.policy == Policy::kRandom) return any_feasible(cluster, tree, rules);
  return best_by_rules(cluster, tree, rules);
}

int32_t Scheduler::best_by_rules(const Cluster& cluster, const ScoreTree& tree,
                                 const PodRules& rules, const Allowed* allowed) {
  int32_t best = -1;
  int64_t best_points = 0;
  for (size_t n = 0; n < cluster.node_slots(); ++n) {
    int32_t score = tree.at(n);
    if (score == kInfeasible) continue;
    NodeId node(static_cast<int32_t>(n));
    int64_t points = int64_t{score} + rules.points(node);
    if (best >= 0 && points <= best_points) continue;
    if (rules.check(node) != Reason::kNone) continue;
    if (allowed && !(*allowed)(node)) continue;
    best = node.value;
    best_points = points;
  }
  return best;
}

int32_t Scheduler::any_feasible(const Cluster& cluster, const ScoreTree& tree,
                                const PodRules& rules) {
  std::vector<int32_t> feasible;
  for (size_t n = 0; n < cluster.node_slots(); ++n) {
    if (tree.at(n) == kInfeasible) continue;
    NodeId node(static_cast<int32_t>(n));
    if (rules.none() || rules.check(node) == Reason::kNone) feasible.push_back(node.value);
  }
  return feasible.empty() ? -1 : feasible[random_.below(feasible.size())];
}

void Scheduler::observe(const Shape& shape) {
  if (options_.mix.weight_total > 0 || options_.policy != Policy::kFgd) return;
  arrivals_.add(shape);
  if (++observed_ < next_refresh_) return;
  next_refresh_ = observed_ + std::min(observed_, kRefreshEveryMax);
  TypicalMix mix = arrivals_.mix();
  if (arrivals_.arrivals() > kArrivalsKept) arrivals_.decay();
  if (mix.weight_total == 0 || mix.pods == scorer_.meter().typical().pods) return;
  scorer_ = Scorer(options_.policy, std::move(mix));
  cache_.clear();
}

}  // namespace tessera::scheduler::core
