// Why pods wait, written to the API: at once for one that was never told, then at most every `explain_period`. With
// thousands waiting it costs more than the decisions, so only so many are written a second.

#include <algorithm>

#include "scheduler/scheduler_state.h"

namespace tessera::scheduler {

using base::Duration;
using json::Value;

namespace {

constexpr Duration kExplainTick = base::seconds(1);
constexpr int kExplainedPerTick = 64;
constexpr Duration kPositionPeriod = base::seconds(60);

// The condition as kube-scheduler writes it; the time is that of the change from or to Unschedulable.
Value unschedulable(const kube::Object& pod, const std::string& why, base::Time now) {
  std::string since = base::to_rfc3339(now);
  for (const Value& condition : pod.get("status", "conditions").items()) {
    if (condition["type"].as_string() == "PodScheduled" &&
        condition["status"].as_string() == "False") {
      since = condition["lastTransitionTime"].str();
    }
  }
  return Value::object({{"type", "PodScheduled"},
                        {"status", "False"},
                        {"reason", "Unschedulable"},
                        {"message", why},
                        {"lastProbeTime", Value()},
                        {"lastTransitionTime", since}});
}

// As whoever led before has written it.
bool says_already(const kube::Object& pod, const std::string& why, const std::string& verdict) {
  if (pod.annotation(kVerdictAnnotation) != verdict) return false;
  for (const Value& condition : pod.get("status", "conditions").items()) {
    if (condition["type"].as_string() == "PodScheduled")
      return condition["status"].as_string() == "False" && condition["message"].as_string() == why;
  }
  return false;
}

}  // namespace

bool Scheduler::State::waits(const PodEntry* pod) const {
  return pod != nullptr && !pod->finished && !pod->foreign && pod->node.empty() && !pod->assumed &&
         !pod->object.deleting() && pod->object.get("spec", "schedulingGates").empty();
}

void Scheduler::State::explain_touched() {
  const std::set<std::string> touched = model.take_touched();
  statuses->touch(touched);
  if (!model.queues().empty() || !model.reservations().empty()) statuses->touch_queues();
  note_groups(touched);
  note_queues();
  for (const std::string& name : touched) {
    const auto group = model.groups().find(name);
    if (group == model.groups().end()) continue;
    for (const auto& [arrival, slot] : group->second.pods) {
      const PodEntry& pod = model.pod_at(slot);
      if (waits(&pod)) explain_later(pod.object.key());
    }
  }
  explain_some();
  explain_next();
}

void Scheduler::State::explain_later(const std::string& key) {
  Telling& telling = tellings[key];
  const PodEntry* pod = model.find(key);
  const GroupEntry* group = pod == nullptr ? nullptr : model.group_with(*pod);
  const bool queued = std::exchange(telling.queued, true);
  if (!queued) return (telling.told.empty() ? to_explain : to_explain_again).push_back(key);
  if (group == nullptr || telling.told.empty() || telling.urgent) return;
  const queueing::Gang& gang = model.engine().gang(group->gang);
  if (gang.wait.reason == telling.reason && gang.members.size() == telling.members) return;
  telling.urgent = true;
  to_explain.push_back(key);
}

void Scheduler::State::explain_some() {
  if (!acting()) return;
  const Duration at = clock.monotonic();
  if (at - explained_since >= kExplainTick) {
    explained_since = at;
    explained = 0;
  }
  for (; explained < kExplainedPerTick; ++explained) {
    const bool fresh = !to_explain.empty();
    std::deque<std::string>& line = fresh ? to_explain : to_explain_again;
    if (line.empty()) break;
    const std::string key = line.front();
    const auto found = tellings.find(key);
    const PodEntry* pod = model.find(key);
    const bool due = found != tellings.end() && waits(pod);
    if (due && now() - found->second.told_at < (fresh ? kExplainTick : options.explain_period))
      break;  // those behind it wait too
    line.pop_front();
    const bool in_both = found != tellings.end() && std::exchange(found->second.urgent, false);
    if (found != tellings.end()) found->second.queued = in_both;
    if (!due) continue;
    const std::string why = model.why(*pod);
    if (!why.empty()) tell(*pod, why);
    Telling& told = tellings[key];
    if (!std::exchange(told.queued, true)) to_explain_again.push_back(key);
    if (why.empty()) told.told_at = now();
  }
}

void Scheduler::State::explain_next() {
  if (to_explain.empty() && to_explain_again.empty()) return;
  Duration wait = kExplainTick;
  if (to_explain.empty()) {
    const auto first = tellings.find(to_explain_again.front());
    if (first != tellings.end())
      wait = std::max(wait, first->second.told_at + options.explain_period - now());
  }
  wait = std::min(wait, options.explain_period);
  const Duration at = clock.monotonic() + wait;
  if (explain_at && *explain_at <= at) return;
  explain_at = at;  // an earlier one than was posted before
  after(wait, [at](State& s) {
    if (s.explain_at != at) return;
    s.explain_at.reset();
    s.explain_some();
    s.explain_next();
  });
}

// Of the pods of a group the first that waits holds its verdict.
std::optional<Verdict> Scheduler::State::verdict_for(const PodEntry& pod,
                                                     const std::string& why) const {
  const GroupEntry* group = model.group_with(pod);
  if (group == nullptr) return std::nullopt;
  for (const auto& [arrival, slot] : group->pods) {
    const PodEntry& other = model.pod_at(slot);
    if (!waits(&other)) continue;
    if (&other != &pod) return std::nullopt;
    break;
  }
  Verdict verdict = verdict_of(model.engine(), group->gang, now());
  if (!pod.problem.empty() || !pod.hold.empty()) {
    verdict.reason = pod.problem.empty() ? "PodHeld" : "PodInvalid";
    verdict.sentence = why;
  }
  return verdict;
}

void Scheduler::State::tell(const PodEntry& pod, const std::string& why) {
  if (!acting()) return;
  Telling& telling = tellings[pod.object.key()];
  telling.told_at = now();
  if (const GroupEntry* group = model.group_with(pod)) {
    const queueing::Gang& gang = model.engine().gang(group->gang);
    telling.reason = gang.wait.reason;
    telling.members = gang.members.size();
  }
  const auto verdict = verdict_for(pod, why);
  const int64_t position = verdict ? verdict->position : 0;
  const std::string whole = verdict ? to_json(*verdict).dump() : std::string();
  // Every start before it moves its position: that alone is written now and then.
  std::string lasting = whole;
  if (position != 0) {
    Verdict without_position = *verdict;
    without_position.position = 0;
    lasting = to_json(without_position).dump();
  }
  if (telling.told.empty() && says_already(pod.object, why, whole)) {
    telling.told = why;
    telling.verdict = lasting;
    telling.position = position;
    telling.written_at = now();
  }
  if (telling.told == why && telling.verdict == lasting &&
      (position == telling.position || now() - telling.written_at < kPositionPeriod))
    return;
  telling.position = position;
  const bool news = telling.told != why;
  const bool held_one = !telling.verdict.empty();
  telling.told = why;
  telling.written_at = now();
  kube::Request request = pod_status_patch(
      pod.object, kube::PatchType::kStrategic,
      Value::object({{"conditions", Value::array({unschedulable(pod.object, why, clock.now())})}}));
  if (verdict)
    request.body.ref("metadata", "annotations", kVerdictAnnotation) = whole;
  else if (held_one)
    request.body.ref("metadata", "annotations", kVerdictAnnotation) = Value();
  telling.verdict = std::move(lasting);
  client.call(std::move(request), [weak = weak_from_this(), key = pod.object.key(),
                                   uid = pod.uid](const kube::Reply& reply) {
    auto self = weak.lock();
    if (!self || reply) return;
    const PodEntry* again = self->model.find(key);
    if (again == nullptr || again->uid != uid) return;
    Telling& not_taken = self->tellings[key];  // to be written again
    not_taken.told.clear();
    not_taken.verdict.clear();
  });
  if (news && options.events) recorder.warning(pod.object, "FailedScheduling", why);
}

}  // namespace tessera::scheduler
