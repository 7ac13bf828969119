#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "scheduler/group_reading.h"

namespace tessera::scheduler {
namespace {

constexpr int64_t kSecondsMax = int64_t{100} * 365 * 86400;
constexpr int32_t kKaiNeverPreempted = 100;
constexpr size_t kTextShown = 40;

struct Said {
  std::string value{};
  std::string where{};
};

// The first one counts; the others are compared with it.
class Candidates {
 public:
  void add(std::string_view value, std::string_view where) {
    if (!value.empty()) said_.push_back({std::string(value), std::string(where)});
  }
  // Only where nothing has been said before; never a contradiction.
  void fall_back(std::string_view value, std::string_view where) {
    if (!value.empty() && said_.empty()) said_.push_back({std::string(value), std::string(where)});
  }
  std::string take(std::string_view what, std::vector<std::string>& notes) const {
    if (said_.empty()) return {};
    for (const Said& other : said_) {
      if (other.value == said_.front().value) continue;
      notes.push_back(fmt::format("{} is {} by {}, {} by {}: the first counts; keep one of them",
                                  what, said_.front().value, said_.front().where, other.value,
                                  other.where));
    }
    return said_.front().value;
  }

 private:
  std::vector<Said> said_;
};

std::string_view marked(const PodContext& pod, const kube::Object& object, std::string_view key) {
  const std::string_view on_pod = mark_of(pod.pod, key);
  if (!on_pod.empty()) return on_pod;
  const std::string_view on_group = mark_of(object, key);
  return on_group.empty() ? pod.mark(key) : on_group;
}

// A LocalQueue is known by its namespace and name, or by its name where that is the name of a queue.
std::string local_queue(const PodContext& pod, std::string_view name) {
  if (name.empty()) return {};
  const std::string full = fmt::format("{}/{}", pod.pod.ns(), name);
  const bool has_full = pod.sources.queue_exists && pod.sources.queue_exists(full);
  return has_full ? full : std::string(name);
}

// YuniKorn's label is a plain "queue", which may mean anything where nothing else speaks of YuniKorn.
std::string_view yunikorn_queue(const PodContext& pod) {
  const std::string_view full = pod.mark("yunikorn.apache.org/queue");
  if (!full.empty()) return full;
  const bool meant = !pod.mark("applicationId").empty() ||
                     !pod.mark("yunikorn.apache.org/app-id").empty() ||
                     pod.pod.get("spec", "schedulerName").as_string() == "yunikorn";
  return meant ? pod.mark("queue") : std::string_view();
}

void read_queue(const PodContext& pod, const kube::Object& object, Group& out) {
  constexpr std::string_view kVolcano = "scheduling.volcano.sh/queue-name";
  Candidates queue;
  queue.add(object.get("spec", "queue").as_string(), "spec.queue of the PodGroup");
  for (const Owner& owner : pod.owners) {
    const json::Value& spec = owner.object["spec"];
    queue.add(spec.get("runPolicy", "schedulingPolicy", "queue").as_string(),
              "runPolicy.schedulingPolicy.queue of the owner");
    if (group_of(owner.name.api_version) == "batch.volcano.sh")
      queue.add(spec["queue"].as_string(), "spec.queue of the owner");
  }
  for (const char* key : {"tessera.dev/queue", "kai.scheduler/queue"})
    queue.add(marked(pod, object, key), key);
  queue.add(marked(pod, object, kVolcano), kVolcano);
  queue.fall_back(mark_of(pod.ns, kVolcano), kVolcano);
  queue.add(marked(pod, object, "volcano.sh/queue-name"), "volcano.sh/queue-name");
  queue.add(local_queue(pod, marked(pod, object, "kueue.x-k8s.io/queue-name")),
            "kueue.x-k8s.io/queue-name");
  queue.add(yunikorn_queue(pod), "yunikorn's queue");
  queue.fall_back(mark_of(pod.ns, "tessera.dev/queue"), "tessera.dev/queue");
  queue.fall_back("default", "default");
  out.spec.queue = queue.take("the queue", out.notes);
}

// Classes that KAI's own installation makes.
std::optional<int32_t> kai_class(std::string_view name) {
  if (name == "train") return 50;
  if (name == "build-preemptible") return 75;
  if (name == "build") return 100;
  if (name == "inference") return 125;
  return std::nullopt;
}

int32_t clamped(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                                                  std::numeric_limits<int32_t>::max()));
}

