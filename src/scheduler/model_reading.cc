#include "scheduler/model_reading.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/group_reading.h"

namespace tessera::scheduler {
namespace {

constexpr int32_t kSystemPriority = 2'000'000'000;

std::optional<base::Time> time_in(const json::Value& text) {
  const auto time = base::parse_rfc3339(text.as_string());
  return time ? std::optional(*time) : std::nullopt;
}

}  // namespace

base::Time started_at(const kube::Object& pod, base::Time otherwise) {
  for (const json::Value& condition : pod.get("status", "conditions").items()) {
    if (condition["type"].as_string() != "PodScheduled" ||
        condition["status"].as_string() != "True")
      continue;
    if (const auto time = time_in(condition["lastTransitionTime"])) return *time;
  }
  if (const auto time = time_in(pod.get("status", "startTime"))) return *time;
  return otherwise;
}

base::Time saved_at(const kube::Object& pod) {
  const auto time = base::parse_rfc3339(pod.annotation("tessera.dev/checkpointed-at"));
  return time ? *time : base::Time{};
}

bool never_a_victim(const kube::Object& pod) {
  if (!pod.annotation("kubernetes.io/config.mirror").empty()) return true;
  if (pod.get("spec", "priority").as_int(0) >= kSystemPriority) return true;
  for (const json::Value& owner : pod.metadata()["ownerReferences"].items()) {
    const std::string_view kind = owner["kind"].as_string();
    if (owner["controller"].as_bool() && (kind == "DaemonSet" || kind == "Node")) return true;
  }
  return false;
}

int32_t minimum_left(int32_t asked, int32_t succeeded, const kube::Object& job) {
  const json::Value& completions = job.get("spec", "completions");
  if (job.kind() == "Job" && completions.is_number()) {
    // Others take the place of those that have finished, as long as there is something left to do.
    const int64_t done = std::max<int64_t>(job.get("status", "succeeded").as_int(0), 0);
    const int64_t left = std::max<int64_t>(completions.as_int(1) - done, 1);
    return static_cast<int32_t>(std::min<int64_t>(asked, left));
  }
  return std::max(asked - succeeded, std::min(asked, 1));
}

std::string evict_text(const queueing::Engine& engine, const queueing::Evict& evict) {
  const queueing::Gang& victim = engine.gang(engine.member(evict.member).gang);
  if (!evict.for_gang.valid())
    return fmt::format(
        "{} has fewer members than must run together and found no place for others: "
        "it is released as a whole and waits again",
        victim.spec.name);
  const queueing::Gang& winner = engine.gang(evict.for_gang);
  if (evict.reason == queueing::EvictReason::kPreempted)
    return fmt::format("{} of priority {} takes the place of {} of priority {} in queue \"{}\"",
                       winner.spec.name, winner.spec.priority, victim.spec.name,
                       victim.spec.priority, winner.spec.queue);
  return fmt::format("queue \"{}\" takes back its share for {}; queue \"{}\" has more than its own",
                     winner.spec.queue, winner.spec.name, victim.spec.queue);
}

std::string object_key(std::string_view group, std::string_view kind, std::string_view ns,
                       std::string_view name) {
  return fmt::format("{}/{}/{}/{}", group, kind, ns, name);
}

std::string pod_group_key(const kube::Object& pod_group) {
  return fmt::format("PodGroup.{}/{}/{}", group_of(pod_group.api_version()), pod_group.ns(),
                     pod_group.name());
}

std::string object_key(const kube::Object& object) {
  return object_key(group_of(object.api_version()), object.kind(), object.ns(), object.name());
}

}  // namespace tessera::scheduler
