#include "scheduler/queueing/engine.h"

#include <algorithm>

#include "base/check.h"

namespace tessera::scheduler::queueing {
namespace {

size_t slot(auto id) {
  return static_cast<size_t>(id.value);
}

template <class Id, class T>
Id take_slot(std::vector<T>& items, std::vector<Id>& free) {
  if (!free.empty()) {
    Id id = free.back();
    free.pop_back();
    return id;
  }
  items.emplace_back();
  return Id(static_cast<int32_t>(items.size() - 1));
}

}  // namespace

Engine::Engine(EngineOptions options) : options_(options), scheduler_(options.scheduler) {
  set_queues({}, {});
}

void Engine::set_options(EngineOptions options) {
  if (options.scheduler.policy != options_.scheduler.policy ||
      options.scheduler.mix.pods != options_.scheduler.mix.pods)
    scheduler_ = core::Scheduler(options.scheduler);
  options_ = std::move(options);
}

void Engine::set_queues(std::vector<QueueSpec> specs, base::Time now) {
  advance_history(now);
  std::unordered_map<std::string, DecayedUsage> history;
  for (size_t i = 0; i < uses_.size(); ++i) {
    history.emplace(tree_.at(QueueId(static_cast<int32_t>(i))).spec.name, uses_[i].history);
  }
  for (size_t g = 0; g < gangs_.size(); ++g) withdraw(GangId(static_cast<int32_t>(g)));
  tree_ = QueueTree::build(std::move(specs));
  uses_.assign(tree_.size(), QueueUse());
  lines_.assign(tree_.size(), {});
  running_.assign(tree_.size(), {});
  stray_.clear();
  for (size_t i = 0; i < uses_.size(); ++i) {
    auto kept = history.find(tree_.at(QueueId(static_cast<int32_t>(i))).spec.name);
    if (kept != history.end()) uses_[i].history = kept->second;
  }
  for (size_t g = 0; g < gangs_.size(); ++g) {
    Gang& gang = gangs_[g];
    if (!gang.present) continue;
    gang.leaf = tree_.find(gang.spec.queue);
    gang.wait = Wait();  // it names queues of before
    for (MemberId id : gang.members) {
      const Member& member = member_of(id);
      if (member.state == MemberState::kWaiting) want(gang, wanted_by(member.spec), 1);
      if (member.pod.valid()) charge(gang, member.charged, 1);
    }
    enlist(GangId(static_cast<int32_t>(g)));
  }
  advance_history(now);
}

void Engine::set_reservations(std::vector<ReservationSpec> specs) {
  std::vector<Reservation> before = std::exchange(reservations_, {});
  for (ReservationSpec& spec : specs) {
    Reservation& made = reservations_.emplace_back();
    const auto old = std::find_if(before.begin(), before.end(), [&](const Reservation& other) {
      return other.spec.name == spec.name;
    });
    if (old != before.end()) made = std::move(*old);
    made.spec = std::move(spec);
  }
}

bool Engine::reservations_live() const {
  return std::any_of(reservations_.begin(), reservations_.end(), [](const Reservation& r) {
    return r.phase != ReservationPhase::kEnded && r.phase != ReservationPhase::kRefused;
  });
}

Engine::Turn Engine::turn_of(const Gang& gang, GangId id) const {
  return {-int64_t{gang.spec.priority}, gang.spec.created, gang.seq, id};
}

void Engine::enlist(GangId id) {
  const Gang& gang = gang_of(id);
  if (!gang.present) return;
  if (!gang.leaf.valid()) {
    if (gang.waiting > 0) stray_.insert(id);
    return;
  }
  if (gang.waiting > 0 && lines_[slot(gang.leaf)].insert(turn_of(gang, id)).second)
    tree_.each_up(gang.leaf, [&](QueueId q) { ++use_of(q).waiting; });
  if (gang.placed > 0) running_[slot(gang.leaf)].insert(id);
}

void Engine::withdraw(GangId id) {
  const Gang& gang = gang_of(id);
  stray_.erase(id);
  if (!gang.present || !gang.leaf.valid()) return;
  if (lines_[slot(gang.leaf)].erase(turn_of(gang, id)) > 0)
    tree_.each_up(gang.leaf, [&](QueueId q) { --use_of(q).waiting; });
  running_[slot(gang.leaf)].erase(id);
}

void Engine::relist(GangId id) {
  const Gang& gang = gang_of(id);
  if (gang.leaf.valid()) {
    bool in_line = lines_[slot(gang.leaf)].contains(turn_of(gang, id));
    bool runs = running_[slot(gang.leaf)].contains(id);
    if (in_line == (gang.waiting > 0) && runs == (gang.placed > 0)) return;
  }
  withdraw(id);
  enlist(id);
}

void Engine::charge(const Gang& gang, const Amounts& amounts, int sign) {
  if (!gang.leaf.valid()) return;
  tree_.each_up(gang.leaf, [&](QueueId q) { use_of(q).used.add(amounts, sign); });
}

void Engine::want(const Gang& gang, const Amounts& amounts, int sign) {
  if (!gang.leaf.valid()) return;
  tree_.each_up(gang.leaf, [&](QueueId q) { use_of(q).wanted.add(amounts, sign); });
}

Dim Engine::model_dim(core::ModelId model) {
  if (!model.valid()) return kGpu;
  if (slot(model) >= model_dims_.size()) model_dims_.resize(slot(model) + 1, kGpu);
  Dim& dim = model_dims_[slot(model)];
  if (dim == kGpu) dim = dims_.model(cluster_.names().text(model));
  return dim;
}

// What waits for one certain model counts as wanted of that model too.
Amounts Engine::wanted_by(const MemberSpec& spec) {
  Amounts amounts = spec.amounts;
  const std::vector<core::ModelId>& models = spec.request->shape.models;
  int64_t gpu = amounts.at(kGpu);
  if (gpu > 0 && !models.empty() && models.front() == models.back())
    amounts.add(model_dim(models.front()), gpu);
  return amounts;
}

Amounts Engine::charged_at(const MemberSpec& spec, core::NodeId node) {
  Amounts amounts = spec.amounts;
  int64_t gpu = amounts.at(kGpu);
  core::ModelId model = cluster_.spec(node).model;
  if (gpu > 0 && model.valid()) amounts.add(model_dim(model), gpu);
  return amounts;
}

GangId Engine::add_gang(GangSpec spec) {
  GangId id = take_slot(gangs_, gangs_free_);
  Gang& gang = gang_of(id);
  gang = Gang();
  gang.present = true;
  gang.seq = ++seq_;
  gang.leaf = tree_.find(spec.queue);
  gang.spec = std::move(spec);
  gang.placed_of.assign(std::max<size_t>(gang.spec.subgroup_mins.size(), 1), 0);
  return id;
}

void Engine::update_gang(GangId id, GangSpec spec) {
  Gang& gang = gang_of(id);
  TS_CHECK(gang.present, "gang slot {} is free", id.value);
  withdraw(id);
  auto move_sums = [&](int sign) {
    for (MemberId m : gang.members) {
      const Member& member = member_of(m);
      if (member.state == MemberState::kWaiting) want(gang, wanted_by(member.spec), sign);
      if (member.pod.valid()) charge(gang, member.charged, sign);
    }
  };
  move_sums(-1);
  gang.leaf = tree_.find(spec.queue);
  gang.spec = std::move(spec);
  gang.placed_of.assign(std::max<size_t>(gang.spec.subgroup_mins.size(), 1), 0);
  for (MemberId m : gang.members) {
    Member& member = member_of(m);
    member.spec.subgroup = subgroup_in(gang, member.spec.subgroup);
    if (counts_as_placed(member)) ++gang.placed_of[static_cast<size_t>(member.spec.subgroup)];
  }
  move_sums(1);
  enlist(id);
  if (gang.placed == 0 || gang.placed >= gang.spec.min_members) {
    gang.broken_since.reset();
    broken_.erase(id);
  }
}

void Engine::remove_gang(GangId id, base::Time now) {
  TS_CHECK(gang_of(id).present, "gang slot {} is free", id.value);
  if (claims_.contains(id)) drop_claim(id, now);
  while (!gang_of(id).members.empty()) remove_member(gang_of(id).members.back(), now);
  withdraw(id);
  broken_.erase(id);
  gang_of(id) = Gang();
  gangs_free_.push_back(id);
}

bool Engine::counts_as_placed(const Member& member) {
  return member.state == MemberState::kClaimed || member.state == MemberState::kPlaced;
}

int32_t Engine::subgroup_in(const Gang& gang, int32_t subgroup) {
  bool known = subgroup >= 0 && static_cast<size_t>(subgroup) < gang.placed_of.size();
  return known ? subgroup : 0;
}

MemberId Engine::make_member(GangId id, MemberSpec spec) {
  TS_CHECK(gang_of(id).present, "gang slot {} is free", id.value);
  TS_CHECK(spec.request != nullptr, "a member of {} without a request", gang_of(id).spec.name);
  MemberId made = take_slot(members_, members_free_);
  Gang& gang = gang_of(id);
  Member& member = member_of(made);
  member = Member();
  member.present = true;
  member.gang = id;
  member.spec = std::move(spec);
  member.spec.subgroup = subgroup_in(gang, member.spec.subgroup);
  member.shape = core::hash_of(member.spec.request->shape);
  gang.members.push_back(made);
  return made;
}

MemberId Engine::add_member(GangId id, MemberSpec spec) {
  MemberId made = make_member(id, std::move(spec));
  Gang& gang = gang_of(id);
  ++gang.waiting;
  want(gang, wanted_by(member_of(made).spec), 1);
  relist(id);
  scheduler_.observe(member_of(made).spec.request->shape);
  return made;
}

MemberId Engine::add_running(GangId id, MemberSpec spec, const core::Placement& placement,
                             base::Time started) {
  MemberId made = make_member(id, std::move(spec));
  Gang& gang = gang_of(id);
  ++gang.waiting;
  want(gang, wanted_by(member_of(made).spec), 1);
  core::PodId pod = cluster_.add_pod(member_of(made).spec.request, placement);
  place(made, pod, started, MemberState::kPlaced);
  relist(id);
  return made;
}

void Engine::set_saved(MemberId id, base::Time saved) {
  Member& member = member_of(id);
  member.saved = std::max(member.started, saved);
}

void Engine::update_member(MemberId id, MemberSpec spec) {
  Member& member = member_of(id);
  Gang& gang = gang_of(member.gang);
  if (member.state != MemberState::kWaiting) {
    member.spec.budgets = std::move(spec.budgets);
    return;
  }
  TS_CHECK(spec.request != nullptr, "a member of {} without a request", gang.spec.name);
  want(gang, wanted_by(member.spec), -1);
  member.spec = std::move(spec);
  member.spec.subgroup = subgroup_in(gang, member.spec.subgroup);
  member.shape = core::hash_of(member.spec.request->shape);
  want(gang, wanted_by(member.spec), 1);
}

void Engine::update_devices(MemberId id, uint32_t devices) {
  Member& member = member_of(id);
  if (!member.pod.valid() || member.placement.devices == devices) return;
  cluster_.update_devices(member.pod, devices);
  member.placement = cluster_.pod(member.pod).placement;
}

void Engine::settle_found(base::Time now) {
  for (const GangId id : broken_) gang_of(id).broken_since = now;
  for (size_t g = 0; g < gangs_.size(); ++g) {
    Gang& gang = gangs_[g];
    if (!gang.present || gang.broken_since || gang.placed == 0) continue;
    if (gang.placed >= gang.spec.min_members || gang.placed + gang.waiting < gang.spec.min_members)
      continue;
    gang.ever_started = true;
    gang.broken_since = now;
    broken_.insert(GangId(static_cast<int32_t>(g)));
  }
}

void Engine::stays(MemberId id, base::Time now) {
  if (member_of(id).state != MemberState::kLeaving) return;
  for (GangId g : std::vector<GangId>(claims_.begin(), claims_.end())) {
    const std::vector<MemberId>& awaits = gang(g).awaits;
    if (std::find(awaits.begin(), awaits.end(), id) != awaits.end()) drop_claim(g, now);
  }
  Member& member = member_of(id);
  if (!member.pod.valid()) return;
  member.state = MemberState::kPlaced;
  gain(id);
  relist(member.gang);
}

void Engine::place(MemberId id, core::PodId pod, base::Time now, MemberState state) {
  Member& member = member_of(id);
  Gang& gang = gang_of(member.gang);
  TS_CHECK(member.state == MemberState::kWaiting, "a member of {} is placed twice", gang.spec.name);
  want(gang, wanted_by(member.spec), -1);
  member.pod = pod;
  member.placement = cluster_.pod(pod).placement;
  seat(id);
  member.charged = charged_at(member.spec, member.placement.node);
  member.state = state;
  member.started = member.saved = now;
  charge(gang, member.charged, 1);
  --gang.waiting;
  gain(id);
}

// Counts a member that has a place for its gang.
void Engine::gain(MemberId id) {
  const Member& member = member_of(id);
  Gang& gang = gang_of(member.gang);
  ++gang.placed;
  ++gang.placed_of[static_cast<size_t>(member.spec.subgroup)];
  if (gang.placed >= gang.spec.min_members) {
    gang.ever_started = true;
    gang.broken_since.reset();
    broken_.erase(member.gang);
  }
}

// Takes a placed member out of the counts of its gang; its place in the model stays the caller's matter.
void Engine::lose(MemberId id, base::Time now) {
  Member& member = member_of(id);
  Gang& gang = gang_of(member.gang);
  --gang.placed;
  --gang.placed_of[static_cast<size_t>(member.spec.subgroup)];
  bool broken = gang.ever_started && gang.placed > 0 && gang.placed < gang.spec.min_members;
  if (!broken) {
    gang.broken_since.reset();
    broken_.erase(member.gang);
    if (gang.placed == 0) gang.ever_started = false;
  } else if (!gang.broken_since) {
    gang.broken_since = now;
    broken_.insert(member.gang);
  }
}

void Engine::vacate(MemberId id) {
  Member& member = member_of(id);
  if (!member.pod.valid()) return;
  charge(gang_of(member.gang), member.charged, -1);
  cluster_.remove_pod(member.pod);
  member.pod = core::PodId();
}

void Engine::seat(MemberId id) {
  size_t at = slot(member_of(id).pod);
  if (at >= on_pod_.size()) on_pod_.resize(at + 1);
  on_pod_[at] = id;
}

MemberId Engine::member_on(core::PodId pod) const {
  if (slot(pod) >= on_pod_.size()) return {};
  MemberId id = on_pod_[slot(pod)];
  return id.valid() && member(id).pod == pod ? id : MemberId();
}

void Engine::evicted(MemberId id, base::Time now) {
  Member& member = member_of(id);
  charge(gang_of(member.gang), member.charged, -1);
  member.pod = core::PodId();
  member.state = MemberState::kLeaving;
  departing_[member.placement.node].push_back(id);
  lose(id, now);
  relist(member.gang);
}

void Engine::departed(MemberId id) {
  const auto found = departing_.find(member_of(id).placement.node);
  if (found == departing_.end()) return;
  std::erase(found->second, id);
  if (found->second.empty()) departing_.erase(found);
}

void Engine::await_departing(const core::Placement& place, std::vector<MemberId>& awaits) const {
  const auto found = departing_.find(place.node);
  if (found == departing_.end()) return;
  core::ExactSum cpu, memory, storage;
  for (const MemberId id : found->second) {
    const core::Shape& shape = member(id).spec.request->shape;
    cpu.add(shape.cpu_milli);
    memory.add(shape.memory_bytes);
    storage.add(shape.storage_bytes);
  }
  const core::NodeLoad& load = cluster_.load(place.node);
  const bool tight = load.cpu_free < cpu.saturated() || load.memory_free < memory.saturated() ||
                     load.storage_free < storage.saturated() ||
                     load.pods_free < static_cast<int64_t>(found->second.size());
  for (const MemberId id : found->second) {
    const Member& other = member(id);
    const bool shares = tight || (other.placement.devices & place.devices) != 0 ||
                        !other.spec.request->shape.extended.empty();
    if (shares && std::find(awaits.begin(), awaits.end(), id) == awaits.end()) awaits.push_back(id);
  }
}

void Engine::await_limits(QueueId leaf, const Totals& more, std::vector<MemberId>& awaits) const {
  if (departing_.empty()) return;
  tree_.each_up(leaf, [&](QueueId q) {
    for (const auto& [dim, limit] : tree_.at(q).spec.limit) {
      if (more.at(dim) == 0) continue;
      std::vector<MemberId> with;
      int64_t used = core::sat_add(use(q).used.at(dim), more.at(dim));
      for (const auto& [node, members] : departing_) {
        for (const MemberId id : members) {
          const Member& other = member(id);
          bool under = other.charged.at(dim) > 0 &&
                       std::find(awaits.begin(), awaits.end(), id) == awaits.end();
          if (!under) continue;
          under = false;
          tree_.each_up(gang(other.gang).leaf, [&](QueueId up) { under |= up == q; });
          if (!under) continue;
          with.push_back(id);
          used = core::sat_add(used, other.charged.at(dim));
        }
      }
      if (used > limit) awaits.insert(awaits.end(), with.begin(), with.end());
    }
  });
}

void Engine::wait_again(MemberId id, base::Time now) {
  Member& member = member_of(id);
  vacate(id);
  lose(id, now);
  member.state = MemberState::kWaiting;
  Gang& gang = gang_of(member.gang);
  ++gang.waiting;
  want(gang, wanted_by(member.spec), 1);
  relist(member.gang);
}

void Engine::remove_member(MemberId id, base::Time now) {
  Member& member = member_of(id);
  TS_CHECK(member.present, "member slot {} is free", id.value);
  GangId of = member.gang;
  switch (member.state) {
    case MemberState::kWaiting:
      want(gang_of(of), wanted_by(member.spec), -1);
      --gang_of(of).waiting;
      break;
    case MemberState::kClaimed:
      drop_claim(of, now);
      remove_member(id, now);
      return;
    case MemberState::kPlaced:
      vacate(id);
      lose(id, now);
      break;
    case MemberState::kLeaving:
      departed(id);
      vacate(id);
      break;
  }
  std::erase_if(ready_, [id](const Bind& bind) { return bind.member == id; });
  std::erase(gang_of(of).members, id);
  relist(of);
  member = Member();
  members_free_.push_back(id);
  settle_claims(id, now);
}

// One who was awaited has gone: whoever awaited nobody else has its place now.
void Engine::settle_claims(MemberId gone, base::Time now) {
  for (auto at = claims_.begin(); at != claims_.end();) {
    Gang& gang = gang_of(*at);
    std::erase(gang.awaits, gone);
    if (!gang.awaits.empty()) {
      ++at;
      continue;
    }
    for (MemberId id : gang.members) {
      Member& member = member_of(id);
      if (member.state != MemberState::kClaimed) continue;
      member.state = MemberState::kPlaced;
      member.started = member.saved = now;
      ready_.push_back({id, member.placement});
    }
    gang.wait = Wait();
    at = claims_.erase(at);
  }
}

void Engine::drop_claim(GangId id, base::Time now) {
  claims_.erase(id);
  Gang& gang = gang_of(id);
  std::vector<MemberId> awaited = std::exchange(gang.awaits, {});
  for (MemberId m : std::vector<MemberId>(gang.members)) {
    if (member_of(m).state == MemberState::kClaimed) wait_again(m, now);
  }
  for (MemberId m : awaited) {  // still there: it holds its place again until it goes
    Member& member = member_of(m);
    if (member.pod.valid() || awaited_by_other(m)) continue;
    departed(m);
    member.pod = cluster_.add_pod(member.spec.request, member.placement);
    seat(m);
    charge(gang_of(member.gang), member.charged, 1);
  }
}

void Engine::drop_claims(base::Time now) {
  for (const GangId id : std::vector<GangId>(claims_.begin(), claims_.end())) drop_claim(id, now);
  for (const Bind& bind : std::exchange(ready_, {})) bind_failed(bind.member, now);
}

bool Engine::awaited_by_other(MemberId id) const {
  return std::any_of(claims_.begin(), claims_.end(), [&](GangId g) {
    const std::vector<MemberId>& awaits = gang(g).awaits;
    return std::find(awaits.begin(), awaits.end(), id) != awaits.end();
  });
}

void Engine::bind_failed(MemberId id, base::Time now) {
  if (member_of(id).state == MemberState::kPlaced) wait_again(id, now);
}

void Engine::set_budget(BudgetId id, int64_t allowed) {
  if (slot(id) >= budgets_.size()) budgets_.resize(slot(id) + 1, 0);
  budgets_[slot(id)] = allowed;
}

void Engine::restore_history(QueueId id, double unit_seconds, base::Time at, base::Time now) {
  if (!options_.half_life) return;
  advance_history(now);
  use_of(id).history.restore(unit_seconds, std::min(at, now), *options_.half_life);
}

void Engine::advance_history(base::Time now) {
  if (!options_.half_life) return;
  for (QueueUse& use : uses_) {
    use.history.advance(now, *options_.half_life);
    use.history.set_rate(static_cast<double>(use.used.at(kGpu)));
  }
}

size_t Engine::position(GangId id) const {
  const Gang& gang = this->gang(id);
  if (!gang.leaf.valid()) return 0;
  const std::set<Turn>& line = lines_[slot(gang.leaf)];
  return static_cast<size_t>(std::distance(line.begin(), line.lower_bound(turn_of(gang, id))));
}

}  // namespace tessera::scheduler::queueing
