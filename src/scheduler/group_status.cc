#include "scheduler/group_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "kube/quantity.h"
#include "scheduler/conditions.h"
#include "scheduler/group_reading.h"

namespace tessera::scheduler {
namespace {

using queueing::WaitReason;

constexpr size_t kNodesMax = 16;
constexpr base::Duration kPlanSlack = base::seconds(60);

int32_t least(const GroupProgress& p) {
  return std::max(p.min, 1);
}
int64_t total(int32_t a, int32_t b, int32_t c = 0) {
  return int64_t{a} + b + c;
}
bool has_places(const GroupProgress& p) {
  return total(p.placed, p.succeeded) >= least(p);
}
bool runs(const GroupProgress& p) {
  return p.running > 0 && total(p.running, p.succeeded) >= least(p);
}

// A counter that is missing is 0.
void set_count(json::Value& status, const char* key, int64_t count) {
  if (status[key].as_int() != count || (count != 0 && !status[key].is_int()))
    status.set(key, count);
}
void set_text(json::Value& status, const char* key, std::string_view text) {
  if (status[key].as_string() != text) status.set(key, text);
}

std::string plan_text(const GroupProgress& p) {
  const size_t named = std::min(p.planned_nodes.size(), kNodesMax);
  std::string nodes = fmt::format(
      "{}", fmt::join(p.planned_nodes.begin(),
                      p.planned_nodes.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (named < p.planned_nodes.size())
    nodes += fmt::format(" and {} more", p.planned_nodes.size() - named);
  return fmt::format("{} on {}{}", base::to_rfc3339(*p.planned_start), nodes,
                     p.planned_by_estimate ? " (estimated)" : "");
}

// The same nodes at nearly the same time.
bool same_plan(std::string_view before, std::string_view after) {
  const size_t a = std::min(before.find(' '), before.size());
  const size_t b = std::min(after.find(' '), after.size());
  if (before.substr(a) != after.substr(b)) return false;
  const auto was = base::parse_rfc3339(before.substr(0, a));
  const auto is = base::parse_rfc3339(after.substr(0, b));
  return was && is && *is - *was < kPlanSlack && *was - *is < kPlanSlack;
}

void set_plan(json::Value& status, const GroupProgress& p, bool transition_ids) {
  const json::Value before = condition_of(status, kPlannedStart);
  Condition made{std::string(kPlannedStart), "False", "NotReserved", "it has no planned start",
                 true};
  if (p.planned_start && !has_places(p)) {
    made.status = "True";
    made.reason = "Reserved";
    made.message = plan_text(p);
    if (before["status"].as_string() == "True" &&
        same_plan(before["message"].as_string(), made.message))
      return;
  } else if (before.is_null()) {
    return;
  }
  set_condition(status, made, p.now, transition_ids);
}

std::string_view volcano_reason(const Group& group, const GroupProgress& p) {
  if (p.reason != WaitReason::kMembers) return "NotEnoughResources";
  return group.spec.subgroup_mins.size() > 1 && total(p.members, p.succeeded) >= least(p)
             ? "NotEnoughPodsOfTask"
             : "NotEnoughTasks";
}

std::string_view volcano_phase(std::string_view before, const GroupProgress& p) {
  if (p.members == 0 && total(p.succeeded, p.failed) >= least(p)) return "Completed";
  if (before == "Completed" && p.members == 0) return "Completed";
  if (runs(p)) return "Running";
  const bool ran = before == "Running" || before == "Unknown";
  if (p.running > 0 && (ran || (p.ever_started && !has_places(p)))) return "Unknown";
  // Never back to Pending: its pods may be made from here on.
  const bool entered = ran || before == "Inqueue" || before == "Completed";
  return entered || p.placed > 0 || p.barred.empty() ? "Inqueue" : "Pending";
}

void volcano(const Group& group, const GroupProgress& p, json::Value& status) {
  const std::string_view phase = volcano_phase(status["phase"].as_string(), p);
  const std::string& why = p.why.empty() && phase == "Pending" ? p.barred : p.why;
  const bool ended = phase == "Completed";
  if (!why.empty() && !ended) {
    const std::string reason(volcano_reason(group, p));
    set_condition(status, {"Unschedulable", "True", reason, why}, p.now, true);
  } else if (condition_of(status, "Unschedulable")["status"].as_string() == "True") {
    set_condition(status, {"Unschedulable", "False", "Scheduled", "it does not wait"}, p.now, true);
  }
  if (has_places(p)) {
    set_condition(
        status,
        {"Scheduled", "True", "Scheduled",
         fmt::format("as many members as must start together have a place: {}", least(p))},
        p.now, true);
  } else if (condition_of(status, "Scheduled")["status"].as_string() == "True" && !ended) {
    set_condition(status,
                  {"Scheduled", "False", std::string(volcano_reason(group, p)),
                   fmt::format("fewer members have a place than must run together: {}", least(p))},
                  p.now, true);
  }
  set_plan(status, p, true);
  set_text(status, "phase", phase);
  set_count(status, "running", p.running);
  set_count(status, "succeeded", p.succeeded);
  set_count(status, "failed", p.failed);
}

std::string_view plugins_phase(std::string_view before, const GroupProgress& p) {
  if (p.succeeded >= least(p)) return "Finished";
  const bool over = before == "Finished" || before == "Failed";
  if (over && p.members == 0) return before;
  const bool short_of_members = total(p.members, p.succeeded) < least(p);
  if (p.failed > 0 && short_of_members &&
      total(p.members, p.succeeded) + int64_t{p.failed} >= least(p))
    return "Failed";
  if (runs(p)) return "Running";
  if (p.placed > 0 && !has_places(p)) return "Unknown";
  return short_of_members ? "Pending" : "Scheduling";
}

void plugins(const kube::Object& object, const GroupProgress& p, json::Value& status) {
  const json::Value before = status;
  const std::string_view phase = plugins_phase(before["phase"].as_string(), p);
  set_text(status, "phase", phase);
  set_count(status, "running", p.running);
  set_count(status, "succeeded", p.succeeded);
  set_count(status, "failed", p.failed);
  const bool begun = phase != "Pending";
  if (begun && !status["scheduleStartTime"].is_string())
    status.set("scheduleStartTime", base::to_rfc3339(p.now));
  if (begun && status["occupiedBy"].as_string().empty() && !p.owners.empty()) {
    std::vector<std::string> owners;
    for (const std::string& owner : p.owners)
      owners.push_back(fmt::format("{}/{}", object.ns(), owner));
    std::sort(owners.begin(), owners.end());
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    status.set("occupiedBy", fmt::format("{}", fmt::join(owners, ",")));
  }
  // Its own definition has no conditions, and newer ones no "scheduled": where they are dropped they are no reason to write.
  if ((begun && status != before) || before["scheduled"].is_int())
    set_count(status, "scheduled", total(p.placed, p.succeeded));
  if (status == before && !before["conditions"].is_array()) return;
  if (!p.why.empty()) {
    set_condition(status, {"Unschedulable", "True", std::string(name_of(p.reason)), p.why}, p.now);
  } else if (condition_of(status, "Unschedulable")["status"].as_string() == "True") {
    set_condition(status, {"Unschedulable", "False", "Scheduled", "it does not wait"}, p.now);
  }
}

void kubernetes(const kube::Object& object, const GroupProgress& p, json::Value& status) {
  const bool first_shape = object.api_version() == "scheduling.k8s.io/v1alpha2";
  const std::string type = first_shape ? "PodGroupScheduled" : "PodGroupInitiallyScheduled";
  const bool was = condition_of(status, type)["status"].as_string() == "True";
  if (!was && has_places(p)) {
    set_condition(
        status,
        {type, "True", "Scheduled",
         fmt::format("as many members as must start together have a place: {}", least(p))},
        p.now);
  } else if (!was && !p.error.empty()) {
    set_condition(status, {type, "False", "SchedulerError", p.error}, p.now);
  } else if (!was && !p.why.empty()) {
    set_condition(status, {type, "False", "Unschedulable", p.why}, p.now);
  }
  if (!p.evicting.empty()) {
    set_condition(status, {"DisruptionTarget", "True", "PreemptionByScheduler", p.evicting}, p.now);
  } else if (condition_of(status, "DisruptionTarget")["status"].as_string() == "True") {
    set_condition(status,
                  {"DisruptionTarget", "False", "EvictionEnded", "no pod of it is being evicted"},
                  p.now);
  }
  set_plan(status, p, false);
}

// Amounts of a resource list in the queues' units. Resources that no queue names limit nothing.
queueing::Amounts read_resources(const json::Value& list, const queueing::Dims& dims,
                                 const ShareRules& rules) {
  constexpr int64_t kUnitsPerMilli = queueing::kUnitsPerGpu / 1000;
  constexpr int64_t kMib = int64_t{1} << 20;
  queueing::Amounts out;
  for (const json::Member& member : list.members()) {
    const auto amount =
        kube::Quantity::parse(member.value.is_string() ? member.value.str() : member.value.dump());
    if (!amount || amount->sign() <= 0) continue;
    const std::string_view name = member.name();
    if (name == "nvidia.com/gpu" || name == "amd.com/gpu") {
      out.add(queueing::kGpu, core::sat_mul(amount->milli_value(), kUnitsPerMilli));
    } else if (name == "cpu") {
      out.add(queueing::kCpu, amount->milli_value());
    } else if (name == "memory") {
      out.add(queueing::kMemory, (amount->value() - 1) / kMib + 1);
    } else {
      if (const auto units = gpu_units_of(name, rules))
        out.add(queueing::kGpu, core::sat_mul(amount->value(), *units));
      for (queueing::Dim dim = 0; dim < dims.size(); ++dim) {
        if (dims.name(dim) == name) out.add(dim, amount->value());
      }
    }
  }
  return out;
}

}  // namespace

std::optional<json::Value> group_status(const Group& group, const kube::Object& object,
                                        const GroupProgress& progress) {
  if (!object || object.kind() != "PodGroup") return std::nullopt;
  json::Value status = object["status"].is_object() ? object["status"] : json::Value::object();
  switch (group.dialect) {
    case Dialect::kVolcano:
      volcano(group, progress, status);
      break;
    case Dialect::kPlugins:
      plugins(object, progress, status);
      break;
    case Dialect::kKubernetes:
      kubernetes(object, progress, status);
      break;
    default:
      return std::nullopt;
  }
  json::Value patch = status_patch(object["status"], status);
  if (patch.is_null()) return std::nullopt;
  return patch;
}

std::string why_barred(const kube::Object& object, std::string_view queue,
                       const queueing::Engine& engine, const ShareRules& rules) {
  const queueing::QueueTree& tree = engine.queues();
  const queueing::QueueId id = tree.find(queue);
  if (!id.valid())
    return fmt::format("queue \"{}\" does not exist: create it, or name another", queue);
  const queueing::Queue& leaf = tree.at(id);
  if (!leaf.problem.empty()) return fmt::format("queue \"{}\" is closed: {}", queue, leaf.problem);
  if (!leaf.spec.open) return fmt::format("queue \"{}\" is closed", queue);
  if (!leaf.children.empty())
    return fmt::format("queue \"{}\" has queues under it: name one of those", queue);
  const queueing::Amounts asked =
      read_resources(object.get("spec", "minResources"), engine.dims(), rules);
  std::string out;
  tree.each_up(id, [&](queueing::QueueId at) {
    const queueing::QueueSpec& spec = tree.at(at).spec;
    for (const auto& [dim, amount] : asked) {
      const int64_t limit = spec.limit.at(dim, queueing::kUnlimited);
      if (!out.empty() || limit == queueing::kUnlimited || amount <= limit) continue;
      out = fmt::format("spec.minResources: {} {} is more than the limit of queue \"{}\", {}",
                        amount_text(engine.dims(), dim, amount), engine.dims().name(dim), spec.name,
                        amount_text(engine.dims(), dim, limit));
    }
  });
  return out;
}

Group group_without_pods(const kube::Object& object, const GroupSources& sources) {
  if (!object || object.kind() != "PodGroup") return {};
  const std::string_view group = group_of(object.api_version());
  json::Value metadata = json::Value::object();
  json::Value spec = json::Value::object();
  metadata.set("namespace", object.ns());
  if (object.metadata().contains("ownerReferences"))
    metadata.set("ownerReferences", object.metadata()["ownerReferences"]);
  if (group == "scheduling.volcano.sh") {
    metadata.ref("annotations").set("scheduling.k8s.io/group-name", object.name());
  } else if (group == "scheduling.x-k8s.io") {
    metadata.ref("labels").set("scheduling.x-k8s.io/pod-group", object.name());
  } else if (group == "scheduling.k8s.io") {
    spec.ref("schedulingGroup").set("podGroupName", object.name());
  } else {
    return {};
  }
  json::Value pod = json::Value::object();
  pod.set("apiVersion", "v1");
  pod.set("kind", "Pod");
  pod.set("metadata", std::move(metadata));
  pod.set("spec", std::move(spec));
  return read_group(kube::Object(std::move(pod)), sources);
}

}  // namespace tessera::scheduler
