// Why pods wait, written to the API: at once for one that was never told, then at most every `explain_period`. With
// thousands waiting it costs more than the decisions, so only so many are written a second.

#include <algorithm>

#include "scheduler/scheduler_state.h"
#include "scheduler/verdict.h"

namespace tessera::scheduler {

using base::Duration;
using json::Value;

namespace {

constexpr Duration kExplainTick = base::seconds(1);
constexpr int kExplainedPerTick = 64;

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

}  // namespace

bool Scheduler::State::waits(const PodEntry* pod) const {
  return pod != nullptr && !pod->finished && !pod->foreign && pod->node.empty() && !pod->assumed &&
         !pod->object.deleting() && pod->object.get("spec", "schedulingGates").empty();
}

void Scheduler::State::explain_touched() {
  const std::set<std::string> touched = model.take_touched();
  statuses->touch(touched);
  if (!model.queues().empty()) statuses->touch_queues();
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
  if (std::exchange(telling.queued, true)) return;
  (telling.told.empty() ? to_explain : to_explain_again).push_back(key);
}

void Scheduler::State::explain_some() {
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
    const auto telling = tellings.find(key);
    const PodEntry* pod = model.find(key);
    const bool due = telling != tellings.end() && waits(pod);
    if (due && clock.now() - telling->second.told_at < options.explain_period)
      break;  // those behind it wait too
    line.pop_front();
    if (telling != tellings.end()) telling->second.queued = false;
    if (!due) continue;
    const std::string why = model.why(*pod);
    if (!why.empty()) tell(*pod, why);
    Telling& told = tellings[key];
    told.queued = true;
    to_explain_again.push_back(key);
    if (why.empty()) told.told_at = clock.now();
  }
}

void Scheduler::State::explain_next() {
  if (explain_posted || (to_explain.empty() && to_explain_again.empty())) return;
  explain_posted = true;
  Duration wait = kExplainTick;
  if (to_explain.empty()) {
    const auto first = tellings.find(to_explain_again.front());
    if (first != tellings.end())
      wait = std::max(wait, first->second.told_at + options.explain_period - clock.now());
  }
  after(std::min(wait, options.explain_period), [](State& s) {
    s.explain_posted = false;
    s.explain_some();
    s.explain_next();
  });
}

// Of the pods of a group the first that waits holds its verdict.
std::string Scheduler::State::verdict_for(const PodEntry& pod, const std::string& why) const {
  const GroupEntry* group = model.group_with(pod);
  if (group == nullptr) return {};
  for (const auto& [arrival, slot] : group->pods) {
    const PodEntry& other = model.pod_at(slot);
    if (!waits(&other)) continue;
    if (&other != &pod) return {};
    break;
  }
  Verdict verdict = verdict_of(model.engine(), group->gang, now());
  if (!pod.problem.empty() || !pod.hold.empty()) {
    verdict.reason = pod.problem.empty() ? "PodHeld" : "PodInvalid";
    verdict.sentence = why;
  }
  return to_json(verdict).dump();
}

void Scheduler::State::tell(const PodEntry& pod, const std::string& why) {
  Telling& telling = tellings[pod.object.key()];
  telling.told_at = clock.now();
  std::string verdict = verdict_for(pod, why);
  if (telling.told == why && telling.verdict == verdict) return;
  const bool news = telling.told != why;
  telling.told = why;
  kube::Request request;
  request.verb = kube::Verb::kPatch;
  request.gvr = kube::core_v1("pods");
  request.ns = pod.object.ns();
  request.name = pod.object.name();
  request.subresource = "status";
  request.patch_type = kube::PatchType::kStrategic;
  request.body = Value::object(
      {{"metadata", Value::object({{"uid", pod.uid}})},
       {"status", Value::object({{"conditions",
                                  Value::array({unschedulable(pod.object, why, clock.now())})}})}});
  if (telling.verdict != verdict)
    request.body.ref("metadata", "annotations", kVerdictAnnotation) =
        verdict.empty() ? Value() : Value(verdict);
  telling.verdict = std::move(verdict);
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
