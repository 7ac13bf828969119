#include "apiserver/defaults_policy.h"

#include <string_view>

#include "apiserver/defaults_pod.h"
#include "apiserver/json_edit.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kRbacGroup = "rbac.authorization.k8s.io";

void copy_missing(Value& limit, const char* from, const char* to) {
  const Value amounts = limit[from];
  for (const json::Member& member : amounts.members()) {
    set_missing(limit.ref(to), member.name(), member.value);
  }
}

void default_limit(Value& limit) {
  if (limit["type"].as_string() != "Container") return;
  copy_missing(limit, "max", "default");
  copy_missing(limit, "default", "defaultRequest");
  copy_missing(limit, "min", "defaultRequest");
}

void default_protocol(Value& port) {
  set_missing(port, "protocol", "TCP");
}

void default_scaling(Value& behavior, const char* direction, bool up) {
  Value& rules = behavior.ref(direction);
  set_missing(rules, "selectPolicy", "Max");
  if (up) set_missing(rules, "stabilizationWindowSeconds", 0);
  if (rules.contains("policies")) return;
  const auto policy = [](const char* type, int value) {
    return Value::object({{"type", type}, {"value", value}, {"periodSeconds", 15}});
  };
  rules.set("policies", up ? Value::array({policy("Pods", 4), policy("Percent", 100)})
                           : Value::array({policy("Percent", 100)}));
}

}  // namespace

void default_limit_range(Value& object) {
  inside(object, "spec", [](Value& spec) { each_of(spec, "limits", default_limit); });
}

void default_network_policy(Value& object) {
  inside(object, "spec", [](Value& spec) {
    for (const char* rules : {"ingress", "egress"}) {
      each_of(spec, rules, [](Value& rule) { each_of(rule, "ports", default_protocol); });
    }
    if (!spec["policyTypes"].empty()) return;
    Value types = Value::array({"Ingress"});
    if (!spec["egress"].empty()) types.push_back("Egress");
    spec.set("policyTypes", std::move(types));
  });
}

void default_ingress_class(Value& object) {
  inside(object, "spec", [](Value& spec) {
    inside(spec, "parameters", [](Value& p) { set_missing(p, "scope", "Cluster"); });
  });
}

void default_role(Value& object) {
  set_missing(object, "rules", Value());
}

void default_role_binding(Value& object) {
  inside(object, "roleRef", [](Value& role) {
    if (role["apiGroup"].as_string().empty()) role.set("apiGroup", kRbacGroup);
  });
  each_of(object, "subjects", [](Value& subject) {
    const std::string_view kind = subject["kind"].as_string();
    if (kind == "User" || kind == "Group") set_missing(subject, "apiGroup", kRbacGroup);
  });
}

void default_endpoint_slice(Value& object) {
  for (const char* list : {"endpoints", "ports"}) set_missing(object, list, Value());
  each_of(object, "ports", [](Value& port) {
    set_missing(port, "name", "");
    default_protocol(port);
  });
}

void default_endpoints(Value& object) {
  each_of(object, "subsets", [](Value& subset) { each_of(subset, "ports", default_protocol); });
}

void default_autoscaler(Value& object) {
  inside(object, "spec", [](Value& spec) {
    set_missing(spec, "minReplicas", 1);
    if (spec["metrics"].empty()) {
      const Value target = Value::object({{"type", "Utilization"}, {"averageUtilization", 80}});
      const Value resource = Value::object({{"name", "cpu"}, {"target", target}});
      spec.set("metrics",
               Value::array({Value::object({{"type", "Resource"}, {"resource", resource}})}));
    }
    inside(spec, "behavior", [](Value& behavior) {
      default_scaling(behavior, "scaleUp", true);
      default_scaling(behavior, "scaleDown", false);
    });
  });
}

void default_replication_controller(Value& object) {
  const Value labels = object.get("spec", "template", "metadata", "labels");
  if (!labels.empty() && object["metadata"]["labels"].empty()) {
    object.ref("metadata").set("labels", labels);
  }
  inside(object, "spec", [&](Value& spec) {
    if (!labels.empty() && spec["selector"].empty()) spec.set("selector", labels);
    set_missing(spec, "replicas", 1);
    inside(spec, "template", default_pod_template);
  });
}

void default_pod_template_object(Value& object) {
  inside(object, "template", default_pod_template);
}

}  // namespace tessera::apiserver
