#include "apiserver/columns.h"
#include "apiserver/defaults_core.h"
#include "apiserver/defaults_pod.h"
#include "apiserver/defaults_workload.h"
#include "apiserver/json_edit.h"
#include "apiserver/kind.h"
#include "apiserver/validate_core.h"
#include "apiserver/validate_pod.h"

namespace tessera::apiserver {
namespace {

using json::Value;

Kind namespace_kind() {
  return {.kind = "Namespace",
          .plural = "namespaces",
          .singular = "namespace",
          .short_names = {"ns"},
          .namespaced = false,
          .status_subresource = true,
          .subresources = {"finalize"},
          .defaults = default_namespace,
          .prepare_create = prepare_new_namespace,
          .prepare_update = keep_status,
          .name_rule = "dns1123-label",
          .selectable_fields = {"status.phase"},
          .columns = namespace_columns()};
}

Kind node_kind() {
  return {
      .kind = "Node",
      .plural = "nodes",
      .singular = "node",
      .short_names = {"no"},
      .namespaced = false,
      .status_subresource = true,
      .defaults = default_node,
      .prepare_update = keep_status,
      .validate = validate_node,
      .validate_update = validate_node_update,
      .validate_status = [](const Value& node, const Value& /*before*/,
                            FieldErrors& errors) { validate_node(node, errors); },
      .selectable_fields = {"spec.unschedulable"},
      .field_value = [](const Value& node, std::string_view field) -> std::optional<std::string> {
        if (field != "spec.unschedulable") return std::nullopt;
        return std::string(node["spec"]["unschedulable"].as_bool() ? "true" : "false");
      },
      .columns = node_columns()};
}

Kind pod_kind() {
  return {
      .kind = "Pod",
      .plural = "pods",
      .singular = "pod",
      .short_names = {"po"},
      .categories = {"all"},
      .status_subresource = true,
      .has_generation = true,
      .subresources = {"binding", "eviction", "ephemeralcontainers", "resize", "log"},
      .defaults = default_pod,
      .prepare_create = prepare_new_pod,
      .prepare_update = keep_status,
      .validate = validate_pod,
      .validate_update = validate_pod_update,
      .selectable_fields = {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
                            "spec.serviceAccountName", "status.phase", "status.podIP",
                            "status.nominatedNodeName", "spec.hostNetwork", "status.podIPs"},
      .field_value = [](const Value& pod, std::string_view field) -> std::optional<std::string> {
        if (field == "status.podIPs") return std::string();  // may be asked for, and is never set
        if (field != "spec.hostNetwork") return std::nullopt;
        return std::string(pod["spec"]["hostNetwork"].as_bool() ? "true" : "false");
      },
      .columns = pod_columns()};
}

// Asked of the API and carried out by it (api_pods.cc); never stored.
Kind binding_kind() {
  return {.kind = "Binding",
          .plural = "bindings",
          .singular = "binding",
          .virtual_create = [](VirtualCreate&) -> base::Result<Value> {
            return base::error(base::Code::kInternal, "bindings are carried out on their pods");
          }};
}

Kind config_map_kind() {
  return {.kind = "ConfigMap",
          .plural = "configmaps",
          .singular = "configmap",
          .short_names = {"cm"},
          .validate = validate_config_map,
          .validate_update = validate_config_map_update,
          .columns = config_map_columns()};
}

Kind secret_kind() {
  return {.kind = "Secret",
          .plural = "secrets",
          .singular = "secret",
          .defaults = default_secret,
          .validate = validate_secret,
          .validate_update = validate_secret_update,
          .selectable_fields = {"type"},
          .columns = secret_columns()};
}

// The server assigns spec.clusterIP and node ports: "None" and ExternalName stay without.
Kind service_kind() {
  return {.kind = "Service",
          .plural = "services",
          .singular = "service",
          .short_names = {"svc"},
          .categories = {"all"},
          .status_subresource = true,
          .defaults = default_service,
          .prepare_create =
              [](Value& object) {
                object.set("status", Value::object({{"loadBalancer", Value::object()}}));
              },
          .prepare_update = keep_status,
          .validate = validate_service,
          .validate_update = validate_service_update,
          .name_rule = "dns1123-label",  // since 1.36; before, a letter had to come first
          .selectable_fields = {"spec.clusterIP", "spec.type"},
          .columns = service_columns()};
}

Kind service_account_kind() {
  return {.kind = "ServiceAccount",
          .plural = "serviceaccounts",
          .singular = "serviceaccount",
          .short_names = {"sa"},
          .subresources = {"token"},
          .columns = service_account_columns()};
}

Kind event_kind() {
  return {
      .kind = "Event",
      .plural = "events",
      .singular = "event",
      .short_names = {"ev"},
      .validate = validate_event,
      .selectable_fields = {"involvedObject.kind", "involvedObject.namespace",
                            "involvedObject.name", "involvedObject.uid",
                            "involvedObject.apiVersion", "involvedObject.resourceVersion",
                            "involvedObject.fieldPath", "reason", "reportingComponent", "source",
                            "type"},
      .field_value = [](const Value& event, std::string_view field) -> std::optional<std::string> {
        if (field != "source") return std::nullopt;
        const std::string component = event["source"]["component"].str();
        return component.empty() ? event["reportingComponent"].str() : component;
      },
      .columns = event_columns()};
}

}  // namespace

void add_core_kinds(Kinds& kinds) {
  kinds.add(namespace_kind());
  kinds.add(node_kind());
  kinds.add(pod_kind());
  kinds.add(binding_kind());
  kinds.add(config_map_kind());
  kinds.add(secret_kind());
  kinds.add(service_kind());
  kinds.add(service_account_kind());
  kinds.add(event_kind());
}

}  // namespace tessera::apiserver
