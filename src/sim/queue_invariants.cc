#include "sim/queue_invariants.h"

#include <algorithm>

#include "kube/labels.h"
#include "kube/quantity.h"

namespace tessera::sim {
namespace {

using base::Code;
using base::Duration;
using base::error;
using base::Time;
using json::Value;
using kube::Object;
using kube::WatchEvent;

constexpr Duration kMend =
    base::seconds(150);  // a broken gang is released after 60 s, its members go within 40 s
constexpr Duration kPaid = base::seconds(150);
constexpr Duration kTold = base::seconds(30);

bool ready(const Object& pod) {
  for (const Value& one : pod.get("status", "conditions").items()) {
    if (one["type"].as_string() == "Ready") return one["status"].as_string() == "True";
  }
  return false;
}

bool of_daemon(const Object& pod) {
  for (const Value& owner : pod.metadata()["ownerReferences"].items()) {
    if (owner["kind"].as_string() == "DaemonSet") return true;
  }
  return false;
}

bool covers(const Object& budget, const Object& pod) {
  if (budget.ns() != pod.ns()) return false;
  const auto selector = kube::LabelSelector::from_json(budget["spec"]["selector"], "selector");
  return selector && selector->matches(pod.metadata()["labels"]);
}

// "A of priority 5 takes the place of B ..." or "queue "q" takes back its share for A; ...".
std::string winner_in(std::string_view message) {
  const size_t priority = message.find(" of priority ");
  const size_t share = message.find(" takes back its share for ");
  if (message.starts_with("queue \"") && share != std::string_view::npos) {
    const std::string_view rest = message.substr(share + 26);
    return std::string(rest.substr(0, rest.find(';')));
  }
  return std::string(message.substr(0, priority));
}

}  // namespace

base::Status QueueInvariants::see(const WatchEvent& event, Time now) {
  if (event.object.kind() == "Event") return check_event(event.object, now);
  if (event.object.kind() != "Pod") {
    facts_.see(event, now);
    return {};
  }
  const std::string key(event.object.key());
  const auto known = facts_.pods().find(key);
  const bool same =
      known != facts_.pods().end() && known->second.object.uid() == event.object.uid();
  const bool was_bound = same && !known->second.node.empty();
  if (same && ready(known->second.object) &&
      (!ready(event.object) || event.type == WatchEvent::Type::kDeleted))
    sick_[key] = now;
  facts_.see(event, now);
  const auto after = facts_.pods().find(key);
  if (after == facts_.pods().end() || was_bound || !after->second.runs()) return {};
  return check_bind(after->second, now);
}

base::Status QueueInvariants::check_bind(const PodFact& pod, Time now) {
  const auto found = facts_.gangs().find(pod.gang);
  if (found == facts_.gangs().end()) return {};
  // Else one more, or in the place of others that are over, which is mending whatever became of the queue.
  if (facts_.running(found->second) == 1 && now - found->second.ran > options_.news) {
    TS_TRY_STATUS(check_start(pod, found->second, now));
    gangs_started_ += found->second.reading.spec.min_members > 1 ? 1 : 0;
  }
  return check_limits(pod, found->second, now);
}

base::Status QueueInvariants::check_start(const PodFact& pod, const GangFact& gang,
                                          Time now) const {
  const std::string key(pod.object.key());
  const int32_t least = facts_.minimum_left(gang, facts_.least_minimum_lately(gang, now));
  const int there = facts_.present(gang, now, true);
  if (there < least && !facts_.leaving(gang)) {
    return error(Code::kInternal,
                 "pod {} of gang {} is bound, of which {} members exist and {} are needed", key,
                 gang.reading.key, there, least);
  }
  if (!gang.reading.waits.empty() && now - gang.held_since > options_.news &&
      now - gang.changed > options_.news) {
    return error(Code::kInternal, "pod {} of gang {} is bound, which is to wait: {}", key,
                 gang.reading.key, gang.reading.waits);
  }
  const std::string& queue = gang.reading.spec.queue;
  if (now - facts_.queues_changed() <= options_.news || now - gang.moved <= options_.news)
    return {};
  const Object object = facts_.object("tessera.dev", "Queue", "", queue);
  if (!object && queue != "default")
    return error(Code::kInternal, "pod {} is bound, its queue \"{}\" does not exist", key, queue);
  if (object.get("spec", "closed").as_bool())
    return error(Code::kInternal, "pod {} is bound, its queue \"{}\" is closed", key, queue);
  return {};
}

base::Status QueueInvariants::check_limits(const PodFact& pod, const GangFact& gang,
                                           Time now) const {
  if (now - facts_.queues_changed() <= options_.news || now - gang.moved <= options_.news)
    return {};
  for (const std::string& queue : facts_.queues_above(gang.reading.spec.queue)) {
    const Value limit = facts_.object("tessera.dev", "Queue", "", queue).get("spec", "limit");
    if (!limit.is_object()) continue;
    const Taken taken = facts_.taken_in(queue);
    const struct {
      const char* name;
      int64_t used, more;
      int64_t (kube::Quantity::*unit)() const;
    } rows[] = {{"gpu", taken.gpu, pod.taken.gpu, &kube::Quantity::milli_value},
                {"cpu", taken.cpu, pod.taken.cpu, &kube::Quantity::milli_value},
                {"memory", taken.memory, pod.taken.memory, &kube::Quantity::value}};
    for (const auto& row : rows) {
      const Value& text = limit[row.name];
      if (text.is_null() || row.more == 0) continue;
      const auto most = kube::Quantity::parse(text.is_string() ? text.str() : text.dump());
      if (!most || row.used <= ((*most).*row.unit)()) continue;
      return error(Code::kInternal, "pod {} brings queue \"{}\" to {} of {}, its limit is {}",
                   pod.object.key(), queue, row.used, row.name, text.dump());
    }
  }
  return {};
}

base::Status QueueInvariants::see_eviction(const std::string& key, Time now) {
  const auto found = facts_.pods().find(key);
  if (found == facts_.pods().end()) return {};  // gone already
  const PodFact& pod = found->second;
  if (!evicted_.insert(std::string(pod.object.uid())).second) return {};
  ++evictions_;
  const std::string_view scheduler = pod.object.get("spec", "schedulerName").as_string();
  if (scheduler != "tessera" && scheduler != "default-scheduler")
    return error(Code::kInternal, "pod {} of scheduler {} was evicted", key, scheduler);
  if (of_daemon(pod.object))
    return error(Code::kInternal, "pod {} of a DaemonSet was evicted", key);
  TS_TRY_STATUS(check_budgets(pod, now));
  Eviction eviction;
  eviction.pod = key;
  eviction.uid = pod.object.uid();
  eviction.gang = pod.gang;
  eviction.job = pod.job();
  eviction.at = now;
  open_.push_back(std::move(eviction));
  return {};
}

// Counted anew: what is ready without the pod, and what ceased to be a moment ago, which the budget may not know.
base::Status QueueInvariants::check_budgets(const PodFact& pod, Time now) const {
  if (!ready(pod.object)) return {};
  for (const Object& budget : facts_.all("policy", "PodDisruptionBudget")) {
    const Value& least = budget.get("spec", "minAvailable");
    if (!least.is_int() || !covers(budget, pod.object)) continue;
    int64_t healthy = 0;
    for (const auto& [key, other] : facts_.pods()) {
      if (key == pod.object.key() || !covers(budget, other.object)) continue;
      const auto sick = sick_.find(key);
      const bool lately = sick != sick_.end() && now - sick->second <= options_.news;
      healthy += (ready(other.object) && !other.deleting) || lately ? 1 : 0;
    }
    for (const auto& [key, at] : sick_) {
      const bool gone = !facts_.pods().contains(key);
      healthy += gone && now - at <= options_.news && key.starts_with(std::string(pod.object.ns()))
                     ? 1
                     : 0;
    }
    const bool changed = now - facts_.rules_changed() <= options_.news;
    if (healthy >= least.as_int() || changed) continue;
    return error(Code::kInternal, "pod {} was evicted though {} wants {} and {} are left",
                 pod.object.key(), budget.key(), least.as_int(), healthy);
  }
  return {};
}

base::Status QueueInvariants::check_event(const Object& event, Time now) {
  const std::string_view reason = event["reason"].as_string();
  if (reason != "Preempted" && reason != "Reclaimed" && reason != "GangBroken") return {};
  const std::string_view uid = event.get("involvedObject", "uid").as_string();
  const auto found =
      std::ranges::find_if(open_, [&](const Eviction& one) { return one.uid == uid && !one.told; });
  if (found == open_.end()) return {};
  found->told = true;
  if (reason == "GangBroken") {
    found->paid = true;
    return {};
  }
  found->winner = winner_in(event["message"].as_string());
  const PodFact* victim = facts_.by_uid(uid);
  const GangFact* winner = facts_.gang_named(found->winner);
  if (victim == nullptr || winner == nullptr) {
    found->paid = true;  // it has gone meanwhile
    return {};
  }
  found->winner_changes = winner->changes;
  TS_TRY_STATUS(check_reason(*found, *victim, *winner, reason, now));
  return check_turns(*found, *winner);
}

base::Status QueueInvariants::check_reason(const Eviction& eviction, const PodFact& victim,
                                           const GangFact& winner, std::string_view reason,
                                           Time now) const {
  const auto gang = facts_.gangs().find(eviction.gang);
  if (gang == facts_.gangs().end()) return {};
  const scheduler::Group& theirs = gang->second.reading;
  const Duration since = options_.news + (now - eviction.at);
  const auto lately = [&](Time at) { return now - at <= since * 2; };
  if (lately(facts_.rules_changed()) || lately(winner.moved) || lately(gang->second.moved) ||
      lately(outage_))
    return {};
  const bool same = theirs.spec.queue == winner.reading.spec.queue;
  if (reason == "Preempted" && (!same || theirs.spec.priority >= winner.reading.spec.priority)) {
    return error(
        Code::kInternal,
        "pod {} of priority {} in queue \"{}\" was preempted by {} of priority {} in \"{}\"",
        victim.object.key(), theirs.spec.priority, theirs.spec.queue, eviction.winner,
        winner.reading.spec.priority, winner.reading.spec.queue);
  }
  const Object queue = facts_.object("tessera.dev", "Queue", "", theirs.spec.queue);
  if (reason == "Reclaimed" &&
      (same || !queue || !queue.get("spec", "reclaimable").as_bool(true))) {
    return error(Code::kInternal, "pod {} in queue \"{}\" was reclaimed for {} in \"{}\"",
                 victim.object.key(), theirs.spec.queue, eviction.winner,
                 winner.reading.spec.queue);
  }
  return {};
}

std::string QueueInvariants::job_of(const GangFact& gang) const {
  return gang.pods.empty() ? gang.reading.spec.name : facts_.pods().at(gang.pods.front()).job();
}

base::Status QueueInvariants::check_turns(const Eviction& eviction, const GangFact& winner) {
  const std::string theirs = eviction.job;
  const std::string ours = job_of(winner);
  // Changes of others since: what happened to pods of the two themselves does not count.
  uint64_t changes = facts_.changes();
  for (const auto& [key, gang] : facts_.gangs()) {
    const std::string job = job_of(gang);
    if (job == theirs || job == ours) changes -= gang.changes;
  }
  const auto other = turns_.find({ours, theirs});
  if (other != turns_.end() && other->second == changes)
    return error(Code::kInternal, "{} and {} evict each other in turn", ours, theirs);
  turns_[{theirs, ours}] = changes;
  return {};
}

base::Status QueueInvariants::check_paid(Eviction& eviction, Time now) const {
  const GangFact* winner = facts_.gang_named(eviction.winner);
  const Time since = std::max({facts_.rules_changed(), outage_});
  if (winner == nullptr || since >= eviction.at || winner->changes != eviction.winner_changes ||
      winner->moved >= eviction.at) {
    eviction.paid = true;  // bound meanwhile, or not the same any more
    return {};
  }
  if (now - eviction.at < kPaid) return {};
  const bool waits = std::ranges::any_of(winner->pods, [&](const auto& key) {
    const PodFact& pod = facts_.pods().at(key);
    return pod.node.empty() && !pod.deleting && !pod.finished;
  });
  eviction.paid = true;
  if (!waits) return {};
  return error(Code::kInternal, "pod {} was evicted for {}, which waits {} later", eviction.pod,
               eviction.winner, base::to_human(now - eviction.at));
}

bool QueueInvariants::under_budget(const GangFact& gang) const {
  for (const Object& budget : facts_.all("policy", "PodDisruptionBudget")) {
    for (const std::string& key : gang.pods) {
      if (covers(budget, facts_.pods().at(key).object)) return true;
    }
  }
  return false;
}

base::Status QueueInvariants::check_whole(const std::string& key, const GangFact& gang,
                                          Time now) const {
  const int run = facts_.running(gang);
  const int32_t least = facts_.minimum_left(gang, gang.least);
  if (run == 0 || run >= least || facts_.leaving(gang) || under_budget(gang)) return {};
  const bool unseen = outage_ >= gang.whole && facts_.present(gang, now, false) < least;
  if (unseen) return {};
  return error(Code::kInternal, "gang {} has {} members running and needs {}", key, run, least);
}

base::Status QueueInvariants::tick(Time now) {
  for (Eviction& eviction : open_) {
    if (!eviction.told && options_.all_told && now - eviction.at > kTold)
      return error(Code::kInternal, "pod {} was evicted and nobody said why", eviction.pod);
    if (eviction.told && !eviction.paid) TS_TRY_STATUS(check_paid(eviction, now));
  }
  std::erase_if(
      open_, [&](const Eviction& one) { return one.paid || (!one.told && now - one.at > kPaid); });
  for (const auto& [key, gang] : facts_.gangs()) {
    if (now - std::max(gang.changed, outage_) > kMend) TS_TRY_STATUS(check_whole(key, gang, now));
  }
  return {};
}

base::Status QueueInvariants::at_rest(Time now) const {
  for (const auto& [key, gang] : facts_.gangs()) TS_TRY_STATUS(check_whole(key, gang, now));
  return {};
}

}  // namespace tessera::sim
