#include "apiserver/pod_groups.h"

#include "apiserver/columns.h"
#include "apiserver/json_edit.h"
#include "apiserver/validate_pod_group.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kGroup = "scheduling.k8s.io";
constexpr const char* kVersion = "v1beta1";

void default_pod_group(Value& group) {
  set_missing(group.ref("spec"), "disruptionMode", Value::object({{"single", Value::object()}}));
}

void leave_out_gated(Value& group) {
  Value& spec = group.ref("spec");
  spec.erase("resourceClaims");
  spec.erase("parentCompositePodGroupName");
}

void prepare_new_group(Value& group) {
  leave_out_gated(group);
  reset_status(group);
}

// Who replaces a group need not repeat what the server filled in.
void prepare_changed_group(Value& group, const Value& before) {
  leave_out_gated(group);
  keep_status(group, before);
  const Value& policy = before["spec"]["preemptionPolicy"];
  if (policy.is_string()) set_missing(group.ref("spec"), "preemptionPolicy", policy);
}

void prepare_workload(Value& workload) {
  Value& spec = workload.ref("spec");
  spec.erase("compositePodGroupTemplates");
  each_of(spec, "podGroupTemplates", [](Value& part) { part.erase("resourceClaims"); });
}

// The last word of its conditions.
Value group_status(const kube::Object& group, base::Time) {
  std::string out = "Pending";
  std::string disrupted;
  for (const Value& condition : group.get("status", "conditions").items()) {
    const std::string_view type = condition["type"].as_string();
    if (type == "PodGroupInitiallyScheduled") {
      out = condition["status"].as_string() == "True" ? "Scheduled" : "Unschedulable";
    } else if (type == "DisruptionTarget") {
      disrupted = condition["reason"].str();
    }
  }
  return Value(disrupted.empty() ? out : disrupted);
}

Value group_policy(const kube::Object& group, base::Time) {
  return Value(group.get("spec", "schedulingPolicy", "gang").is_object() ? "Gang" : "Basic");
}

}  // namespace

bool is_pod_group(const Kind& kind) {
  return kind.kind == "PodGroup" && kind.group == kGroup && kind.custom == nullptr;
}

void add_pod_group_kinds(Kinds& kinds) {
  kinds.add({.group = kGroup,
             .version = kVersion,
             .kind = "PodGroup",
             .plural = "podgroups",
             .singular = "podgroup",
             .status_subresource = true,
             .defaults = default_pod_group,
             .prepare_create = prepare_new_group,
             .prepare_update = prepare_changed_group,
             .validate_update = validate_pod_group_update,
             .validate_create = validate_pod_group,
             .validate_status = validate_pod_group_status,
             .columns = {name_column(), text_column("Policy", group_policy),
                         text_column("Workload",
                                     text_at({"spec", "workloadRef", "workloadName"}, "<none>")),
                         text_column("Status", group_status), age_column()}});
  kinds.add({.group = kGroup,
             .version = kVersion,
             .kind = "Workload",
             .plural = "workloads",
             .singular = "workload",
             .prepare_create = prepare_workload,
             .prepare_update = [](Value& object, const Value&) { prepare_workload(object); },
             .validate_update = validate_scheduled_workload_update,
             .validate_create = validate_scheduled_workload,
             .columns = {name_column(), age_column()}});
}

}  // namespace tessera::apiserver
