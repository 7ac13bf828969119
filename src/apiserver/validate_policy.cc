#include "apiserver/validate_policy.h"

#include <set>

#include "apiserver/validate_meta.h"
#include "apiserver/validate_pod.h"
#include "apiserver/validate_resources.h"
#include "apiserver/validate_scheduling.h"
#include "apiserver/validate_workload.h"

namespace tessera::apiserver {
namespace {

using json::Value;

void validate_tolerations_once(const Value& tolerations, const Path& at, FieldErrors& errors) {
  validate_tolerations(tolerations, at, errors);
  std::set<std::string> seen;
  for (size_t i = 0; i < tolerations.size(); ++i) {
    Value key = tolerations.at(i);
    key.erase("tolerationSeconds");
    if (!seen.insert(key.dump()).second) errors.duplicate(at.at(i).text(), tolerations.at(i));
  }
}

bool selects(const Value& selector, const Value& labels) {
  for (const json::Member& member : selector.members()) {
    const Value* label = labels.find(member.name());
    if (label == nullptr || !(*label == member.value)) return false;
  }
  return true;
}

}  // namespace

void validate_disruption_budget(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  if (spec.contains("minAvailable") && spec.contains("maxUnavailable")) {
    // Kubernetes shows its inner form here.
    errors.add(
        {"FieldValueInvalid",
         fmt::format("Invalid value: {{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},"
                     "\"UnhealthyPodEvictionPolicy\":{}}}: minAvailable and maxUnavailable "
                     "cannot be both set",
                     spec["minAvailable"].dump(), spec["selector"].dump(),
                     spec["maxUnavailable"].dump(), spec["unhealthyPodEvictionPolicy"].dump()),
         at.text()});
  }
  for (const char* field : {"minAvailable", "maxUnavailable"}) {
    const Path here = at.child(field);
    validate_int_or_percent(spec[field], here, errors);
    if (spec[field].is_string() && number_of(spec[field]) > 100) {
      errors.invalid(here.text(), spec[field], "must not be greater than 100%");
    }
  }
  validate_label_selector(spec["selector"], at.child("selector"), errors);
  const Value* eviction = spec.find("unhealthyPodEvictionPolicy");
  if (eviction != nullptr && eviction->as_string() != "AlwaysAllow" &&
      eviction->as_string() != "IfHealthyBudget") {
    errors.not_supported(at.text("unhealthyPodEvictionPolicy"), *eviction,
                         {"AlwaysAllow", "IfHealthyBudget"});
  }
}

void validate_runtime_class(const Value& object, FieldErrors& errors) {
  const Path handler("handler");
  if (object["handler"].as_string().empty()) {
    errors.required(handler.text());
  } else {
    validate_dns_label(object["handler"].as_string(), handler, errors);
  }
  const Path overhead("overhead");
  if (object.contains("overhead")) {
    const Value limits = Value::object({{"limits", object["overhead"]["podFixed"]}});
    validate_container_resources(limits, Value(), overhead, errors);
  }
  const Path scheduling("scheduling");
  validate_labels(object["scheduling"]["nodeSelector"], scheduling.child("nodeSelector"), errors);
  validate_tolerations_once(object["scheduling"]["tolerations"], scheduling.child("tolerations"),
                            errors);
}

void validate_runtime_class_update(const Value& object, const Value& before, FieldErrors& errors) {
  validate_immutable(object["handler"], before["handler"], Path("handler"), errors);
}

void validate_pod_template_object(const Value& object, FieldErrors& errors) {
  validate_pod_template(object["template"], Path("template"), errors);
}

void validate_replication_controller(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  for (const char* field : {"minReadySeconds", "replicas"}) {
    validate_not_negative(spec[field], at.child(field), errors);
  }
  if (spec["selector"].empty()) errors.required(at.text("selector"));
  const Path pod_template = at.child("template");
  if (!spec.contains("template")) {
    errors.required(pod_template.text());
    return;
  }
  const Value& labels = spec["template"]["metadata"]["labels"];
  if (!selects(spec["selector"], labels)) {
    const Path meta = pod_template.child("metadata");
    errors.invalid(meta.text("labels"), labels, "`selector` does not match template `labels`");
  }
  validate_pod_template(spec["template"], pod_template, errors);
  validate_lasting_pods(spec["template"], "ReplicationController", pod_template, errors);
}

}  // namespace tessera::apiserver
