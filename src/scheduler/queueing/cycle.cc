#include "scheduler/queueing/cycle.h"

#include <algorithm>

#include "scheduler/queueing/choose_nodes.h"
#include "scheduler/queueing/shares.h"

namespace tessera::scheduler::queueing {
namespace {

uint64_t mix(uint64_t seed, uint64_t value) {
  uint64_t x = (seed ^ value) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
  return x ^ (x >> 32);
}

bool tied_to_others(const core::PodRequest& request) {
  return !request.affinity.empty() || !request.anti_affinity.empty() || !request.spread.empty();
}

}  // namespace

Plan Cycle::run() {
  engine_.advance_history(now_);
  expire_claims();
  hold_reservations();
  check_ready();
  share_out();
  mend_broken();
  tell_strays();
  serve_oldest();
  Turns turns(engine_.tree_, engine_.uses_);
  for (QueueId leaf = turns.next(); leaf.valid(); leaf = turns.next()) step(leaf, turns);
  engine_.kept_.take_out(engine_.cluster_);
  engine_.kept_ = Kept();
  plan_.binds.insert(plan_.binds.begin(), engine_.ready_.begin(), engine_.ready_.end());
  engine_.ready_.clear();
  engine_.advance_history(now_);  // from here on as decided
  return std::move(plan_);
}

void Cycle::expire_claims() {
  for (GangId id : std::vector<GangId>(engine_.claims_.begin(), engine_.claims_.end())) {
    if (engine_.gang(id).claim_until <= now_) engine_.drop_claim(id, now_);
  }
}

// What is held now is not free to others; what is held later is a Future.
void Cycle::hold_reservations() {
  if (engine_.reservations_.empty()) return;
  ChooseNodes(engine_, now_).run();
  engine_.kept_ = Kept(engine_, [&](const Reservation& r) { return r.in_force(now_); });
  engine_.kept_.count(engine_, engine_.cluster_);
  if (engine_.waiting() > 0) backfill_.foresee();
  engine_.kept_.put(engine_.cluster_);
}

// A place that was decided a while ago may not be one any more when the last of those who held it has gone.
void Cycle::check_ready() {
  std::set<GangId> spoilt;
  for (const Bind& bind : engine_.ready_) {
    if (!still_good(bind)) spoilt.insert(engine_.member(bind.member).gang);
  }
  for (const Bind& bind : spoilt.empty() ? std::vector<Bind>() : engine_.ready_) {
    if (spoilt.contains(engine_.member(bind.member).gang)) engine_.bind_failed(bind.member, now_);
  }
  std::erase_if(engine_.ready_, [&](const Bind& bind) {
    return engine_.member(bind.member).state != MemberState::kPlaced;
  });
  engine_.fresh_.clear();
  for (const Bind& bind : engine_.ready_) engine_.fresh_.insert(bind.member.value);
}

bool Cycle::still_good(const Bind& bind) const {
  const Member& member = engine_.member(bind.member);
  const Gang& gang = engine_.gang(member.gang);
  const core::Cluster& cluster = engine_.cluster_;
  const core::NodeId node = bind.placement.node;
  if (!gang.leaf.valid() || !gang.spec.hold.empty() || gang.placed < gang.spec.min_members)
    return false;
  for (size_t s = 0; s < gang.spec.subgroup_mins.size(); ++s) {
    if (gang.placed_of[s] < gang.spec.subgroup_mins[s]) return false;
  }
  const Queue& queue = engine_.tree_.at(gang.leaf);
  if (!queue.problem.empty() || !queue.spec.open || !queue.children.empty()) return false;
  if (core::check_rules(cluster, node, member.spec.request->shape) ||
      (cluster.spec(node).gpus_unhealthy & bind.placement.devices) != 0 ||
      engine_.kept_.overfull(node, gang.leaf))
    return false;
  bool within = true;
  engine_.tree_.each_up(gang.leaf, [&](QueueId q) {
    for (const auto& [dim, amount] : member.charged)
      within &= engine_.use(q).used.at(dim) <= engine_.tree_.at(q).spec.limit.at(dim, kUnlimited);
  });
  return within;
}

void Cycle::share_out() {
  if (std::exchange(engine_.capacity_version_, engine_.cluster_.specs_version()) !=
      engine_.cluster_.specs_version())
    engine_.capacity_ = healthy_capacity(engine_.cluster_, engine_.dims_);
  engine_.capacity_.resize(engine_.dims_.size(), 0);  // names may have come since
  auto shares = shares_of(engine_.tree_, engine_.uses_, engine_.capacity_,
                          engine_.options_.half_life.has_value());
  for (size_t q = 0; q < shares.size(); ++q) engine_.uses_[q].share = std::move(shares[q]);
}

// Lost members come first of all; what cannot be mended in time is released as a whole.
void Cycle::mend_broken() {
  for (GangId id : std::vector<GangId>(engine_.broken_.begin(), engine_.broken_.end())) {
    if (engine_.claims_.contains(id)) continue;
    Choice choice;
    Wait wait;
    if (choose(id, choice, wait) && attempt(id, choice, nullptr)) continue;
    const Gang& gang = engine_.gang(id);
    if (engine_.options_.evictions && gang.broken_since &&
        now_ - *gang.broken_since >= engine_.options_.broken_after)
      release(id);
  }
}

void Cycle::release(GangId id) {
  for (MemberId m : std::vector<MemberId>(engine_.gang(id).members)) {
    Member& member = engine_.member_of(m);
    if (member.state != MemberState::kPlaced) continue;
    member.state = MemberState::kLeaving;  // its place is taken until it has gone
    engine_.lose(m, now_);
    plan_.evicts.push_back({m, GangId(), EvictReason::kBroken});
  }
  engine_.relist(id);
}

void Cycle::tell_strays() {
  Wait wait;
  wait.reason = WaitReason::kNoQueue;
  for (GangId id : engine_.stray_) tell(id, wait);
  for (size_t q = 1; q < engine_.lines_.size();
       ++q) {  // turns may never come to a queue with others under it
    if (!engine_.lines_[q].empty()) open(QueueId(static_cast<int32_t>(q)));
  }
}

void Cycle::tell_rest(QueueId leaf, const Engine::Turn& after, const Wait& wait) {
  const auto& line = engine_.lines_[static_cast<size_t>(leaf.value)];
  for (auto at = line.lower_bound(after); at != line.end(); ++at) {
    if (!engine_.claims_.contains(at->gang)) tell(at->gang, wait);
  }
}

// A queue beyond its share has its turn last, and what it needs is taken before: without this, a gang that needs many nodes at
// once may see its planned start put off by every turn of the others.
void Cycle::serve_oldest() {
  if (!engine_.options_.patience) return;
  const Engine::Turn* oldest = nullptr;
  for (size_t q = 1; q < engine_.lines_.size(); ++q) {
    const auto& line = engine_.lines_[q];
    if (line.empty() || !open(QueueId(static_cast<int32_t>(q)))) continue;
    const Engine::Turn& first = *line.begin();
    if (now_ - first.created < *engine_.options_.patience || engine_.claims_.contains(first.gang))
      continue;
    if (!oldest || std::pair(first.created, first.seq) < std::pair(oldest->created, oldest->seq))
      oldest = &first;
  }
  if (!oldest) return;
  const GangId id = oldest->gang;  // placing it takes it out of its line
  Choice choice;
  Wait wait;
  if (choose(id, choice, wait)) attempt(id, choice, nullptr);
}

bool Cycle::open(QueueId leaf) {
  const Queue& queue = engine_.tree_.at(leaf);
  Wait wait;
  wait.queue = leaf;
  if (!queue.problem.empty() || !queue.spec.open) {
    wait.reason = WaitReason::kClosed;
  } else if (!queue.children.empty()) {
    wait.reason = WaitReason::kNotLeaf;
  } else {
    return true;
  }
  tell_rest(leaf, {INT64_MIN, {}, 0, {}}, wait);
  return false;
}

void Cycle::step(QueueId leaf, Turns& turns) {
  const auto& line = engine_.lines_[static_cast<size_t>(leaf.value)];
  auto passed = passed_.find(leaf.value);
  if (passed == passed_.end() && !open(leaf)) {
    turns.done(leaf);
    return;
  }
  auto at = passed == passed_.end() ? line.begin() : line.upper_bound(passed->second);
  if (at == line.end()) {
    turns.done(leaf);
    return;
  }
  const Engine::Turn turn = *at;
  Choice choice;
  Wait wait;
  if (engine_.claims_.contains(turn.gang)) {
    wait.reason = WaitReason::kClaim;
    tell(turn.gang, wait);
  } else if (!choose(turn.gang, choice, wait)) {
    tell(turn.gang, wait);
  } else if (attempt(turn.gang, choice, &turns)) {
    const Gang& gang = engine_.gang(turn.gang);
    if (gang.waiting == 0 && gang.awaits.empty()) tell(turn.gang, Wait());
    turns.changed(leaf);
    return;
  } else if (choice.starts && engine_.tree_.at(leaf).spec.strict_fifo) {
    Wait behind;
    behind.reason = WaitReason::kBehind;
    behind.queue = leaf;
    behind.gang = turn.gang;
    Engine::Turn next = turn;
    next.gang = GangId(turn.gang.value + 1);  // all after it
    tell_rest(leaf, next, behind);
    turns.done(leaf);
    return;
  }
  passed_[leaf.value] = turn;
}

// Members to place together: up to the minimum of each sub-group and of the gang, or one where it runs already.
bool Cycle::choose(GangId id, Choice& choice, Wait& wait) const {
  const Gang& gang = engine_.gang(id);
  if (!gang.spec.hold.empty()) {
    wait.reason = WaitReason::kHeld;
    return false;
  }
  std::vector<int32_t> missing(gang.placed_of.size(), 0);
  int32_t missing_all = std::max(0, gang.spec.min_members - gang.placed);
  for (size_t s = 0; s < gang.spec.subgroup_mins.size(); ++s)
    missing[s] = std::max(0, gang.spec.subgroup_mins[s] - gang.placed_of[s]);
  int32_t missing_subs = 0;
  for (int32_t m : missing) missing_subs += m;
  int32_t any = std::max(0, missing_all - missing_subs);
  choice.starts = missing_all > 0 || missing_subs > 0;
  if (!choice.starts) any = 1;
  std::vector<MemberId> spare;
  for (MemberId m : gang.members) {
    const Member& member = engine_.member(m);
    if (member.state != MemberState::kWaiting) continue;
    int32_t& of_sub = missing[static_cast<size_t>(member.spec.subgroup)];
    if (of_sub > 0) {
      --of_sub;
      choice.members.push_back(m);
    } else if (static_cast<int32_t>(spare.size()) < any) {
      spare.push_back(m);
    }
  }
  bool enough = static_cast<int32_t>(spare.size()) == any &&
                std::all_of(missing.begin(), missing.end(), [](int32_t m) { return m == 0; });
  if (!enough) {
    wait.reason = WaitReason::kMembers;
    wait.need = std::max(gang.spec.min_members, gang.placed + missing_subs);
    wait.have = gang.placed + gang.waiting;
    return false;
  }
  choice.members.insert(choice.members.end(), spare.begin(), spare.end());
  // The large ones first: the small ones find room between them.
  std::stable_sort(choice.members.begin(), choice.members.end(), [&](MemberId a, MemberId b) {
    const Amounts& x = engine_.member(a).spec.amounts;
    const Amounts& y = engine_.member(b).spec.amounts;
    return std::pair(x.at(kGpu), x.at(kCpu)) > std::pair(y.at(kGpu), y.at(kCpu));
  });
  auto runtime = runtime_of(engine_, gang);
  choice.signature =
      mix(mix(static_cast<uint64_t>(gang.leaf.value), static_cast<uint64_t>(gang.spec.priority)),
          (choice.starts ? 2u : 0u) | (gang.spec.preempts ? 1u : 0u));
  choice.signature = mix(choice.signature, runtime ? static_cast<uint64_t>(runtime->ns) : 1);
  choice.alike = true;
  for (MemberId m : choice.members) {
    const Member& member = engine_.member(m);
    choice.need.add(member.spec.amounts);
    choice.signature = mix(choice.signature, member.shape);
    choice.alike &= !tied_to_others(*member.spec.request);
  }
  choice.alike &= !engine_.cluster_.pod_terms().any_owned();
  return true;
}

bool Cycle::attempt(GangId id, const Choice& choice, Turns* turns) {
  if (choice.alike) {
    if (auto known = failed_.find(choice.signature); known != failed_.end()) {
      Wait wait = known->second;
      wait.planned_start.reset();
      wait.estimated = false;
      wait.planned_nodes.clear();
      if (choice.starts) reserve(id, choice, wait);
      tell(id, wait);
      return false;
    }
  }
  Wait wait;
  {
    Trial trial(engine_, backfill_.futures(), id, now_);
    bool placed = trial.within_limits(choice.need) &&
                  std::all_of(choice.members.begin(), choice.members.end(),
                              [&](MemberId m) { return trial.place(m); });
    if (placed) {
      commit(trial, turns);
      return true;
    }
    wait = trial.wait();
    const bool delays = wait.reason == WaitReason::kReserved && wait.gang.valid();
    if (choice.starts && engine_.options_.evictions && engine_.gang(id).spec.preempts && !delays) {
      trial.restart();
      if (victims_.make_room(trial, choice.members, choice.need)) {
        commit(trial, turns);
        return true;
      }
    }
  }
  if (choice.alike) failed_.emplace(choice.signature, wait);
  if (choice.starts) reserve(id, choice, wait);
  tell(id, wait);
  return false;
}

void Cycle::commit(Trial& trial, Turns* turns) {
  trial.keep();
  const GangId id = trial.gang();
  std::vector<MemberId> awaits;
  if (victims_.of() == id) {
    for (const auto& [member, pod] : victims_.moved()) {
      engine_.member_of(member).pod = pod;
      engine_.seat(member);
    }
    for (const Victims::Unit& unit : victims_.units()) {
      QueueId leaf = engine_.gang(unit.gang).leaf;
      for (MemberId m : unit.members) {
        engine_.evicted(m, now_);
        awaits.push_back(m);
        plan_.evicts.push_back({m, id, unit.reason});
      }
      if (turns) turns->changed(leaf);
    }
    victims_.end();
    failed_.clear();  // shares have moved: what failed before may do now
  }
  // What victims leave over is free only once they have gone.
  for (const auto& [member, pod] : trial.placed())
    engine_.await_departing(engine_.cluster_.pod(pod).placement, awaits);
  engine_.await_limits(engine_.gang(id).leaf, trial.charged(), awaits);
  MemberState state = awaits.empty() ? MemberState::kPlaced : MemberState::kClaimed;
  for (const auto& [member, pod] : trial.placed()) {
    engine_.place(member, pod, now_, state);
    if (!awaits.empty()) continue;
    plan_.binds.push_back({member, engine_.member(member).placement});
    engine_.fresh_.insert(member.value);
  }
  engine_.relist(id);
  const QueueId leaf = engine_.gang(id).leaf;
  if (engine_.kept_.opens_any(leaf)) {
    engine_.kept_.count(engine_, engine_.cluster_);
    engine_.kept_.settle(engine_.cluster_, leaf);
  }
  if (awaits.empty()) return;
  Gang& gang = engine_.gang_of(id);
  gang.awaits = std::move(awaits);
  gang.claim_until = now_ + engine_.options_.claim_timeout;
  engine_.claims_.insert(id);
  Wait wait;
  wait.reason = WaitReason::kClaim;
  tell(id, wait);
}

void Cycle::reserve(GangId id, const Choice& choice, Wait& wait) {
  const bool held = wait.reason == WaitReason::kReserved && !wait.gang.valid();
  if (wait.reason != WaitReason::kCapacity && wait.reason != WaitReason::kLimit && !held) return;
  const Gang& gang = engine_.gang(id);
  if (!gang.leaf.valid()) return;
  int32_t& of_leaf = reserved_[gang.leaf.value];
  if (of_leaf >= engine_.tree_.at(gang.leaf).spec.reservations) return;
  if (backfill_.planned() >= engine_.options_.reservations_max) return;
  ++of_leaf;  // one that cannot be planned uses up its turn: it is first in line all the same
  backfill_.plan(id, choice.members, choice.need, wait);
}

Plan Engine::cycle(base::Time now) {
  return Cycle(*this, now).run();
}

}  // namespace tessera::scheduler::queueing
