#include "apiserver/validate_autoscaler.h"

#include <algorithm>

#include "apiserver/validate_meta.h"
#include "apiserver/validate_resources.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr int64_t kPeriodSecondsMax = 1800;
constexpr int64_t kWindowSecondsMax = 3600;

// How a type of metric is called and in which member it stands.
struct Source {
  const char* type;
  const char* member;
};
constexpr Source kSources[] = {{"ContainerResource", "containerResource"},
                               {"External", "external"},
                               {"Object", "object"},
                               {"Pods", "pods"},
                               {"Resource", "resource"}};

void validate_target_ref(const Value& ref, bool core_too, const Path& at, FieldErrors& errors) {
  for (const char* field : {"kind", "name"}) {
    validate_segment(ref[field], at.child(field), errors);
  }
  const Value& version = ref["apiVersion"];
  const std::string_view text = version.as_string();
  const auto slashes = std::ranges::count(text, '/');
  if (slashes > 1) {
    errors.invalid(at.text("apiVersion"), version,
                   fmt::format("unexpected GroupVersion string: {}", text));
  } else if (slashes == 0 && !core_too && ref["kind"].as_string() != "ReplicationController") {
    errors.invalid(at.text("apiVersion"), Value(text), "apiVersion must specify API group");
  }
}

void validate_target(const Value& target, const Path& at, FieldErrors& errors) {
  const std::string_view type = target["type"].as_string();
  if (type.empty()) errors.required(at.text("type"), "must specify a metric target type");
  if (type != "Utilization" && type != "Value" && type != "AverageValue") {
    errors.invalid(at.text("type"), target["type"],
                   "must be either Utilization, Value, or AverageValue");
  }
  for (const char* field : {"value", "averageValue"}) {
    if (!target.contains(field) || quantity_of(target[field]).sign() > 0) continue;
    errors.invalid(at.text(field), target[field], "must be positive");
  }
  if (target.contains("averageUtilization") && target["averageUtilization"].as_int() < 1) {
    errors.invalid(at.text("averageUtilization"), target["averageUtilization"],
                   "must be greater than 0");
  }
}

void validate_metric_name(const Value& metric, const Path& at, FieldErrors& errors) {
  if (metric["name"].as_string().empty()) {
    errors.required(at.text("name"), "must specify a metric name");
  } else {
    validate_segment(metric["name"], at.child("name"), errors);
  }
}

// Metrics that something outside the resource API measures.
void validate_custom_source(const Value& source, std::string_view member, const Path& at,
                            FieldErrors& errors) {
  if (member == "object") {
    validate_target_ref(source["describedObject"], true, at.child("describedObject"), errors);
  }
  validate_metric_name(source["metric"], at.child("metric"), errors);
  const Path target_at = at.child("target");
  const Value& target = source["target"];
  validate_target(target, target_at, errors);
  const bool average = target.contains("averageValue");
  if (member == "pods") {
    if (!average) {
      errors.required(target_at.text("averageValue"),
                      "must specify a positive target averageValue");
    }
  } else if (!average && !target.contains("value")) {
    errors.required(target_at.text("averageValue"),
                    member == "object"
                        ? "must set either a target value or averageValue"
                        : "must set either a target value for metric or a per-pod target");
  } else if (average && target.contains("value") && member == "external") {
    errors.forbidden(target_at.text("value"),
                     "may not set both a target value for metric and a per-pod target");
  }
}

void validate_resource_source(const Value& source, std::string_view member, const Path& at,
                              FieldErrors& errors) {
  const std::string_view name = source["name"].as_string();
  if (name.empty()) {
    errors.required(at.text("name"), "must specify a resource name");
  } else if (member == "containerResource") {
    validate_container_resource_name(name, at.child("name"), errors);
  }
  if (member == "containerResource") {
    const std::string_view container = source["container"].as_string();
    if (container.empty()) {
      errors.required(at.text("container"), "must specify a container");
    } else {
      validate_dns_label(container, at.child("container"), errors);
    }
  }
  const Path target_at = at.child("target");
  const Value& target = source["target"];
  validate_target(target, target_at, errors);
  const bool part = target.contains("averageUtilization");
  const bool raw = target.contains("averageValue");
  if (!part && !raw) {
    errors.required(target_at.text("averageUtilization"),
                    "must set either a target raw value or a target utilization");
  } else if (part && raw) {
    errors.forbidden(target_at.text("averageValue"),
                     "may not set both a target raw value and a target utilization");
  }
}

