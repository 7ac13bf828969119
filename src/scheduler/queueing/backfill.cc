#include "scheduler/queueing/backfill.h"

#include <algorithm>
#include <set>

namespace tessera::scheduler::queueing {

const std::vector<Backfill::End>& Backfill::ends(bool estimates) {
  std::optional<std::vector<End>>& known = ends_[estimates ? 1 : 0];
  if (known) return *known;
  known.emplace();
  for (size_t m = 0; m < engine_.members_.size(); ++m) {
    const Member& member = engine_.members_[m];
    if (!member.present || !member.pod.valid()) continue;
    const Gang& gang = engine_.gang(member.gang);
    auto runtime = runtime_of(engine_, gang);
    // Nothing ends a job that outran its queue's guess: waiting for it would keep nodes idle for ever.
    if (runtime && !gang.spec.runtime && member.started + *runtime <= now_) runtime.reset();
    if (!runtime && estimates) runtime = estimate_of(engine_, gang, now_ - member.started);
    if (!runtime) continue;
    // Who is past its limit already may go any moment.
    known->push_back(
        {std::max(now_, member.started + *runtime), MemberId(static_cast<int32_t>(m))});
  }
  std::sort(known->begin(), known->end());
  return *known;
}

bool Backfill::within_limits(GangId gang, const Amounts& need,
                             const std::vector<Totals>& used) const {
  bool within = true;
  engine_.queues().each_up(engine_.gang(gang).leaf, [&](QueueId q) {
    const Amounts& limits = engine_.queues().at(q).spec.limit;
    for (const auto& [dim, amount] : need) {
      int64_t limit = limits.at(dim, kUnlimited);
      within &= limit == kUnlimited ||
                core::sat_add(used[static_cast<size_t>(q.value)].at(dim), amount) <= limit;
    }
  });
  return within;
}

bool Backfill::starts_in(core::Cluster& cluster, core::Scheduler& scheduler,
                         const std::vector<MemberId>& chosen, Wait& wait) const {
  core::Txn txn(cluster);
  wait.planned_nodes.clear();
  for (MemberId id : chosen) {
    const auto& request = engine_.member(id).spec.request;
    auto placement = scheduler.place(cluster, *request);
    if (!placement) return false;
    txn.place(request, *placement);
    wait.planned_nodes.push_back(placement->node);
  }
  txn.commit();
  return true;
}

void Backfill::foresee() {
  std::set<base::Time> starts;
  for (const Reservation& reservation : engine_.reservations()) {
    if (!reservation.held.empty() && reservation.spec.start > now_)
      starts.insert(reservation.spec.start);
  }
  for (const base::Time at : starts) {
    auto future = std::make_unique<Future>();
    future->at = at;
    future->cluster = engine_.cluster();
    for (const End& end : ends(false)) {
      if (end.at > at) break;
      future->cluster.remove_pod(engine_.member(end.member).pod);
    }
    future->kept = Kept(engine_, [&](const Reservation& r) { return r.in_force(at); });
    future->kept.count(engine_, future->cluster);
    future->kept.put(future->cluster);
    futures_.push_back(std::move(future));
  }
}

// The same among what reservations hold while the gang runs.
bool Backfill::starts_at(Future& future, core::Scheduler& scheduler,
                         const std::vector<MemberId>& chosen, Wait& wait) const {
  if (engine_.reservations().empty()) return starts_in(future.cluster, scheduler, chosen, wait);
  const QueueId leaf = engine_.gang(future.gang).leaf;
  const auto runtime = runtime_of(engine_, engine_.gang(future.gang));
  const base::Time until = runtime ? future.at + *runtime : base::Time{INT64_MAX};
  future.kept = Kept(engine_, [&](const Reservation& r) { return r.touches(future.at, until); });
  future.kept.count(engine_, future.cluster);
  future.kept.put(future.cluster);
  core::Txn txn(future.cluster);
  future.kept.lift(txn, leaf);
  if (!starts_in(future.cluster, scheduler, chosen, wait)) {
    txn.rollback();
    future.kept.take_out(future.cluster);
    return false;
  }
  txn.commit();
  for (size_t c = 0; c < chosen.size(); ++c)
    future.kept.use(leaf, wait.planned_nodes[c],
                    room_of(engine_.member(chosen[c]).spec.request->shape,
                            engine_.cluster().load(wait.planned_nodes[c])),
                    1);
  future.kept.settle(future.cluster, leaf);
  return true;
}

bool Backfill::plan(GangId gang, const std::vector<MemberId>& chosen, const Amounts& need,
                    Wait& wait) {
  const size_t before = planned_.size();
  const bool firm = plan_by(false, gang, chosen, need, wait);
  if (ends(true).size() == ends(false).size()) return firm;
  std::optional<Planned> sure;  // others are planned around that
  if (firm) {
    sure = std::move(planned_.back());
    planned_.pop_back();
  }
  Wait guess = wait;
  guess.planned_start.reset();
  const bool guessed = plan_by(true, gang, chosen, need, guess);
  if (sure) {
    planned_.resize(before);
    planned_.push_back(std::move(*sure));
  }
  if (!guessed) return firm;
  if (firm && *wait.planned_start <= *guess.planned_start) {
    futures_.pop_back();
    return true;
  }
  wait = std::move(guess);
  wait.estimated = true;
  return true;
}

bool Backfill::plan_by(bool estimates, GangId gang, const std::vector<MemberId>& chosen,
                       const Amounts& need, Wait& wait) {
  if (ends(estimates).empty() && engine_.reservations().empty()) return false;
  auto future = std::make_unique<Future>();
  future->gang = gang;
  future->cluster = engine_.cluster();
  Kept(engine_.kept_).take_out(future->cluster);
  core::Scheduler scheduler = engine_.scheduler_;
  std::vector<Totals> used;
  for (const QueueUse& use : engine_.uses_) used.push_back(use.used);
  std::vector<std::pair<base::Time, core::PodId>> releases;
  for (const Planned& planned :
       planned_) {  // they start before, or hold their places from now on at worst
    for (const auto& [request, placement] : planned.places) {
      core::PodId pod = future->cluster.add_pod(request, placement);
      if (planned.ends) releases.emplace_back(planned.end, pod);
    }
  }
  for (const End& end : ends(estimates))
    releases.emplace_back(end.at, core::PodId(-2 - end.member.value));
  for (const Reservation& reservation : engine_.reservations()) {
    if (!reservation.held.empty() && reservation.spec.end() > now_)
      releases.emplace_back(reservation.spec.end(), core::PodId());
  }
  std::stable_sort(releases.begin(), releases.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t r = 0; r < releases.size();) {
    base::Time at = releases[r].first;
    for (; r < releases.size() && releases[r].first == at; ++r) {
      core::PodId pod = releases[r].second;
      if (pod.valid()) {
        future->cluster.remove_pod(pod);
        continue;
      }
      if (pod == core::PodId()) continue;  // a reservation
      const Member& member = engine_.member(MemberId(-2 - pod.value));
      if (!member.pod.valid()) continue;  // evicted in this very cycle
      future->cluster.remove_pod(member.pod);
      engine_.queues().each_up(engine_.gang(member.gang).leaf, [&](QueueId q) {
        used[static_cast<size_t>(q.value)].add(member.charged, -1);
      });
    }
    if (!within_limits(gang, need, used)) continue;
    future->at = at;
    if (!starts_at(*future, scheduler, chosen, wait)) continue;
    wait.planned_start = at;
    Planned planned;
    auto runtime = runtime_of(engine_, engine_.gang(gang));
    planned.ends = runtime.has_value();
    if (runtime) planned.end = at + *runtime;
    for (size_t c = 0; c < chosen.size(); ++c)
      planned.places.emplace_back(engine_.member(chosen[c]).spec.request,
                                  core::Placement{wait.planned_nodes[c], 0, 0});
    planned_.push_back(std::move(planned));
    std::sort(wait.planned_nodes.begin(), wait.planned_nodes.end());
    futures_.push_back(std::move(future));
    return true;
  }
  wait.planned_nodes.clear();
  return false;
}

}  // namespace tessera::scheduler::queueing
