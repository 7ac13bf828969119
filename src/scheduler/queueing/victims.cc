#include "scheduler/queueing/victims.h"

#include <algorithm>
#include <numeric>

#include "scheduler/queueing/shares.h"

namespace tessera::scheduler::queueing {
namespace {

// So many victims are tried one by one for whether they are needed; more would take too long.
constexpr size_t kSlimUnitsMax = 64;

constexpr auto kLeastFirst = [](const auto& a, const auto& b) { return b < a; };

int32_t gone_in(const std::unordered_map<int32_t, std::vector<int32_t>>& gone, GangId gang,
                int32_t subgroup) {
  auto found = gone.find(gang.value);
  return found == gone.end() ? 0 : found->second[static_cast<size_t>(subgroup)];
}

bool devices_free(const core::NodeLoad& load, const core::Placement& place) {
  for (int g = 0; g < load.gpus; ++g) {
    if ((place.devices >> g & 1) != 0 && load.gpu_free[static_cast<size_t>(g)] < place.milli)
      return false;
  }
  return true;
}

const std::vector<BudgetId>& spends(const Member& member) {
  static const std::vector<BudgetId> nothing;
  return member.going ? nothing : member.spec.budgets;
}

}  // namespace

void Victims::Cost::add(const Cost& other) {
  below_share |= other.below_share;
  priority = std::max(priority, other.priority);
  loss = core::sat_add(loss, other.loss);
}

void Victims::forget() {
  units_.clear();
  gone_of_.clear();
  gone_.clear();
  budget_spent_.clear();
  moved_.clear();
}

void Victims::begin(Trial& trial, const Amounts& need) {
  trial_ = &trial;
  for_ = trial.gang();
  need_ = need;
  forget();
  reach_ = QueueId();
  const QueueTree& tree = engine_.queues();
  for (QueueId q = engine_.gang(for_).leaf; q.valid() && q != tree.root(); q = tree.at(q).parent) {
    bool within = std::all_of(need.begin(), need.end(), [&](const auto& item) {
      const std::vector<int64_t>& share = engine_.use(q).share;
      if (item.first >= share.size() || share[item.first] == kUndivided) return true;
      return core::sat_add(engine_.use(q).used.at(item.first), item.second) <= share[item.first];
    });
    if (!within) break;
    reach_ = q;
  }
}

std::optional<EvictReason> Victims::eligible(GangId id) const {
  const Gang& victim = engine_.gang(id);
  const Gang& gang = engine_.gang(for_);
  if (id == for_ || !victim.spec.preemptible) return std::nullopt;
  // A gang that runs on without a queue has no share to take anything by.
  if (!victim.leaf.valid() || !gang.leaf.valid()) return std::nullopt;
  if (victim.leaf == gang.leaf) {
    if (victim.spec.priority >= gang.spec.priority) return std::nullopt;
    return EvictReason::kPreempted;
  }
  const QueueTree& tree = engine_.queues();
  auto [ours, theirs] = tree.fork(gang.leaf, victim.leaf);
  if (ours == theirs) return std::nullopt;  // its queue has become one with queues under it
  if (!reach_.valid() || tree.at(reach_).depth > tree.at(ours).depth) return std::nullopt;
  if (!tree.at(victim.leaf).spec.reclaimable) return std::nullopt;
  for (const auto& [dim, amount] : need_) {
    const std::vector<int64_t>& share = engine_.use(theirs).share;
    if (amount == 0 || dim >= share.size() || share[dim] == kUndivided) continue;
    if (trial_->used(theirs, dim) > share[dim]) return EvictReason::kReclaimed;
  }
  return std::nullopt;
}

// A quick no, before nodes are looked at.
bool Victims::anyone() const {
  return std::any_of(engine_.running_.begin(), engine_.running_.end(),
                     [&](const std::set<GangId>& running) {
                       return std::any_of(running.begin(), running.end(),
                                          [&](GangId g) { return eligible(g).has_value(); });
                     });
}

bool Victims::may_go(MemberId id) const {
  const Member& member = engine_.member(id);
  if (member.state != MemberState::kPlaced || gone_.contains(id.value) ||
      engine_.fresh_.contains(id.value))
    return false;
  const QueueId leaf = engine_.gang(member.gang).leaf;
  if (engine_.kept_.guards(member.placement.node, leaf, engine_.gang(for_).leaf)) return false;
  if (member.going) return true;
  const QueueSpec& queue = engine_.queues().at(leaf).spec;
  if (now_ - member.started < queue.runtime_min) return false;
  return std::all_of(member.spec.budgets.begin(), member.spec.budgets.end(), [&](BudgetId budget) {
    auto at = static_cast<size_t>(budget.value);
    int64_t allowed = at < engine_.budgets_.size() ? engine_.budgets_[at] : 0;
    auto spent = budget_spent_.find(budget.value);
    return allowed - (spent == budget_spent_.end() ? 0 : spent->second) > 0;
  });
}

std::optional<Victims::Unit> Victims::unit_of(MemberId id) const {
  const Member& member = engine_.member(id);
  auto reason = eligible(member.gang);
  if (!reason || !may_go(id)) return std::nullopt;
  const Gang& gang = engine_.gang(member.gang);
  Unit unit;
  unit.gang = member.gang;
  unit.reason = *reason;
  auto gone = gone_of_.find(member.gang.value);
  int32_t gone_all =
      gone == gone_of_.end() ? 0 : std::accumulate(gone->second.begin(), gone->second.end(), 0);
  auto sub = static_cast<size_t>(member.spec.subgroup);
  int32_t sub_min = sub < gang.spec.subgroup_mins.size() ? gang.spec.subgroup_mins[sub] : 0;
  int32_t sub_left = gang.placed_of[sub] - gone_in(gone_of_, member.gang, member.spec.subgroup);
  if (!gang.spec.evict_whole && gang.placed - gone_all > gang.spec.min_members &&
      sub_left > sub_min) {
    unit.members = {id};
  } else {
    // Budgets are checked for all together: the whole gang goes, or nobody.
    std::unordered_map<int32_t, int64_t> spending;
    for (MemberId m : gang.members) {
      const Member& other = engine_.member(m);
      if (!Engine::counts_as_placed(other) || gone_.contains(m.value)) continue;
      if (!may_go(m)) return std::nullopt;
      if (other.going) {
        unit.members.push_back(m);
        continue;
      }
      for (BudgetId budget : other.spec.budgets) {
        auto spent = budget_spent_.find(budget.value);
        int64_t already = spent == budget_spent_.end() ? 0 : spent->second;
        if (already + ++spending[budget.value] >
            engine_.budgets_[static_cast<size_t>(budget.value)])
          return std::nullopt;
      }
      unit.members.push_back(m);
    }
  }
  unit.cost = cost_of(unit);
  return unit;
}

Victims::Cost Victims::cost_of(const Unit& unit) const {
  const Gang& gang = engine_.gang(unit.gang);
  Cost cost;
  Totals amounts;
  for (MemberId id : unit.members) {
    const Member& member = engine_.member(id);
    if (member.going) continue;
    cost.priority = gang.spec.priority;
    int64_t seconds = 1 + std::max<int64_t>(0, (now_ - member.saved).ns / 1'000'000'000);
    cost.loss = core::sat_add(
        cost.loss, core::sat_mul(std::max<int64_t>(1, member.charged.at(kGpu)), seconds));
    amounts.add(member.charged, 1);
  }
  if (unit.reason == EvictReason::kReclaimed) {
    QueueId theirs = engine_.queues().fork(engine_.gang(for_).leaf, gang.leaf).second;
    const std::vector<int64_t>& share = engine_.use(theirs).share;
    for (Dim dim = 0; dim < share.size(); ++dim) {
      if (share[dim] == kUndivided || amounts.at(dim) == 0) continue;
      cost.below_share |= trial_->used(theirs, dim) - amounts.at(dim) < share[dim];
    }
  }
  return cost;
}

// With `only_on` the model loses only what stands on that node: enough to tell what clearing the node costs.
void Victims::evict(Unit unit, core::NodeId only_on) {
  const Gang& gang = engine_.gang(unit.gang);
  std::vector<int32_t>& gone = gone_of_[unit.gang.value];
  gone.resize(gang.placed_of.size(), 0);
  for (MemberId id : unit.members) {
    const Member& member = engine_.member(id);
    gone_.insert(id.value);
    ++gone[static_cast<size_t>(member.spec.subgroup)];
    for (BudgetId budget : spends(member)) ++budget_spent_[budget.value];
    trial_->freed(gang, member.charged, 1);
    if (!only_on.valid() || member.placement.node == only_on) trial_->txn().evict(member.pod);
  }
  units_.push_back(std::move(unit));
}

void Victims::undo(size_t units_mark, size_t txn_mark) {
  while (units_.size() > units_mark) {
    const Unit& unit = units_.back();
    for (MemberId id : unit.members) {
      const Member& member = engine_.member(id);
      gone_.erase(id.value);
      --gone_of_[unit.gang.value][static_cast<size_t>(member.spec.subgroup)];
      for (BudgetId budget : spends(member)) --budget_spent_[budget.value];
      trial_->freed(engine_.gang(unit.gang), member.charged, -1);
    }
    units_.pop_back();
  }
  trial_->txn().rollback_to(txn_mark);
}

// Evicts on one node, cheapest first, until the shape fits; nothing where it cannot.
std::optional<Victims::Cost> Victims::clear(core::NodeId node, const core::Shape& shape,
                                            bool for_real) {
  const core::Cluster& cluster = engine_.cluster();
  Cost cost;
  while (!core::fits(cluster, node, shape)) {
    std::optional<Unit> best;
    for (core::PodId pod : cluster.pods_on(node)) {
      MemberId id = engine_.member_on(pod);
      if (!id.valid()) continue;
      auto unit = unit_of(id);
      if (unit && (!best || unit->cost < best->cost)) best = std::move(unit);
    }
    if (!best) return std::nullopt;
    cost.add(best->cost);
    evict(std::move(*best), for_real ? core::NodeId() : node);
  }
  return cost;
}

std::vector<Victims::Candidate>& Victims::candidates(MemberId id) {
  const Member& member = engine_.member(id);
  const Gang& gang = engine_.gang(for_);
  auto [at, made] = heaps_.try_emplace({gang.leaf, gang.spec.priority, member.shape});
  std::vector<Candidate>& heap = at->second;
  if (!made) return heap;
  const core::Cluster& cluster = engine_.cluster();
  for (size_t n = 0; n < cluster.node_slots(); ++n) {
    core::NodeId node(static_cast<int32_t>(n));
    if (cluster.pods_on(node).empty() ||
        core::check_rules(cluster, node, member.spec.request->shape))
      continue;
    size_t units_mark = units_.size();
    size_t txn_mark = trial_->txn().mark();
    if (auto cost = clear(node, member.spec.request->shape, false)) heap.push_back({*cost, node});
    undo(units_mark, txn_mark);
  }
  std::make_heap(heap.begin(), heap.end(), kLeastFirst);
  return heap;
}

// Clears the cheapest node for a member, and places it.
bool Victims::clear_cheapest(MemberId id) {
  const core::Shape& shape = engine_.member(id).spec.request->shape;
  std::vector<Candidate>& heap = candidates(id);
  std::vector<Candidate> passed_over;
  bool placed = false;
  while (!placed && !heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), kLeastFirst);
    Candidate candidate = heap.back();
    heap.pop_back();
    size_t units_mark = units_.size();
    size_t txn_mark = trial_->txn().mark();
    auto cost = clear(candidate.node, shape, true);
    if (!cost) {
      undo(units_mark, txn_mark);
      passed_over.push_back(candidate);
      continue;
    }
    if (!heap.empty() && heap.front().cost < *cost) {  // it has grown: others are cheaper now
      undo(units_mark, txn_mark);
      candidate.cost = *cost;
      heap.push_back(candidate);
      std::push_heap(heap.begin(), heap.end(), kLeastFirst);
      continue;
    }
    placed = trial_->place(id);
    if (!placed) undo(units_mark, txn_mark);
    passed_over.push_back(candidate);
  }
  for (const Candidate& candidate : passed_over) {
    heap.push_back(candidate);
    std::push_heap(heap.begin(), heap.end(), kLeastFirst);
  }
  return placed;
}