void validate_source(const Value& metric, std::string_view member, const Path& at,
                     FieldErrors& errors) {
  const Path here = at.child(member);
  if (member == "resource" || member == "containerResource") {
    validate_resource_source(metric[member], member, here, errors);
  } else {
    validate_custom_source(metric[member], member, here, errors);
  }
}

void validate_metric(const Value& metric, const Path& at, FieldErrors& errors) {
  static const std::vector<std::string> kTypes = {"ContainerResource", "External", "Object", "Pods",
                                                  "Resource"};
  const std::string_view type = metric["type"].as_string();
  if (type.empty()) errors.required(at.text("type"), "must specify a metric source type");
  if (std::ranges::find(kTypes, type) == kTypes.end()) {
    errors.not_supported(at.text("type"), metric["type"], kTypes);
  }
  for (const Source& source : kSources) {
    const bool wanted = type == source.type;
    if (!metric.contains(source.member)) {
      if (!wanted) continue;
      errors.required(at.text(source.member),
                      "must populate information for the given metric source");
    } else if (wanted) {
      validate_source(metric, source.member, at, errors);
    } else {
      errors.forbidden(at.text(source.member), "must populate the given metric source only");
    }
  }
}

void validate_scaling_policy(const Value& policy, const Path& at, FieldErrors& errors) {
  const std::string_view type = policy["type"].as_string();
  if (type != "Percent" && type != "Pods") {
    errors.not_supported(at.text("type"), policy["type"], {"Percent", "Pods"});
  }
  for (const char* field : {"value", "periodSeconds"}) {
    if (policy[field].as_int() > 0) continue;
    errors.invalid(at.text(field), policy[field], "must be greater than zero");
  }
  if (policy["periodSeconds"].as_int() > kPeriodSecondsMax) {
    errors.invalid(at.text("periodSeconds"), policy["periodSeconds"],
                   fmt::format("must be less than or equal to {}", kPeriodSecondsMax));
  }
}

void validate_scaling(const Value& rules, const Path& at, FieldErrors& errors) {
  if (!rules.is_object()) return;
  const Value& window = rules["stabilizationWindowSeconds"];
  if (window.as_int() < 0) {
    errors.invalid(at.text("stabilizationWindowSeconds"), window,
                   "must be greater than or equal to zero");
  } else if (window.as_int() > kWindowSecondsMax) {
    errors.invalid(at.text("stabilizationWindowSeconds"), window,
                   fmt::format("must be less than or equal to {}", kWindowSecondsMax));
  }
  const std::string_view select = rules["selectPolicy"].as_string();
  if (rules.contains("selectPolicy") && select != "Max" && select != "Min" &&
      select != "Disabled") {
    errors.not_supported(at.text("selectPolicy"), rules["selectPolicy"],
                         {"Disabled", "Max", "Min"});
  }
  const Path list = at.child("policies");
  if (rules["policies"].empty()) errors.required(list.text(), "must specify at least one Policy");
  for (size_t i = 0; i < rules["policies"].size(); ++i) {
    validate_scaling_policy(rules["policies"].at(i), list.at(i), errors);
  }
  if (quantity_of(rules["tolerance"]).sign() < 0) {
    errors.invalid(at.text("tolerance"), rules["tolerance"], "must be greater than or equal to 0");
  }
}

}  // namespace

void validate_autoscaler(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  const Value& min = spec["minReplicas"];
  const Value& max = spec["maxReplicas"];
  if (min.is_int() && min.as_int() < 1) {
    errors.invalid(at.text("minReplicas"), min, "must be greater than or equal to 1");
  }
  if (max.as_int() == 0) {
    errors.required(at.text("maxReplicas"), "must be set and greater than 0");
  } else if (max.as_int() < 0) {
    errors.invalid(at.text("maxReplicas"), max, "must be greater than or equal to 1");
  }
  if (min.is_int() && max.as_int() < min.as_int()) {
    errors.invalid(at.text("maxReplicas"), max, "must be greater than or equal to `minReplicas`");
  }
  validate_target_ref(spec["scaleTargetRef"], false, at.child("scaleTargetRef"), errors);
  const Path metrics = at.child("metrics");
  for (size_t i = 0; i < spec["metrics"].size(); ++i) {
    validate_metric(spec["metrics"].at(i), metrics.at(i), errors);
  }
  const Path behavior = at.child("behavior");
  for (const char* direction : {"scaleUp", "scaleDown"}) {
    validate_scaling(spec["behavior"][direction], behavior.child(direction), errors);
  }
}

}  // namespace tessera::apiserver