// True where KAI's words decided.
bool read_priority(const PodContext& pod, const kube::Object& object, Group& out) {
  out.spec.priority = clamped(pod.pod.get("spec", "priority").as_int());
  const json::Value& own = object.get("spec", "priority");
  Candidates names;
  names.add(object.get("spec", "priorityClassName").as_string(),
            "spec.priorityClassName of the PodGroup");
  for (const Owner& owner : pod.owners)
    names.add(
        owner.object.get("spec", "runPolicy", "schedulingPolicy", "priorityClass").as_string(),
        "runPolicy.schedulingPolicy.priorityClass of the owner");
  const std::string_view kai = pod.mark("priorityClassName");
  names.add(kai, "label priorityClassName");
  names.add(pod.mark("ray.io/priority-class-name"), "label ray.io/priority-class-name");
  names.add(pod.mark("kueue.x-k8s.io/priority-class"), "label kueue.x-k8s.io/priority-class");
  const std::string name = names.take("the priority class", out.notes);
  const bool by_kai = out.dialect == Dialect::kKai || (!name.empty() && name == kai);
  if (own.is_int()) {
    const int32_t by_pod = std::exchange(out.spec.priority, clamped(own.as_int()));
    if (by_pod != out.spec.priority && by_pod != 0)
      out.notes.push_back(
          fmt::format("the priority of the PodGroup is {}, that of its pods {}: the first counts; "
                      "name their class in spec.priorityClassName of the PodGroup",
                      out.spec.priority, by_pod));
  } else if (!name.empty()) {
    std::optional<int32_t> value;
    if (pod.sources.priority_class) value = pod.sources.priority_class(name);
    if (!value && by_kai) value = kai_class(name);
    if (value) {
      out.spec.priority = *value;
    } else {
      out.notes.push_back(
          fmt::format("priority class {} does not exist: the pod's own priority "
                      "{} counts; create it or name another",
                      name, out.spec.priority));
    }
  }
  return by_kai;
}

void read_preemption(const PodContext& pod, const kube::Object& object, bool by_kai, Group& out) {
  if (pod.pod.get("spec", "preemptionPolicy").as_string() == "Never") out.spec.preempts = false;
  std::string_view kai = object.get("spec", "preemptibility").as_string();
  if (kai.empty()) kai = marked(pod, object, "kai.scheduler/preemptibility");
  if (kai.empty() && by_kai && out.spec.priority >= kKaiNeverPreempted) kai = "non-preemptible";
  const std::string_view ours = marked(pod, object, "tessera.dev/preemptible");
  const std::string_view volcano = marked(pod, object, "volcano.sh/preemptable");
  if (!ours.empty()) {
    out.spec.preemptible = ours != "false";
  } else if (!kai.empty()) {
    out.spec.preemptible = kai != "non-preemptible";
  } else if (!volcano.empty()) {
    out.spec.preemptible = volcano != "false";
  }
}

class Limit {
 public:
  explicit Limit(std::vector<std::string>& notes) : notes_(notes) {}
  void seconds(const json::Value& value, std::string_view where) {
    if (value.is_null() || limit_) return;
    const int64_t count = value.as_int();
    if (count > 0) {
      limit_ = base::seconds(std::min(count, kSecondsMax));
    } else {
      unreadable(value.is_string() ? value.str() : value.dump(), where);
    }
  }
  void text(std::string_view text, std::string_view where,
            std::optional<base::Duration> (*parse)(std::string_view)) {
    if (text.empty() || limit_) return;
    limit_ = parse(text);
    if (!limit_) unreadable(text, where);
  }
  std::optional<base::Duration> limit() const { return limit_; }

