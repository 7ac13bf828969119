#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kube/labels.h"
#include "scheduler/core/amount.h"
#include "scheduler/group_reading.h"

namespace tessera::scheduler {
namespace {

constexpr std::string_view kNative = "scheduling.k8s.io";
constexpr std::string_view kVolcano = "scheduling.volcano.sh";
constexpr std::string_view kPlugins = "scheduling.x-k8s.io";
constexpr std::string_view kKai = "scheduling.run.ai";
constexpr std::string_view kTaskSpec = "volcano.sh/task-spec";

// Looks for the group's object; without it nobody knows how many have to start together, so the gang waits.
kube::Object find_group(const PodContext& pod, std::string_view group, std::string_view version,
                        std::string_view kind, std::string_view name, Group& out) {
  kube::Object found = pod.find(group, kind, name);
  out.object = {fmt::format("{}/{}", group, version), std::string(kind), std::string(pod.pod.ns()),
                std::string(name)};
  out.key = fmt::format("{}.{}/{}/{}", kind, group, out.object.ns, name);
  if (found) {
    if (!found.api_version().empty()) out.object.api_version = found.api_version();
  } else {
    wait_with(out, fmt::format("{} {} of {} does not exist: create it, or take its name off the "
                               "pod",
                               kind, name, group));
  }
  return found;
}

// Pods beyond what the group's maker makes never come. Of a maker that is not the pod's owner nothing is known.
void hold_to_owner(const PodContext& pod, const kube::Object& object, std::string_view field,
                   Group& out) {
  for (const Owner& owner : pod.owners) {
    const std::optional<int64_t> most = pods_of(owner);
    if (!most || out.spec.min_members <= *most) continue;
    for (const json::Value& reference : object.metadata()["ownerReferences"].items()) {
      if (owner.uid.empty() || reference["uid"].as_string() != owner.uid) continue;
      wait_with(out,
                fmt::format("{} {} is above the {} pods that {} {} makes at one time: lower "
                            "it, or let it make more",
                            field, out.spec.min_members, *most, owner.name.kind, owner.name.name));
      return;
    }
  }
}

void set_minimum(const json::Value& value, std::string_view field, Group& out) {
  const Count count = read_count(value, field);
  if (!count.value) return wait_with(out, count.problem);
  out.spec.min_members = std::max(*count.value, 1);
}

// A minimum of "all pods" counts those of the steps before the training, which are gone by then.
void leave_out_initializers(const PodContext& pod, Group& out) {
  const int64_t before = initializers_of(pod);
  if (before > 0 && before < out.spec.min_members)
    out.spec.min_members -= static_cast<int32_t>(before);
}

void add_subgroup(std::string_view name, int64_t least, bool mine, Group& out) {
  if (mine && out.subgroup < 0) out.subgroup = static_cast<int32_t>(out.subgroup_names.size());
  out.subgroup_names.emplace_back(name);
  out.spec.subgroup_mins.push_back(
      static_cast<int32_t>(std::clamp<int64_t>(least, 0, std::numeric_limits<int32_t>::max())));
}

// The last sub-group takes those that belong to none; the sum of the minima is a minimum too.
void close_subgroups(Group& out) {
  add_subgroup("", 0, true, out);
  int64_t sum = 0;
  for (const int32_t least : out.spec.subgroup_mins) sum += least;
  out.spec.min_members = static_cast<int32_t>(
      std::clamp<int64_t>(sum, out.spec.min_members, std::numeric_limits<int32_t>::max()));
}

void read_tasks(const PodContext& pod, const json::Value& tasks, Group& out) {
  const std::string_view mine = mark_of(pod.pod, kTaskSpec);
  out.subgroup = -1;
  for (const json::Member& task : tasks.members()) {
    const Count count = read_count(task.value, fmt::format("spec.minTaskMember.{}", task.name()));
    if (!count.value) wait_with(out, count.problem);
    add_subgroup(task.name(), count.value.value_or(0), task.name() == mine, out);
  }
  close_subgroups(out);
}

// A policy is one sub-group: so many groups of such a size. Which of its pods make one group is not kept apart.
void read_policies(const PodContext& pod, const json::Value& policies, Group& out) {
  out.subgroup = -1;
  for (size_t i = 0; i < policies.size(); ++i) {
    const json::Value& policy = policies.at(i);
    const std::string field = fmt::format("spec.subGroupPolicy[{}]", i);
    Count size{0, {}};
    Count groups{1, {}};
    if (!policy["subGroupSize"].is_null())
      size = read_count(policy["subGroupSize"], field + ".subGroupSize");
    if (!policy["minSubGroups"].is_null())
      groups = read_count(policy["minSubGroups"], field + ".minSubGroups");
    for (const Count* count : {&size, &groups}) {
      if (!count->value) wait_with(out, count->problem);
    }
    const json::Value& labels = policy["labelSelector"];
    bool mine = labels.is_null();
    if (!mine) {
      const auto selector = kube::LabelSelector::from_json(labels, field + ".labelSelector");
      if (selector) {
        mine = selector->matches(pod.pod.metadata()["labels"]);
      } else {
        wait_with(out, selector.error().message);
      }
    }
    if (policy["matchLabelKeys"].size() > 0)
      out.notes.push_back(fmt::format(
          "{}.matchLabelKeys: its groups are counted together, not each by itself", field));
    add_subgroup(policy["name"].as_string(),
                 core::sat_mul(size.value.value_or(0), groups.value.value_or(0)), mine, out);
  }
  close_subgroups(out);
}

// {policy: {gang: {minCount}}} or {policy: {basic: {}}}: a basic group has no minimum.
void read_policy(const json::Value& policy, std::string_view field, Group& out) {
  if (policy["gang"].is_object())
    set_minimum(policy.get("gang", "minCount"), fmt::format("{}.gang.minCount", field), out);
}

}  // namespace

bool read_kubernetes(const PodContext& pod, Group& out, kube::Object& object) {
  const std::string_view name = pod.pod.get("spec", "schedulingGroup", "podGroupName").as_string();
  if (name.empty()) return false;
  object = find_group(pod, kNative, "v1beta1", "PodGroup", name, out);
  if (!object) return true;
  const json::Value& spec = object["spec"];
  read_policy(spec["schedulingPolicy"], "spec.schedulingPolicy", out);
  const json::Value& mode = spec["disruptionMode"];
  out.spec.evict_whole = mode.contains("all") || mode.as_string() == "PodGroup";
  if (spec["preemptionPolicy"].as_string() == "Never") out.spec.preempts = false;
  hold_to_owner(pod, object, "spec.schedulingPolicy.gang.minCount", out);
  return true;
}

bool read_workload(const PodContext& pod, Group& out, kube::Object& object) {
  const json::Value& reference = pod.pod.get("spec", "workloadRef");
  const std::string_view name = reference["name"].as_string();
  if (name.empty()) return false;
  const std::string_view group = reference["podGroup"].as_string();
  object = find_group(pod, kNative, "v1alpha1", "Workload", name, out);
  out.key += fmt::format("/{}/{}", group, reference["podGroupReplicaKey"].as_string());
  if (!object) return true;
  for (const json::Value& each : object.get("spec", "podGroups").items()) {
    if (each["name"].as_string() != group) continue;
    read_policy(each["policy"], fmt::format("spec.podGroups[{}].policy", group), out);
    return true;
  }
  wait_with(out, fmt::format("Workload {} has no pod group \"{}\": name one of those it has", name,
                             group));
  return true;
}

bool read_volcano(const PodContext& pod, Group& out, kube::Object& object) {
  std::string_view name = pod.pod.annotation("scheduling.k8s.io/group-name");
  const std::string_view other = pod.pod.annotation("scheduling.volcano.sh/group-name");
  if (name.empty()) name = other;
  if (name.empty()) return false;
  if (!other.empty() && other != name)
    out.notes.push_back(
        fmt::format("scheduling.k8s.io/group-name is {}, "
                    "scheduling.volcano.sh/group-name is {}: the first counts; "
                    "keep one of them",
                    name, other));
  object = find_group(pod, kVolcano, "v1beta1", "PodGroup", name, out);
  if (!object) return true;
  const json::Value& spec = object["spec"];
  const bool tasks = spec["minTaskMember"].size() > 0;
  const bool policies = spec["subGroupPolicy"].size() > 0;
  if (!spec["minMember"].is_null()) {
    set_minimum(spec["minMember"], "spec.minMember", out);
  } else if (!tasks && !policies) {
    out.notes.emplace_back("spec.minMember is missing: 1 is taken; give it");
  }
  leave_out_initializers(pod, out);
  if (tasks) read_tasks(pod, spec["minTaskMember"], out);
  if (policies && tasks)
    out.notes.emplace_back("spec.minTaskMember counts, spec.subGroupPolicy does not: keep one");
  if (policies && !tasks) read_policies(pod, spec["subGroupPolicy"], out);
  hold_to_owner(pod, object, "spec.minMember", out);
  return true;
}

bool read_plugins(const PodContext& pod, Group& out, kube::Object& object) {
  const std::string_view name = pod.pod.label("scheduling.x-k8s.io/pod-group");
  if (name.empty()) return false;
  object = find_group(pod, kPlugins, "v1alpha1", "PodGroup", name, out);
  if (!object) return true;
  const json::Value& spec = object["spec"];
  if (spec["minMember"].is_null()) {
    out.notes.emplace_back("spec.minMember is missing: 1 is taken; give it");
  } else {
    set_minimum(spec["minMember"], "spec.minMember", out);
  }
  leave_out_initializers(pod, out);
  if (!spec["scheduleTimeoutSeconds"].is_null()) {
    const Count count = read_count(spec["scheduleTimeoutSeconds"], "spec.scheduleTimeoutSeconds");
    if (count.value && *count.value > 0) out.schedule_timeout = base::seconds(*count.value);
    if (!count.value) out.notes.push_back(count.problem);
  }
  hold_to_owner(pod, object, "spec.minMember", out);
  return true;
}

// Written by KAI's own grouper: where it does not run there is no such object, and the owner says what the gang is.
bool read_kai(const PodContext& pod, Group& out, kube::Object& object) {
  const std::string_view name = pod.pod.annotation("pod-group-name");
  if (name.empty() || !pod.find(kKai, "PodGroup", name)) return false;
  object = find_group(pod, kKai, "v2alpha2", "PodGroup", name, out);
  const json::Value& spec = object["spec"];
  if (!spec["minMember"].is_null()) set_minimum(spec["minMember"], "spec.minMember", out);
  if (spec["subGroups"].size() == 0) return true;
  const std::string_view mine = pod.pod.label("kai.scheduler/subgroup-name");
  out.subgroup = -1;
  for (const json::Value& each : spec["subGroups"].items()) {
    const std::string_view group = each["name"].as_string();
    Count count{0, {}};
    if (!each["minMember"].is_null())
      count = read_count(each["minMember"], fmt::format("spec.subGroups[{}].minMember", group));
    if (!count.value) wait_with(out, count.problem);
    if (!each["minSubGroup"].is_null())
      out.notes.push_back(
          fmt::format("spec.subGroups[{}].minSubGroup: sub-groups of sub-groups "
                      "count by their members alone",
                      group));
    add_subgroup(group, count.value.value_or(0), !group.empty() && group == mine, out);
  }
  close_subgroups(out);
  return true;
}

bool read_kueue(const PodContext& pod, Group& out) {
  const std::string_view name = pod.pod.label("kueue.x-k8s.io/pod-group-name");
  if (name.empty()) return false;
  constexpr std::string_view kTotal = "kueue.x-k8s.io/pod-group-total-count";
  out.key = fmt::format("PodGroup.kueue.x-k8s.io/{}/{}", pod.pod.ns(), name);
  out.object = {"", "", std::string(pod.pod.ns()), std::string(name)};
  const std::string_view total = mark_of(pod.pod, kTotal);
  if (total.empty()) {
    wait_with(out, fmt::format("annotation {} is missing: give the number of pods", kTotal));
    return true;
  }
  const Count count = read_count(total, fmt::format("annotation {}", kTotal));
  if (!count.value) wait_with(out, count.problem);
  out.spec.min_members = std::max(count.value.value_or(1), 1);
  return true;
}

}  // namespace tessera::scheduler
