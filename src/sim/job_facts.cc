#include "sim/job_facts.h"

#include <algorithm>
#include <charconv>

#include "kube/pod.h"
#include "kube/pod_phase.h"
#include "kube/pod_resources.h"
#include "scheduler/model_reading.h"

namespace tessera::sim {
namespace {

using base::Time;
using kube::Object;
using kube::WatchEvent;
using scheduler::object_key;

bool ours(const Object& pod) {
  const std::string_view name = pod.get("spec", "schedulerName").as_string();
  return name == "tessera" || name == "default-scheduler";
}

Taken taken_by(const Object& object) {
  Taken out;
  const auto pod = kube::decode_pod(object);
  if (!pod) return out;
  const kube::ResourceList requests = kube::pod_requests(*pod);
  out.cpu = kube::amount_of(requests, "cpu").milli_value();
  out.memory = kube::amount_of(requests, "memory").value();
  out.gpu = kube::amount_of(requests, "nvidia.com/gpu").milli_value();
  int64_t milli = 0;
  const std::string_view text = object.annotation("tessera.dev/gpu-milli");
  std::from_chars(text.data(), text.data() + text.size(), milli);
  out.gpu += milli;
  return out;
}

// Only what controllers write has changed.
bool same_wish(const Object& a, const Object& b) {
  if (!a || !b || a.uid() != b.uid()) return false;
  return a["spec"] == b["spec"] && a["value"] == b["value"] &&
         a.metadata()["labels"] == b.metadata()["labels"] &&
         a.metadata()["annotations"] == b.metadata()["annotations"];
}

// What a node can take: all but its heartbeat.
bool same_node(const Object& a, const Object& b) {
  const auto ready = [](const Object& node) {
    for (const json::Value& one : node.get("status", "conditions").items()) {
      if (one["type"].as_string() == "Ready") return one["status"].str();
    }
    return std::string();
  };
  return same_wish(a, b) && ready(a) == ready(b) &&
         a["status"]["allocatable"] == b["status"]["allocatable"];
}

}  // namespace

void Taken::add(const Taken& other) {
  gpu += other.gpu;
  cpu += other.cpu;
  memory += other.memory;
}

std::string PodFact::job() const {
  for (const json::Value& owner : object.metadata()["ownerReferences"].items()) {
    if (owner["controller"].as_bool()) return std::string(object.ns()) + "/" + owner["name"].str();
  }
  return object.key();
}

scheduler::GroupSources JobFacts::sources() const {
  scheduler::GroupSources out;
  out.object = [this](std::string_view group, std::string_view kind, std::string_view ns,
                      std::string_view name) { return object(group, kind, ns, name); };
  out.ns = [this](std::string_view name) { return object("", "Namespace", "", name); };
  out.priority_class = [this](std::string_view name) -> std::optional<int32_t> {
    const Object found = object("scheduling.k8s.io", "PriorityClass", "", name);
    if (!found) return std::nullopt;
    return static_cast<int32_t>(found["value"].as_int());
  };
  out.queue_exists = [this](std::string_view name) {
    return static_cast<bool>(object("tessera.dev", "Queue", "", name));
  };
  return out;
}

Object JobFacts::object(std::string_view group, std::string_view kind, std::string_view ns,
                        std::string_view name) const {
  const auto found = objects_.find(object_key(group, kind, ns, name));
  return found == objects_.end() ? Object() : found->second;
}

std::vector<Object> JobFacts::all(std::string_view group, std::string_view kind) const {
  std::vector<Object> out;
  const std::string prefix = std::string(group) + "/" + std::string(kind) + "/";
  for (auto at = objects_.lower_bound(prefix);
       at != objects_.end() && at->first.starts_with(prefix); ++at)
    out.push_back(at->second);
  return out;
}

void JobFacts::touch(GangFact& gang, Time now) {
  gang.changed = now;
  ++gang.changes;
  ++changes_;
}

void JobFacts::see(const WatchEvent& event, Time now) {
  if (event.object.kind() == "Pod") return see_pod(event, now);
  see_object(event, now);
}

void JobFacts::see_object(const WatchEvent& event, Time now) {
  constexpr std::string_view kKinds[] = {
      "Node",       "Namespace", "PriorityClass", "PodDisruptionBudget", "Job",
      "ReplicaSet", "Queue",     "Deployment",    "DaemonSet",           "PodGroup"};
  const std::string_view kind = event.object.kind();
  if (std::ranges::find(kKinds, kind) == std::end(kKinds)) return;
  const bool gone = event.type == WatchEvent::Type::kDeleted;
  const std::string key = object_key(event.object);
  Object before = std::move(objects_[key]);
  if (gone) objects_.erase(key);
  if (!gone) objects_[key] = event.object;
  if (kind == "PodDisruptionBudget") rules_changed_ = now;
  if (!gone && (kind == "Node" ? same_node(before, event.object) : same_wish(before, event.object)))
    return;
  if (kind == "DaemonSet" || kind == "Deployment" || kind == "ReplicaSet") return;
  ++changes_;
  rules_changed_ = now;
  if (kind == "Queue") queues_changed_ = now;
  if (kind != "Node" && kind != "PodDisruptionBudget") reread(event.object.ns(), now);
}

void JobFacts::reread(std::string_view ns, Time now) {
  std::vector<std::string> keys;
  for (const auto& [key, pod] : pods_) {
    if (ns.empty() || pod.object.ns() == ns) keys.push_back(key);
  }
  for (const std::string& key : keys) read(key, now);
}

void JobFacts::leave(const std::string& key, Time now) {
  PodFact& pod = pods_.at(key);
  const auto found = gangs_.find(pod.gang);
  pod.gang.clear();
  if (found == gangs_.end()) return;
  std::erase(found->second.pods, key);
  found->second.gone.push_back(now);
  if (pod.runs()) found->second.ran = now;
  touch(found->second, now);
  if (found->second.pods.empty()) gangs_.erase(found);
}

void JobFacts::read(const std::string& key, Time now) {
  PodFact& pod = pods_.at(key);
  if (!ours(pod.object)) return;
  scheduler::Group reading = scheduler::read_group(pod.object, sources());
  if (reading.key != pod.gang) {
    leave(key, now);
    pod.gang = reading.key;
    gangs_[pod.gang].pods.push_back(key);
    touch(gangs_[pod.gang], now);
  }
  GangFact& gang = gangs_[pod.gang];
  if (gang.pods.front() != key) return;
  if (gang.minimums.empty() || gang.minimums.back().second != reading.spec.min_members) {
    gang.minimums.emplace_back(now, reading.spec.min_members);
    touch(gang, now);
  }
  if (gang.reading.spec.queue != reading.spec.queue) gang.moved = now;
  if (gang.reading.waits.empty() && !reading.waits.empty()) gang.held_since = now;
  if (gang.reading.waits != reading.waits) touch(gang, now);
  gang.reading = std::move(reading);
  if (running(gang) > 0) gang.least = std::min(gang.least, gang.reading.spec.min_members);
}

void JobFacts::see_pod(const WatchEvent& event, Time now) {
  const std::string key(event.object.key());
  const auto known = pods_.find(key);
  if (known != pods_.end() && known->second.object.uid() != event.object.uid()) {
    leave(key, now);
    pods_.erase(key);
  }
  if (event.type == WatchEvent::Type::kDeleted) {
    if (!pods_.contains(key)) return;
    ++changes_;
    leave(key, now);
    pods_.erase(key);
    by_uid_[std::string(event.object.uid())].gone = true;
    return;
  }
  const bool fresh = !pods_.contains(key);
  PodFact& pod = pods_[key];
  const PodFact before = pod;
  pod.object = event.object;
  pod.node = pod.object.get("spec", "nodeName").str();
  pod.finished = kube::has_ended(pod.object);
  pod.deleting = pod.object.deleting();
  if (fresh) pod.taken = taken_by(pod.object);
  const auto same = [&](const char* field) {
    return before.object.metadata()[field] == pod.object.metadata()[field];
  };
  if (fresh || !same("labels") || !same("ownerReferences") || !same("annotations")) read(key, now);
  if (fresh && pod.gang.empty()) ++changes_;
  by_uid_[std::string(pod.object.uid())] = pod;
  const auto found = gangs_.find(pod.gang);
  if (found == gangs_.end()) return;
  GangFact& gang = found->second;
  if (!before.finished && pod.object.get("status", "phase").as_string() == "Succeeded")
    ++gang.succeeded;
  if (!fresh && !before.finished && pod.finished) gang.gone.push_back(now);
  if (before.finished != pod.finished || before.deleting != pod.deleting || before.node != pod.node)
    touch(gang, now);
  const int run = running(gang);
  if (before.runs() && !pod.runs()) gang.ran = now;
  if (before.runs() && run + 1 >= minimum_left(gang, gang.least)) gang.whole = now;
  if (run == 0) gang.least = least_minimum_lately(gang, now);
  if (pod.runs() && !before.runs() && run == 1) gang.least = least_minimum_lately(gang, now);
}

const PodFact* JobFacts::by_uid(std::string_view uid) const {
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : &found->second;
}

const GangFact* JobFacts::gang_named(std::string_view name) const {
  for (const auto& [key, gang] : gangs_) {
    if (gang.reading.spec.name == name) return &gang;
  }
  return nullptr;
}

int JobFacts::running(const GangFact& gang) const {
  return static_cast<int>(
      std::ranges::count_if(gang.pods, [&](const auto& key) { return pods_.at(key).runs(); }));
}

int JobFacts::present(const GangFact& gang, Time now, bool lately) const {
  int out = 0;
  for (const std::string& key : gang.pods) {
    const PodFact& pod = pods_.at(key);
    out += !pod.finished && (lately || !pod.deleting) ? 1 : 0;
  }
  if (!lately) return out;
  for (const Time at : gang.gone) out += now - at <= news_ ? 1 : 0;
  return out;
}

bool JobFacts::leaving(const GangFact& gang) const {
  return std::ranges::any_of(gang.pods, [&](const auto& key) {
    const PodFact& pod = pods_.at(key);
    return pod.deleting && !pod.finished && !pod.node.empty();
  });
}

int32_t JobFacts::minimum_left(const GangFact& gang, int32_t asked) const {
  const scheduler::ObjectName& name = gang.reading.object;
  const Object job = name.kind == "Job" ? object("batch", "Job", name.ns, name.name) : Object();
  return scheduler::minimum_left(asked, gang.succeeded, job);
}

int32_t JobFacts::least_minimum_lately(const GangFact& gang, Time now) const {
  int32_t least = gang.reading.spec.min_members;
  for (auto at = gang.minimums.rbegin(); at != gang.minimums.rend(); ++at) {
    least = std::min(least, at->second);
    if (now - at->first > news_) break;  // it counted before that
  }
  return least;
}

std::vector<std::string> JobFacts::queues_above(const std::string& queue) const {
  std::vector<std::string> out;
  std::string at = queue;
  while (!at.empty() && std::ranges::find(out, at) == out.end()) {
    const Object found = object("tessera.dev", "Queue", "", at);
    if (!found) break;
    out.push_back(at);
    at = found.get("spec", "parent").str();
  }
  return out;
}

Taken JobFacts::taken_in(const std::string& queue) const {
  Taken out;
  for (const auto& [key, gang] : gangs_) {
    const auto above = queues_above(gang.reading.spec.queue);
    if (std::ranges::find(above, queue) == above.end()) continue;
    for (const std::string& name : gang.pods) {
      const PodFact& pod = pods_.at(name);
      if (!pod.node.empty() && !pod.finished) out.add(pod.taken);
    }
  }
  return out;
}

}  // namespace tessera::sim