 private:
  void unreadable(std::string_view text, std::string_view where) {
    notes_.push_back(fmt::format("{}: \"{}\" is no time above 0, so it does not count", where,
                                 text.substr(0, kTextShown)));
  }
  std::vector<std::string>& notes_;
  std::optional<base::Duration> limit_{};
};

std::optional<base::Duration> seconds_text(std::string_view text) {
  int64_t count = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (ec != std::errc() || end != text.data() + text.size() || count <= 0) return std::nullopt;
  return base::seconds(std::min(count, kSecondsMax));
}

std::optional<base::Duration> go_duration(std::string_view text) {
  const auto parsed = base::parse_duration(text);
  if (!parsed) return seconds_text(text);
  return parsed->ns > 0 ? std::optional(*parsed) : std::nullopt;
}

void read_runtime(const PodContext& pod, const kube::Object& object, Group& out) {
  constexpr const char* kKueue = "kueue.x-k8s.io/max-exec-time-seconds";
  constexpr const char* kSlurm = "slurmjob.slinky.slurm.net/timelimit";
  Limit limit(out.notes);
  limit.seconds(pod.pod.get("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds of the pod");
  for (const Owner& owner : pod.owners)
    limit.seconds(owner.object.get("spec", "activeDeadlineSeconds"),
                  fmt::format("activeDeadlineSeconds of {}", owner.name.kind));
  for (const Owner& owner : pod.owners)
    limit.seconds(owner.object.get("spec", "runPolicy", "activeDeadlineSeconds"),
                  fmt::format("runPolicy.activeDeadlineSeconds of {}", owner.name.kind));
  limit.text(marked(pod, object, kKueue), kKueue, seconds_text);
  limit.text(marked(pod, object, kSlurm), kSlurm, slurm_time);
  for (const Owner& owner : pod.owners) {
    const json::Value& estimate = owner.object.get("spec", "runningEstimate");
    if (estimate.is_string()) {
      limit.text(estimate.as_string(), "spec.runningEstimate", go_duration);
    } else {
      limit.seconds(estimate, "spec.runningEstimate");
    }
  }
  out.spec.runtime = limit.limit();
}

// Numbers between ':'; at most three, each up to a hundred million.
std::optional<std::vector<int64_t>> clock_of(std::string_view text) {
  constexpr int64_t kMost = 100'000'000;
  std::vector<int64_t> out;
  while (true) {
    const size_t colon = text.find(':');
    const std::string_view item = text.substr(0, colon);
    int64_t value = 0;
    const auto [end, ec] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (ec != std::errc() || end != item.data() + item.size() || value < 0 || value > kMost)
      return std::nullopt;
    out.push_back(value);
    if (out.size() > 3) return std::nullopt;
    if (colon == std::string_view::npos) return out;
    text.remove_prefix(colon + 1);
  }
}

}  // namespace

std::optional<base::Duration> slurm_time(std::string_view text) {
  int64_t days = 0;
  bool has_days = false;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto front = clock_of(text.substr(0, dash));
    if (!front || front->size() != 1) return std::nullopt;
    days = front->front();
    has_days = true;
    text.remove_prefix(dash + 1);
  }
  const auto parts = clock_of(text);
  if (!parts) return std::nullopt;
  // With days the first number is hours; without, it is hours only where there are three.
  constexpr int64_t kUnits[] = {3600, 60, 1};
  const size_t first = has_days || parts->size() == 3 ? 0 : 1;
  int64_t total = days * 86400;
  for (size_t i = 0; i < parts->size(); ++i) total += (*parts)[i] * kUnits[first + i];
  return total > 0 ? std::optional(base::seconds(std::min(total, kSecondsMax))) : std::nullopt;
}

void read_terms(const PodContext& pod, const kube::Object& object, Group& out) {
  read_queue(pod, object, out);
  const bool by_kai = read_priority(pod, object, out);
  read_preemption(pod, object, by_kai, out);
  read_runtime(pod, object, out);
}

}  // namespace tessera::scheduler