std::optional<Victims::Unit> Victims::cheapest_under(QueueId top) const {
  std::optional<Unit> best;
  const QueueTree& tree = engine_.queues();
  for (size_t q = 1; q < engine_.running_.size(); ++q) {
    bool under = false;
    tree.each_up(QueueId(static_cast<int32_t>(q)), [&](QueueId up) { under |= up == top; });
    if (!under) continue;
    for (GangId g : engine_.running_[q]) {
      if (!eligible(g)) continue;
      for (MemberId id : engine_.gang(g).members) {
        auto unit = unit_of(id);
        if (unit && (!best || unit->cost < best->cost)) best = std::move(unit);
        if (unit && unit->members.size() > 1) break;
      }
    }
  }
  return best;
}

bool Victims::make_limit_room(const Amounts& need) {
  while (!trial_->within_limits(need)) {
    auto unit = cheapest_under(trial_->wait().queue);
    if (!unit) return false;
    evict(std::move(*unit), core::NodeId());
  }
  return true;
}

bool Victims::place_all(const std::vector<MemberId>& chosen, const Amounts& need) {
  if (!make_limit_room(need)) return false;
  return std::all_of(chosen.begin(), chosen.end(),
                     [&](MemberId id) { return trial_->place(id) || clear_cheapest(id); });
}

