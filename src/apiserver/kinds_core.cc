#include "apiserver/kind.h"

namespace tessera::apiserver {

void add_core_kinds(Kinds& kinds) {
  kinds.add({.kind = "Namespace",
             .plural = "namespaces",
             .singular = "namespace",
             .short_names = {"ns"},
             .namespaced = false,
             .status_subresource = true,
             .subresources = {"finalize"},
             .name_rule = "dns1123-label"});
  kinds.add({.kind = "Node",
             .plural = "nodes",
             .singular = "node",
             .short_names = {"no"},
             .namespaced = false,
             .status_subresource = true});
  kinds.add({.kind = "Pod",
             .plural = "pods",
             .singular = "pod",
             .short_names = {"po"},
             .categories = {"all"},
             .status_subresource = true,
             .has_generation = true,
             .subresources = {"binding", "eviction", "ephemeralcontainers", "resize", "log"}});
  kinds.add({.kind = "ConfigMap",
             .plural = "configmaps",
             .singular = "configmap",
             .short_names = {"cm"}});
  kinds.add({.kind = "Secret", .plural = "secrets", .singular = "secret"});
  kinds.add({.kind = "Service",
             .plural = "services",
             .singular = "service",
             .short_names = {"svc"},
             .categories = {"all"},
             .status_subresource = true,
             .name_rule = "dns1035-label"});
  kinds.add({.kind = "ServiceAccount",
             .plural = "serviceaccounts",
             .singular = "serviceaccount",
             .short_names = {"sa"}});
  kinds.add({.kind = "Event", .plural = "events", .singular = "event", .short_names = {"ev"}});
}

}  // namespace tessera::apiserver
