#include "apiserver/columns.h"
#include "apiserver/defaults_policy.h"
#include "apiserver/json_edit.h"
#include "apiserver/kind.h"
#include "apiserver/validate_autoscaler.h"
#include "apiserver/validate_policy.h"
#include "apiserver/validate_quota.h"
#include "apiserver/validate_rbac.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kRbac = "rbac.authorization.k8s.io";

void add_roles(Kinds& kinds) {
  kinds.add({.group = kRbac,
             .kind = "Role",
             .plural = "roles",
             .singular = "role",
             .defaults = default_role,
             .validate = validate_role,
             .name_rule = "path-segment",
             .columns = role_columns()});
  kinds.add({.group = kRbac,
             .kind = "RoleBinding",
             .plural = "rolebindings",
             .singular = "rolebinding",
             .defaults = default_role_binding,
             .validate = validate_role_binding,
             .validate_update = validate_same_role,
             .name_rule = "path-segment",
             .columns = binding_columns()});
  kinds.add({.group = kRbac,
             .kind = "ClusterRole",
             .plural = "clusterroles",
             .singular = "clusterrole",
             .namespaced = false,
             .defaults = default_role,
             .validate = validate_cluster_role,
             .name_rule = "path-segment",
             .columns = role_columns()});
  kinds.add({.group = kRbac,
             .kind = "ClusterRoleBinding",
             .plural = "clusterrolebindings",
             .singular = "clusterrolebinding",
             .namespaced = false,
             .defaults = default_role_binding,
             .validate = validate_cluster_role_binding,
             .validate_update = validate_same_role,
             .name_rule = "path-segment",
             .columns = binding_columns()});
}

void add_limits(Kinds& kinds) {
  kinds.add({.kind = "ResourceQuota",
             .plural = "resourcequotas",
             .singular = "resourcequota",
             .short_names = {"quota"},
             .status_subresource = true,
             .prepare_create = reset_status,
             .prepare_update = keep_status,
             .validate = validate_resource_quota,
             .validate_update = validate_resource_quota_update,
             .columns = resource_quota_columns()});
  kinds.add({.kind = "LimitRange",
             .plural = "limitranges",
             .singular = "limitrange",
             .short_names = {"limits"},
             .defaults = default_limit_range,
             .validate = validate_limit_range,
             .columns = limit_range_columns()});
}

void add_templates(Kinds& kinds) {
  kinds.add({.kind = "PodTemplate",
             .plural = "podtemplates",
             .singular = "podtemplate",
             .has_generation = true,
             .defaults = default_pod_template_object,
             .validate = validate_pod_template_object,
             .columns = pod_template_columns()});
  kinds.add({.kind = "ReplicationController",
             .plural = "replicationcontrollers",
             .singular = "replicationcontroller",
             .short_names = {"rc"},
             .categories = {"all"},
             .status_subresource = true,
             .has_generation = true,
             .subresources = {"scale"},
             .defaults = default_replication_controller,
             .prepare_create =
                 [](Value& object) { object.set("status", Value::object({{"replicas", 0}})); },
             .prepare_update = keep_status,
             .validate = validate_replication_controller,
             .selectable_fields = {"status.replicas"},
             .columns = replication_controller_columns()});
}

void prepare_new_budget(Value& object) {
  object.set("status", Value::object({{"currentHealthy", 0},
                                      {"desiredHealthy", 0},
                                      {"disruptionsAllowed", 0},
                                      {"expectedPods", 0}}));
}

}  // namespace

void add_policy_kinds(Kinds& kinds) {
  add_limits(kinds);
  add_templates(kinds);
  add_roles(kinds);
  kinds.add({.group = "policy",
             .kind = "PodDisruptionBudget",
             .plural = "poddisruptionbudgets",
             .singular = "poddisruptionbudget",
             .short_names = {"pdb"},
             .status_subresource = true,
             .has_generation = true,
             .prepare_create = prepare_new_budget,
             .prepare_update = keep_status,
             .validate = validate_disruption_budget,
             .columns = disruption_budget_columns()});
  kinds.add({.group = "node.k8s.io",
             .kind = "RuntimeClass",
             .plural = "runtimeclasses",
             .singular = "runtimeclass",
             .namespaced = false,
             .validate = validate_runtime_class,
             .validate_update = validate_runtime_class_update,
             .columns = runtime_class_columns()});
  kinds.add({.group = "autoscaling",
             .version = "v2",
             .kind = "HorizontalPodAutoscaler",
             .plural = "horizontalpodautoscalers",
             .singular = "horizontalpodautoscaler",
             .short_names = {"hpa"},
             .categories = {"all"},
             .status_subresource = true,
             .defaults = default_autoscaler,
             .prepare_create =
                 [](Value& object) {
                   object.set("status",
                              Value::object({{"desiredReplicas", 0}, {"currentMetrics", Value()}}));
                 },
             .prepare_update = keep_status,
             .validate = validate_autoscaler,
             .columns = autoscaler_columns()});
}

}  // namespace tessera::apiserver