bool Victims::restore(const Unit& unit) {
  const core::Cluster& cluster = engine_.cluster();
  size_t mark = trial_->txn().mark();
  size_t moved_mark = moved_.size();
  for (MemberId id : unit.members) {
    const Member& member = engine_.member(id);
    core::NodeId node = member.placement.node;
    if (!core::fits(cluster, node, member.spec.request->shape) ||
        !devices_free(cluster.load(node), member.placement)) {
      trial_->txn().rollback_to(mark);
      moved_.resize(moved_mark);
      return false;
    }
    moved_.emplace_back(id, trial_->txn().place(member.spec.request, member.placement));
  }
  return true;
}

// A gang that went as a whole after some of its members had gone alone is one unit: it comes back as a whole or not.
void Victims::merge_wholes() {
  std::vector<Unit> merged;
  std::unordered_map<int32_t, size_t> whole_of;
  for (const Unit& unit : units_) {
    if (unit.members.size() > 1) whole_of.emplace(unit.gang.value, whole_of.size());
  }
  merged.resize(whole_of.size());
  for (Unit& unit : units_) {
    auto whole = whole_of.find(unit.gang.value);
    if (whole == whole_of.end()) {
      merged.push_back(std::move(unit));
      continue;
    }
    Unit& into = merged[whole->second];
    into.gang = unit.gang;
    into.reason = unit.reason;
    into.members.insert(into.members.end(), unit.members.begin(), unit.members.end());
    into.cost.add(unit.cost);
  }
  units_ = std::move(merged);
}

