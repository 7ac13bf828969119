#include "apiserver/defaults_workload.h"

#include <limits>

#include "apiserver/defaults_pod.h"
#include "apiserver/json_edit.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr int kAffinitySeconds = 10800;

void default_strategy(Value& strategy) {
  set_missing(strategy, "type", "RollingUpdate");
  if (strategy["type"].as_string() != "RollingUpdate") return;
  set_missing(strategy, "rollingUpdate", Value::object());
  set_missing(strategy.ref("rollingUpdate"), "maxUnavailable", "25%");
  set_missing(strategy.ref("rollingUpdate"), "maxSurge", "25%");
}

void default_completions(Value& spec) {
  if (!spec.contains("completions") && !spec.contains("parallelism")) spec.set("completions", 1);
  set_missing(spec, "parallelism", 1);
}

void default_service_port(Value& port) {
  set_missing(port, "protocol", "TCP");
  const Value& target = port["targetPort"];
  const bool unset = target.is_string() ? target.as_string().empty() : target.as_int() == 0;
  if (!unset) return;
  const Value number = port["port"];
  port.set("targetPort", number);
}

void default_session_affinity(Value& spec) {
  set_missing(spec, "sessionAffinity", "None");
  if (spec["sessionAffinity"].as_string() == "None") {
    spec.erase("sessionAffinityConfig");
  } else if (!spec.get("sessionAffinityConfig", "clientIP", "timeoutSeconds").is_int()) {
    spec.ref("sessionAffinityConfig", "clientIP").set("timeoutSeconds", kAffinitySeconds);
  }
}

}  // namespace

void default_deployment(Value& object) {
  inside(object, "spec", [](Value& spec) {
    set_missing(spec, "replicas", 1);
    set_missing(spec, "strategy", Value::object());
    default_strategy(spec.ref("strategy"));
    set_missing(spec, "revisionHistoryLimit", 10);
    set_missing(spec, "progressDeadlineSeconds", 600);
    inside(spec, "template", default_pod_template);
  });
}

void default_replica_set(Value& object) {
  inside(object, "spec", [](Value& spec) {
    set_missing(spec, "replicas", 1);
    inside(spec, "template", default_pod_template);
  });
}

void default_job(Value& object) {
  const Value labels = object.get("spec", "template", "metadata", "labels");
  if (!labels.empty() && object["metadata"]["labels"].empty()) {
    object.ref("metadata").set("labels", labels);
  }
  inside(object, "spec", [](Value& spec) {
    default_completions(spec);
    set_missing(spec, "backoffLimit",
                spec.contains("backoffLimitPerIndex") ? std::numeric_limits<int32_t>::max() : 6);
    set_missing(spec, "completionMode", "NonIndexed");
    set_missing(spec, "suspend", false);
    set_missing(spec, "manualSelector", false);
    set_missing(spec, "podReplacementPolicy",
                spec["podFailurePolicy"].is_object() ? "Failed" : "TerminatingOrFailed");
    default_failure_conditions(spec);
    inside(spec, "template", default_pod_template);
  });
}

void default_failure_conditions(Value& spec) {
  inside(spec, "podFailurePolicy", [](Value& policy) {
    each_of(policy, "rules", [](Value& rule) {
      each_of(rule, "onPodConditions", [](Value& condition) {
        if (condition["status"].as_string().empty()) condition.set("status", "True");
      });
    });
  });
}

void generate_job_selector(Value& object) {
  if (!object["spec"].is_object() || object["spec"]["manualSelector"].as_bool()) return;
  const Value name = object["metadata"]["name"];
  const Value uid = object["metadata"]["uid"];
  Value& labels = object.ref("spec", "template", "metadata", "labels");
  set_missing(labels, "job-name", name);
  set_missing(labels, "batch.kubernetes.io/job-name", name);
  set_missing(labels, "controller-uid", uid);
  set_missing(labels, "batch.kubernetes.io/controller-uid", uid);
  set_missing(object.ref("spec", "selector", "matchLabels"), "batch.kubernetes.io/controller-uid",
              uid);
}

void default_service(Value& object) {
  inside(object, "spec", [](Value& spec) {
    default_session_affinity(spec);
    set_missing(spec, "type", "ClusterIP");
    each_of(spec, "ports", default_service_port);
    const std::string type = spec["type"].str();
    const bool outside = type == "LoadBalancer" || type == "NodePort" ||
                         (type == "ClusterIP" && !spec["externalIPs"].empty());
    if (outside) set_missing(spec, "externalTrafficPolicy", "Cluster");
    if (type != "ExternalName") set_missing(spec, "internalTrafficPolicy", "Cluster");
    if (type == "LoadBalancer") set_missing(spec, "allocateLoadBalancerNodePorts", true);
    if (type == "ExternalName") return;
    const Value address = spec["clusterIP"];
    if (!address.as_string().empty()) set_missing(spec, "clusterIPs", Value::array({address}));
    set_missing(spec, "ipFamilyPolicy", "SingleStack");
    set_missing(spec, "ipFamilies", Value::array({"IPv4"}));
  });
  if (object["spec"]["type"].as_string() != "LoadBalancer") return;
  if (object["status"]["loadBalancer"]["ingress"].empty()) return;
  each_of(object.ref("status", "loadBalancer"), "ingress", [](Value& ingress) {
    if (!ingress["ip"].as_string().empty()) set_missing(ingress, "ipMode", "VIP");
  });
}

}  // namespace tessera::apiserver
