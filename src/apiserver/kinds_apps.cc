#include "apiserver/columns.h"
#include "apiserver/defaults_workload.h"
#include "apiserver/json_edit.h"
#include "apiserver/kind.h"
#include "apiserver/validate_workload.h"

namespace tessera::apiserver {

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
}

}  // namespace tessera::apiserver
