#include "apiserver/columns.h"
#include "apiserver/defaults_sets.h"
#include "apiserver/defaults_workload.h"
#include "apiserver/json_edit.h"
#include "apiserver/kind.h"
#include "apiserver/validate_sets.h"
#include "apiserver/validate_workload.h"

namespace tessera::apiserver {
namespace {

void add_sets(Kinds& kinds) {
  kinds.add({.group = "apps",
             .kind = "StatefulSet",
             .plural = "statefulsets",
             .singular = "statefulset",
             .short_names = {"sts"},
             .categories = {"all"},
             .status_subresource = true,
             .has_generation = true,
             .subresources = {"scale"},
             .defaults = default_stateful_set,
             .prepare_create =
                 [](json::Value& object) {
                   object.set("status",
                              json::Value::object({{"replicas", 0}, {"availableReplicas", 0}}));
                 },
             .prepare_update = keep_status,
             .validate = validate_stateful_set,
             .validate_update = validate_stateful_set_update,
             .name_rule = "dns1123-label",
             .columns = stateful_set_columns()});
  kinds.add({.group = "apps",
             .kind = "DaemonSet",
             .plural = "daemonsets",
             .singular = "daemonset",
             .short_names = {"ds"},
             .categories = {"all"},
             .status_subresource = true,
             .has_generation = true,
             .defaults = default_daemon_set,
             .prepare_create = prepare_new_daemon_set,
             .prepare_update = prepare_daemon_set_update,
             .validate = validate_daemon_set,
             .validate_update = validate_same_selector,
             .columns = daemon_set_columns()});
}

void add_controller_revision(Kinds& kinds) {
  kinds.add({.group = "apps",
             .kind = "ControllerRevision",
             .plural = "controllerrevisions",
             .singular = "controllerrevision",
             .validate = validate_controller_revision,
             .validate_update = validate_controller_revision_update,
             .columns = controller_revision_columns()});
}

}  // namespace

void add_apps_kinds(Kinds& kinds) {
  kinds.add({.group = "apps",
             .kind = "Deployment",
             .plural = "deployments",
             .singular = "deployment",
             .short_names = {"deploy"},
             .categories = {"all"},
             .status_subresource = true,
             .has_generation = true,
             .subresources = {"scale"},
             .defaults = default_deployment,
             .prepare_create = reset_status,
             .prepare_update = keep_status,
             .validate = validate_deployment,
             .validate_update = validate_same_selector,
             .columns = deployment_columns()});
  kinds.add({.group = "apps",
             .kind = "ReplicaSet",
             .plural = "replicasets",
             .singular = "replicaset",
             .short_names = {"rs"},
             .categories = {"all"},
             .status_subresource = true,
             .has_generation = true,
             .subresources = {"scale"},
             .defaults = default_replica_set,
             .prepare_create =
                 [](json::Value& object) {
                   object.set("status", json::Value::object({{"replicas", 0}}));
                 },
             .prepare_update = keep_status,
             .validate = validate_replica_set,
             .validate_update = validate_same_selector,
             .selectable_fields = {"status.replicas"},
             .columns = replica_set_columns()});
  add_sets(kinds);
  add_controller_revision(kinds);
}

}  // namespace tessera::apiserver