// Whoever is not in the way after all stays, the dearest first.
void Victims::put_back(const Amounts& need) {
  merge_wholes();
  std::stable_sort(units_.begin(), units_.end(),
                   [](const Unit& a, const Unit& b) { return b.cost < a.cost; });
  Amounts nothing_more;
  for (const auto& [dim, amount] : need) nothing_more.add(dim, 0 * amount);
  std::vector<Unit> kept;
  for (Unit& unit : units_) {
    const Gang& gang = engine_.gang(unit.gang);
    for (MemberId id : unit.members) trial_->freed(gang, engine_.member(id).charged, -1);
    if (trial_->within_limits(nothing_more) && restore(unit)) continue;
    for (MemberId id : unit.members) trial_->freed(gang, engine_.member(id).charged, 1);
    kept.push_back(std::move(unit));
  }
  units_ = std::move(kept);
}

// Exactly these go, and all members find a place.
bool Victims::replay(const std::vector<Unit>& units, const std::vector<MemberId>& chosen,
                     const Amounts& need) {
  trial_->restart();
  forget();
  for (const Unit& unit : units) evict(unit, core::NodeId());
  return trial_->within_limits(need) &&
         std::all_of(chosen.begin(), chosen.end(), [&](MemberId id) { return trial_->place(id); });
}

// Members in other places may need fewer victims: each one is tried without, the dearest first.
bool Victims::slim(const std::vector<MemberId>& chosen, const Amounts& need) {
  std::vector<Unit> kept = units_;
  for (size_t u = 0; u < kept.size();) {
    std::vector<Unit> fewer = kept;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(u));
    if (replay(fewer, chosen, need)) {
      kept = std::move(fewer);
    } else {
      ++u;
    }
  }
  return replay(kept, chosen, need);
}

bool Victims::give_up(const Wait& wait) {
  trial_->restart();
  forget();
  trial_->wait() = wait;
  return false;
}

bool Victims::make_room(Trial& trial, const std::vector<MemberId>& chosen, const Amounts& need) {
  begin(trial, need);
  made_for_ = GangId();
  if (!anyone()) return false;
  Wait before = trial.wait();
  if (!place_all(chosen, need)) return give_up(before);
  put_back(need);
  if (units_.size() <= kSlimUnitsMax && !slim(chosen, need)) return give_up(before);
  made_for_ = for_;
  return true;
}

}  // namespace tessera::scheduler::queueing
