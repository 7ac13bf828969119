#include "scheduler/queue_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "kube/quantity.h"
#include "scheduler/conditions.h"
#include "scheduler/group_reading.h"

namespace tessera::scheduler {
namespace {

using queueing::Dim;
using queueing::Engine;
using queueing::QueueId;

bool is_gpu(std::string_view name) {
  return name == "gpu" || name.starts_with("gpu/");
}

std::string quantity(const Engine& engine, Dim dim, int64_t amount) {
  amount = std::max<int64_t>(amount, 0);
  if (is_gpu(engine.dims().name(dim))) {
    constexpr int64_t kUnitsPerMilli = queueing::kUnitsPerGpu / 1000;
    return kube::Quantity::milli(amount / kUnitsPerMilli).to_string();
  }
  if (dim == queueing::kCpu) return kube::Quantity::milli(amount).to_string();
  if (dim == queueing::kMemory)
    return kube::Quantity(core::sat_mul(amount, int64_t{1} << 20),
                          kube::Quantity::Format::kBinarySi)
        .to_string();
  return kube::Quantity(amount).to_string();
}

// The queue as the engine has it; nothing used where it has none.
struct Reading {
  const Engine& engine;
  QueueId id{};

  bool known() const {
    return id.valid() && static_cast<size_t>(id.value) < engine.queues().size();
  }
  int64_t used(Dim dim) const { return known() ? engine.use(id).used.at(dim) : 0; }
  int64_t wanted(Dim dim) const { return known() ? engine.use(id).wanted.at(dim) : 0; }
  int64_t share(Dim dim) const {
    if (!known() || dim >= engine.use(id).share.size()) return 0;
    const int64_t share = engine.use(id).share[dim];
    return share == queueing::kUnlimited ? 0 : share;
  }
  bool names(Dim dim) const {
    return known() && (engine.queues().at(id).spec.quota.has(dim) ||
                       engine.queues().at(id).spec.limit.has(dim));
  }
  Dim dims() const { return static_cast<Dim>(engine.dims().size()); }
};

// What is more than nothing, and what is to be shown even so.
template <class Amount, class Shown>
void set_amounts(json::Value& status, const char* key, const Reading& queue, Amount amount,
                 Shown shown) {
  json::Value out = json::Value::object();
  for (Dim dim = 0; dim < queue.dims(); ++dim) {
    if (amount(dim) > 0 || shown(dim))
      out.set(queue.engine.dims().name(dim), quantity(queue.engine, dim, amount(dim)));
  }
  status.set(key, std::move(out));
}

Condition ready(const Reading& queue, std::string_view problem) {
  Condition out{"Ready", "False", "", "", true};
  const queueing::Queue* at = queue.known() ? &queue.engine.queues().at(queue.id) : nullptr;
  if (problem.empty() && at != nullptr) problem = at->problem;
  if (!problem.empty()) {
    out.reason = "InvalidDefinition";
    out.message = problem;
  } else if (at == nullptr) {
    out.reason = "NotLoaded";
    out.message = "the scheduler does not have it: it may be new, or another queue has its name";
  } else if (!at->spec.open) {
    out.reason = "Closed";
    out.message = "it takes no new jobs; those that run go on";
  } else {
    out.status = "True";
    out.reason = "Open";
    out.message =
        at->children.empty() ? "jobs may wait in it" : "jobs may wait in the queues under it";
  }
  return out;
}

constexpr base::Duration kPastUsePeriod = base::seconds(60);
constexpr double kUnitSecondsPerGpuHour = double{queueing::kUnitsPerGpu} * 3600;

void set_past_use(const kube::Object& object, const Reading& queue, base::Time now,
                  json::Value& status) {
  if (!queue.known() || !queue.engine.options().half_life) return;
  const double sum = queue.engine.use(queue.id).history.sum();
  const auto before = past_use(object);
  if (before && now - before->at < kPastUsePeriod && before->at <= now) return;
  const std::string hours = fmt::format("{:.3f}", sum / kUnitSecondsPerGpuHour);
  if (!before && hours == "0.000") return;
  if (before && status.get("pastUse", "gpuHours").as_string() == hours) return;
  status.set("pastUse", json::Value::object({{"gpuHours", hours}, {"at", base::to_rfc3339(now)}}));
}

void ours(const kube::Object& object, const Reading& queue, std::string_view problem,
          const QueueJobs& jobs, base::Time now, json::Value& status) {
  auto gpu_or_named = [&](Dim dim) { return dim == queueing::kGpu || queue.names(dim); };
  auto never = [](Dim) { return false; };
  set_amounts(status, "used", queue, [&](Dim dim) { return queue.used(dim); }, gpu_or_named);
  set_amounts(status, "wanted", queue, [&](Dim dim) { return queue.wanted(dim); }, never);
  set_amounts(status, "share", queue, [&](Dim dim) { return queue.share(dim); }, gpu_or_named);
  status.set("running", jobs.running);
  status.set("waiting", queue.known() ? queue.engine.use(queue.id).waiting : 0);
  const json::Value& generation = object.metadata()["generation"];
  if (generation.is_int()) status.set("observedGeneration", generation.as_int());
  set_past_use(object, queue, now, status);
  set_condition(status, ready(queue, problem), now);
}

// The name that the queue's definition has for its GPUs.
std::string_view gpu_resource(const json::Value& spec) {
  for (const json::Value* list :
       {&spec["capability"], &spec["deserved"], &spec.get("guarantee", "resource")}) {
    if (list->contains("amd.com/gpu") && !list->contains("nvidia.com/gpu")) return "amd.com/gpu";
  }
  return "nvidia.com/gpu";
}

// A ResourceList: cores and memory always, GPUs by their resource, no models.
template <class Amount>
json::Value resource_list(const Reading& queue, std::string_view gpus, Amount amount) {
  json::Value out = json::Value::object();
  for (Dim dim = 0; dim < queue.dims(); ++dim) {
    const std::string_view name = queue.engine.dims().name(dim);
    const bool always = dim == queueing::kCpu || dim == queueing::kMemory;
    if (name.starts_with("gpu/") || (amount(dim) <= 0 && !always)) continue;
    out.set(dim == queueing::kGpu ? gpus : name, quantity(queue.engine, dim, amount(dim)));
  }
  return out;
}

std::string_view volcano_state(std::string_view before, bool broken, const QueueJobs& jobs) {
  if (before == "Closed") return "Closed";
  if (before == "Closing") {
    const bool empty = jobs.pending == 0 && jobs.inqueue == 0 && jobs.running_groups == 0 &&
                       jobs.unknown == 0 && jobs.running == 0;
    return empty ? "Closed" : "Closing";
  }
  return broken ? "Unknown" : "Open";
}

void volcano(const kube::Object& object, const Reading& queue, std::string_view problem,
             const QueueJobs& jobs, json::Value& status) {
  const bool broken =
      !problem.empty() || !queue.known() || !queue.engine.queues().at(queue.id).problem.empty();
  status.set("state", volcano_state(object["status"]["state"].as_string(), broken, jobs));
  status.set("allocated", resource_list(queue, gpu_resource(object["spec"]),
                                        [&](Dim dim) { return queue.used(dim); }));
  auto count = [&](const char* key, int32_t of) {
    if (status[key].as_int() != of) status.set(key, of);
  };
  count("pending", jobs.pending);
  count("inqueue", jobs.inqueue);
  count("running", jobs.running_groups);
  count("unknown", jobs.unknown);
  count("completed", jobs.completed);
}

void kai(const kube::Object& object, const Reading& queue, const QueueJobs& jobs,
         json::Value& status) {
  const std::string_view gpus = gpu_resource(object["spec"]);
  status.set("allocated", resource_list(queue, gpus, [&](Dim dim) { return queue.used(dim); }));
  status.set("requested", resource_list(queue, gpus, [&](Dim dim) {
               return core::sat_add(queue.used(dim), queue.wanted(dim));
             }));
  if (jobs.kept)
    status.set("allocatedNonPreemptible",
               resource_list(queue, gpus, [&](Dim dim) { return jobs.kept->at(dim); }));
  std::vector<std::string> names;
  if (queue.known()) {
    for (const QueueId child : queue.engine.queues().at(queue.id).children)
      names.push_back(queue.engine.queues().at(child).spec.name);
  }
  std::sort(names.begin(), names.end());
  json::Value children = json::Value::array();
  for (const std::string& name : names) children.push_back(name);
  if (!children.empty() || status["childQueues"].size() > 0)
    status.set("childQueues", std::move(children));
}

}  // namespace

void count_phase(QueueJobs& jobs, std::string_view phase) {
  if (phase == "Pending" || phase.empty()) ++jobs.pending;
  if (phase == "Inqueue") ++jobs.inqueue;
  if (phase == "Running") ++jobs.running_groups;
  if (phase == "Unknown") ++jobs.unknown;
  if (phase == "Completed") ++jobs.completed;
}

std::optional<PastUse> past_use(const kube::Object& object) {
  const json::Value& written = object.get("status", "pastUse");
  const std::string_view text = written["gpuHours"].as_string();
  const auto at = base::parse_rfc3339(written["at"].as_string());
  double hours = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), hours);
  if (!at || ec != std::errc() || end != text.data() + text.size() || !(hours >= 0) || hours > 1e12)
    return std::nullopt;
  return PastUse{hours * kUnitSecondsPerGpuHour, *at};
}

std::optional<json::Value> queue_status(const kube::Object& object, const Engine& engine,
                                        QueueId id, std::string_view problem, const QueueJobs& jobs,
                                        base::Time now) {
  if (!object || object.kind() != "Queue") return std::nullopt;
  const std::string_view group = group_of(object.api_version());
  const Reading queue{engine, id};
  json::Value status = object["status"].is_object() ? object["status"] : json::Value::object();
  if (group == "tessera.dev") {
    ours(object, queue, problem, jobs, now, status);
  } else if (group == "scheduling.volcano.sh") {
    volcano(object, queue, problem, jobs, status);
  } else if (group == "scheduling.run.ai") {
    kai(object, queue, jobs, status);
  } else {
    return std::nullopt;
  }
  json::Value patch = status_patch(object["status"], status);
  if (patch.is_null()) return std::nullopt;
  return patch;
}

}  // namespace tessera::scheduler
