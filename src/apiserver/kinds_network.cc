#include "apiserver/columns.h"
#include "apiserver/defaults_policy.h"
#include "apiserver/json_edit.h"
#include "apiserver/kind.h"
#include "apiserver/validate_network.h"

namespace tessera::apiserver {
namespace {

void add_ingress(Kinds& kinds) {
  kinds.add({.group = "networking.k8s.io",
             .kind = "Ingress",
             .plural = "ingresses",
             .singular = "ingress",
             .short_names = {"ing"},
             .status_subresource = true,
             .has_generation = true,
             .prepare_create =
                 [](json::Value& object) {
                   object.set("status",
                              json::Value::object({{"loadBalancer", json::Value::object()}}));
                 },
             .prepare_update = keep_status,
             .validate = validate_ingress,
             .columns = ingress_columns()});
  kinds.add({.group = "networking.k8s.io",
             .kind = "IngressClass",
             .plural = "ingressclasses",
             .singular = "ingressclass",
             .namespaced = false,
             .has_generation = true,
             .defaults = default_ingress_class,
             .validate = validate_ingress_class,
             .validate_update = validate_ingress_class_update,
             .columns = ingress_class_columns()});
}

void add_endpoints(Kinds& kinds) {
  kinds.add({.kind = "Endpoints",
             .plural = "endpoints",
             .singular = "endpoints",
             .short_names = {"ep"},
             .defaults = default_endpoints,
             .validate = validate_endpoints,
             .columns = endpoints_columns(),
             .deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 "
                            "EndpointSlice"});
  kinds.add({.group = "discovery.k8s.io",
             .kind = "EndpointSlice",
             .plural = "endpointslices",
             .singular = "endpointslice",
             .has_generation = true,
             .defaults = default_endpoint_slice,
             .validate = validate_endpoint_slice,
             .validate_update = validate_endpoint_slice_update,
             .columns = endpoint_slice_columns()});
}

}  // namespace

void add_network_kinds(Kinds& kinds) {
  kinds.add({.group = "networking.k8s.io",
             .kind = "NetworkPolicy",
             .plural = "networkpolicies",
             .singular = "networkpolicy",
             .short_names = {"netpol"},
             .has_generation = true,
             .defaults = default_network_policy,
             .validate = validate_network_policy,
             .columns = network_policy_columns()});
  add_ingress(kinds);
  add_endpoints(kinds);
}

}  // namespace tessera::apiserver
