#include "scheduler/queueing/shares.h"

#include <algorithm>
#include <cmath>

#include "scheduler/queueing/fair_share.h"

namespace tessera::scheduler::queueing {
namespace {

constexpr int64_t kWeightScale = 1024;
constexpr double kLevelMax = 16;

size_t slot(QueueId id) {
  return static_cast<size_t>(id.value);
}

void add_to(std::vector<int64_t>& sums, Dim dim, int64_t amount) {
  if (dim >= sums.size()) sums.resize(dim + 1, 0);
  sums[dim] = core::sat_add(sums[dim], amount);
}

class Division {
 public:
  Division(const QueueTree& tree, const std::vector<QueueUse>& uses,
           const std::vector<int64_t>& capacity, bool history)
      : tree_(tree),
        uses_(uses),
        dims_(capacity.size()),
        history_(history),
        demand_(tree.size(), std::vector<int64_t>(dims_, 0)),
        shares_(tree.size(), std::vector<int64_t>(dims_, kUndivided)) {
    demands(tree.root());
    shares_[0] = capacity;
    level(tree.root());
  }
  std::vector<std::vector<int64_t>> take() { return std::move(shares_); }

 private:
  void demands(QueueId id) {
    std::vector<int64_t>& demand = demand_[slot(id)];
    const Queue& queue = tree_.at(id);
    for (QueueId child : queue.children) {
      demands(child);
      for (Dim dim = 0; dim < dims_; ++dim)
        demand[dim] = core::sat_add(demand[dim], demand_[slot(child)][dim]);
    }
    const QueueUse& use = uses_[slot(id)];
    for (Dim dim = 0; dim < dims_; ++dim) {
      if (queue.children.empty()) demand[dim] = core::sat_add(use.used.at(dim), use.wanted.at(dim));
      demand[dim] = std::min(demand[dim], queue.spec.limit.at(dim, kUnlimited));
    }
  }

  bool divided(QueueId parent, Dim dim) const {
    if (dim == kGpu) return true;
    const std::vector<QueueId>& children = tree_.at(parent).children;
    return std::any_of(children.begin(), children.end(), [&](QueueId child) {
      const QueueSpec& spec = tree_.at(child).spec;
      return spec.quota.has(dim) || spec.limit.has(dim);
    });
  }

  void level(QueueId id) {
    const std::vector<QueueId>& children = tree_.at(id).children;
    if (children.empty()) return;
    std::vector<Claim> claims(children.size());
    std::vector<int64_t> weights = weights_of(children);
    for (Dim dim = 0; dim < dims_; ++dim) {
      // A parent that is not divided in this resource passes on all there is.
      int64_t pot = shares_[slot(id)][dim];
      if (pot == kUndivided) pot = shares_[0][dim];
      if (!divided(id, dim)) continue;
      for (size_t c = 0; c < children.size(); ++c) {
        const QueueSpec& spec = tree_.at(children[c]).spec;
        claims[c] = {spec.quota.at(dim), demand_[slot(children[c])][dim],
                     spec.limit.at(dim, kUnlimited), spec.priority, weights[c]};
      }
      std::vector<int64_t> given = divide(pot, claims);
      for (size_t c = 0; c < children.size(); ++c) shares_[slot(children[c])][dim] = given[c];
    }
    for (QueueId child : children) level(child);
  }

  std::vector<int64_t> weights_of(const std::vector<QueueId>& children) const {
    std::vector<int64_t> weights;
    double shares = 0;
    double usage = 0;
    for (QueueId child : children) {
      const Queue& queue = tree_.at(child);
      weights.push_back(queue.problem.empty() ? queue.spec.weight : 0);
      shares += static_cast<double>(weights.back());
      usage += uses_[slot(child)].history.sum();
    }
    if (!history_ || usage <= 0 || shares <= 0) return weights;
    for (size_t c = 0; c < children.size(); ++c) {
      double used = uses_[slot(children[c])].history.sum() / usage;
      double due = static_cast<double>(weights[c]) / shares;
      double fairness = used > 0 ? std::min(due / used, kLevelMax) : kLevelMax;
      fairness = std::max(fairness, 1 / kLevelMax);
      weights[c] *= std::llround(fairness * kWeightScale);
    }
    return weights;
  }

  const QueueTree& tree_;
  const std::vector<QueueUse>& uses_;
  size_t dims_;
  bool history_;
  std::vector<std::vector<int64_t>> demand_;
  std::vector<std::vector<int64_t>> shares_;
};

}  // namespace

std::vector<int64_t> healthy_capacity(const core::Cluster& cluster, Dims& dims) {
  std::vector<int64_t> sums(dims.size(), 0);
  std::vector<Dim> by_model;
  for (size_t n = 0; n < cluster.node_slots(); ++n) {
    core::NodeId id(static_cast<int32_t>(n));
    const core::NodeLoad& load = cluster.load(id);
    if (!load.open) continue;
    const core::NodeSpec& spec = cluster.spec(id);
    int healthy = spec.gpus - __builtin_popcount(spec.gpus_unhealthy & ((1u << spec.gpus) - 1));
    int64_t units = int64_t{healthy} * kUnitsPerGpu;
    add_to(sums, kGpu, units);
    add_to(sums, kCpu, spec.cpu_milli);
    add_to(sums, kMemory, spec.memory_bytes >> 20);
    if (spec.model.valid()) {
      auto model = static_cast<size_t>(spec.model.value);
      if (model >= by_model.size()) by_model.resize(model + 1, kGpu);
      if (by_model[model] == kGpu) by_model[model] = dims.model(cluster.names().text(spec.model));
      add_to(sums, by_model[model], units);
    }
    for (const core::ResourceAmount& extended : spec.extended)
      add_to(sums, dims.intern(cluster.names().text(extended.id)), extended.amount);
  }
  sums.resize(dims.size(), 0);
  return sums;
}

std::vector<std::vector<int64_t>> shares_of(const QueueTree& tree,
                                            const std::vector<QueueUse>& uses,
                                            const std::vector<int64_t>& capacity, bool history) {
  return Division(tree, uses, capacity, history).take();
}

}  // namespace tessera::scheduler::queueing
