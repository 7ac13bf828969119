#include "apiserver/kind.h"

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
             .subresources = {"scale"}});
  kinds.add({.group = "apps",
             .kind = "ReplicaSet",
             .plural = "replicasets",
             .singular = "replicaset",
             .short_names = {"rs"},
             .categories = {"all"},
             .status_subresource = true,
             .has_generation = true,
             .subresources = {"scale"}});
}

}  // namespace tessera::apiserver
