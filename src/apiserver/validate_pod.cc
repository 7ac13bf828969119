#include "apiserver/validate_pod.h"

#include <algorithm>
#include <limits>

#include "apiserver/validate_container.h"
#include "apiserver/validate_meta.h"
#include "apiserver/validate_resources.h"
#include "apiserver/validate_scheduling.h"
#include "apiserver/validate_volumes.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

const std::vector<std::string> kRestartPolicies = {"Always", "OnFailure", "Never"};
const std::vector<std::string> kDnsPolicies = {"ClusterFirstWithHostNet", "ClusterFirst", "Default",
                                               "None"};

void validate_host_network_ports(const Value& spec, bool is_pod, const Path& at,
                                 FieldErrors& errors) {
  if (!spec["hostNetwork"].as_bool()) return;
  const Path list = at.child("containers");
  const Value& containers = spec["containers"];
  for (size_t i = 0; i < containers.size(); ++i) {
    const Path container = list.at(i);
    const Path ports = container.child("ports");
    for (size_t j = 0; j < containers.at(i)["ports"].size(); ++j) {
      const Value& port = containers.at(i)["ports"].at(j);
      const int64_t host = port["hostPort"].as_int();
      if ((!is_pod && host == 0) || host == port["containerPort"].as_int()) continue;
      const Path here = ports.at(j);
      errors.invalid(here.text("hostPort"), Value(host),
                     "must match `containerPort` when `hostNetwork` is true");
    }
  }
}

void validate_dns(const Value& spec, const Path& at, FieldErrors& errors) {
  validate_word(spec["dnsPolicy"], kDnsPolicies, at.child("dnsPolicy"), errors);
  if (spec["dnsPolicy"].as_string() != "None") return;
  if (!spec["dnsConfig"].is_object()) {
    errors.required(at.text("dnsConfig"), "must provide `dnsConfig` when `dnsPolicy` is None");
  } else if (spec["dnsConfig"]["nameservers"].empty()) {
    const Path config = at.child("dnsConfig");
    errors.required(config.text("nameservers"),
                    "must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
}

void validate_names_in_spec(const Value& spec, const Path& at, FieldErrors& errors) {
  for (const char* field :
       {"serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"}) {
    if (spec.contains(field)) {
      validate_dns_subdomain(spec[field].as_string(), at.child(field), errors);
    }
  }
  for (const char* field : {"hostname", "subdomain"}) {
    if (spec.contains(field)) validate_dns_label(spec[field].as_string(), at.child(field), errors);
  }
  const Path gates = at.child("readinessGates");
  for (size_t i = 0; i < spec["readinessGates"].size(); ++i) {
    const Path here = gates.at(i);
    const Value& type = spec["readinessGates"].at(i)["conditionType"];
    add_reasons(kube::check_qualified_name(type.as_string()), type, here.child("conditionType"),
                errors);
  }
}

void validate_numbers(const Value& spec, const Path& at, FieldErrors& errors) {
  if (!spec.contains("terminationGracePeriodSeconds")) {
    errors.required(at.text("terminationGracePeriodSeconds"));
  }
  if (!spec.contains("activeDeadlineSeconds")) return;
  const int64_t deadline = spec["activeDeadlineSeconds"].as_int();
  if (deadline < 1 || deadline > std::numeric_limits<int32_t>::max()) {
    errors.invalid(at.text("activeDeadlineSeconds"), spec["activeDeadlineSeconds"],
                   "must be between 1 and 2147483647, inclusive");
  }
}

void validate_group(const Value& spec, const Path& at, FieldErrors& errors) {
  if (!spec["schedulingGroup"].is_object()) return;
  const Path group = at.child("schedulingGroup");
  const Path name = group.child("podGroupName");
  const Value& given = spec["schedulingGroup"]["podGroupName"];
  if (given.is_null()) {
    errors.invalid(name.text(), given, "must specify one of: `podGroupName`");
  } else {
    validate_dns_subdomain(given.as_string(), name, errors);
  }
}

void validate_spec(const Value& spec, bool is_pod, const Path& at, FieldErrors& errors) {
  validate_numbers(spec, at, errors);
  validate_volumes(spec["volumes"], at.child("volumes"), errors);
  validate_containers(spec, at, errors);
  if (spec["resources"].is_object()) {
    validate_container_resources(spec["resources"], Value(), at.child("resources"), errors);
  }
  validate_host_network_ports(spec, is_pod, at, errors);
  validate_word(spec["restartPolicy"], kRestartPolicies, at.child("restartPolicy"), errors);
  validate_dns(spec, at, errors);
  validate_user_ids(spec["securityContext"], at.child("securityContext"), errors);
  validate_scheduling(spec, at, errors);
  validate_names_in_spec(spec, at, errors);
  const std::string_view preemption = spec["preemptionPolicy"].as_string();
  if (!preemption.empty() && preemption != "PreemptLowerPriority" && preemption != "Never") {
    errors.not_supported(at.text("preemptionPolicy"), spec["preemptionPolicy"],
                         {"PreemptLowerPriority", "Never"});
  }
  if (spec.contains("overhead"))
    validate_resource_list(spec["overhead"], at.child("overhead"), errors);
  validate_group(spec, at, errors);
}

}  // namespace

void validate_pod(const Value& pod, FieldErrors& errors) {
  const Path at("spec");
  // What is new has no resource version yet.
  if (!pod["metadata"].contains("resourceVersion") && !pod["spec"]["ephemeralContainers"].empty()) {
    errors.forbidden(at.text("ephemeralContainers"), "cannot be set on create");
  }
  validate_spec(pod["spec"], true, at, errors);
  if (pod["spec"].contains("nodeName") && !pod["spec"]["schedulingGates"].empty()) {
    errors.forbidden(at.text("nodeName"),
                     "cannot be set until all schedulingGates have been cleared");
  }
}

void validate_pod_template(const Value& pod_template, const Path& at, FieldErrors& errors) {
  const Value& meta = pod_template["metadata"];
  validate_labels(meta["labels"], at.child("labels"), errors);
  validate_annotations(meta["annotations"], at.child("annotations"), errors);
  const Path spec = at.child("spec");
  validate_spec(pod_template["spec"], false, spec, errors);
  if (!pod_template["spec"]["ephemeralContainers"].empty()) {
    errors.forbidden(spec.text("ephemeralContainers"),
                     "ephemeral containers not allowed in pod template");
  }
}

}  // namespace tessera::apiserver
