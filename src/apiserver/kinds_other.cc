#include "apiserver/columns.h"
#include "apiserver/json_edit.h"
#include "apiserver/kind.h"
#include "apiserver/pod_groups.h"
#include "apiserver/validate_core.h"

namespace tessera::apiserver {

void add_other_kinds(Kinds& kinds) {
  kinds.add(
      {.group = "scheduling.k8s.io",
       .kind = "PriorityClass",
       .plural = "priorityclasses",
       .singular = "priorityclass",
       .short_names = {"pc"},
       .namespaced = false,
       .defaults =
           [](json::Value& object) {
             set_missing(object, "preemptionPolicy", "PreemptLowerPriority");
           },
       // It never counts further: what counts cannot change.
       .prepare_create = [](json::Value& object) { object.ref("metadata").set("generation", 1); },
       .validate = validate_priority_class,
       .validate_update = validate_priority_class_update,
       .columns = priority_class_columns()});
  add_pod_group_kinds(kinds);
  kinds.add({.group = "coordination.k8s.io",
             .kind = "Lease",
             .plural = "leases",
             .singular = "lease",
             .validate = validate_lease,
             .columns = lease_columns()});
}

}  // namespace tessera::apiserver
