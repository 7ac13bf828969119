#include "apiserver/kind.h"

namespace tessera::apiserver {

void add_other_kinds(Kinds& kinds) {
  kinds.add({.group = "scheduling.k8s.io",
             .kind = "PriorityClass",
             .plural = "priorityclasses",
             .singular = "priorityclass",
             .short_names = {"pc"},
             .namespaced = false});
  kinds.add(
      {.group = "coordination.k8s.io", .kind = "Lease", .plural = "leases", .singular = "lease"});
}

}  // namespace tessera::apiserver
