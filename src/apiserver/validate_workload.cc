#include "apiserver/validate_workload.h"

#include <charconv>
#include <optional>

#include "apiserver/validate_meta.h"
#include "apiserver/validate_pod.h"
#include "kube/labels.h"

namespace tessera::apiserver {
namespace {

using json::Value;

void validate_selector(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path selector = at.child("selector");
  if (!spec["selector"].is_object()) {
    errors.required(selector.text());
    return;
  }
  validate_label_selector(spec["selector"], selector, errors);
  if (spec["selector"]["matchLabels"].empty() && spec["selector"]["matchExpressions"].empty()) {
    errors.invalid(selector.text(), spec["selector"], "empty selector is invalid for deployment");
  }
}

// Template of pods that run for ever.
void validate_lasting_template(const Value& spec, const Path& at, FieldErrors& errors) {
  validate_selects_template(spec, at, errors);
  const Path pod_template = at.child("template");
  validate_pod_template(spec["template"], pod_template, errors);
  validate_lasting_pods(spec["template"], "ReplicaSet", pod_template, errors);
}

// The number of "25%", nothing where the text is none.
std::optional<int64_t> percent_of(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.starts_with('-')) {
    return std::nullopt;
  }
  return number;
}

void validate_rolling_update(const Value& update, const Path& at, FieldErrors& errors) {
  const Path unavailable = at.child("maxUnavailable");
  const Value& most = update["maxUnavailable"];
  validate_int_or_percent(most, unavailable, errors);
  validate_int_or_percent(update["maxSurge"], at.child("maxSurge"), errors);
  if (number_of(most) == 0 && number_of(update["maxSurge"]) == 0) {
    errors.invalid(unavailable.text(), most, "may not be 0 when `maxSurge` is 0");
  }
  if (most.is_string() && number_of(most) > 100) {
    errors.invalid(unavailable.text(), most, "must not be greater than 100%");
  }
}

void validate_strategy(const Value& strategy, const Path& at, FieldErrors& errors) {
  const std::string_view type = strategy["type"].as_string();
  if (type == "Recreate") {
    if (strategy["rollingUpdate"].is_object()) {
      errors.forbidden(at.text("rollingUpdate"),
                       "may not be specified when strategy `type` is 'Recreate'");
    }
  } else if (type == "RollingUpdate") {
    validate_rolling_update(strategy["rollingUpdate"], at.child("rollingUpdate"), errors);
  } else {
    refuse_strategy(strategy, at, R"("Recreate", "RollingUpdate")", errors);
  }
}

}  // namespace

void refuse_strategy(const Value& strategy, const Path& at, std::string_view supported,
                     FieldErrors& errors) {
  // Kubernetes shows its inner form here.
  errors.add(
      {"FieldValueNotSupported",
       fmt::format("Unsupported value: {{\"Type\":{},\"RollingUpdate\":{}}}: supported values: {}",
                   Value(strategy["type"].as_string()).dump(), strategy["rollingUpdate"].dump(),
                   supported),
       at.text()});
}

void validate_lasting_pods(const Value& pod_template, std::string_view owner, const Path& at,
                           FieldErrors& errors) {
  const Path spec = at.child("spec");
  const Value& policy = pod_template["spec"]["restartPolicy"];
  if (policy.as_string() != "Always") {
    errors.not_supported(spec.text("restartPolicy"), policy, {"Always"});
  }
  if (!pod_template["spec"].contains("activeDeadlineSeconds")) return;
  errors.forbidden(spec.text("activeDeadlineSeconds"),
                   fmt::format("activeDeadlineSeconds in {} is not Supported", owner));
}

int64_t number_of(const Value& value) {
  return value.is_string() ? percent_of(value.as_string()).value_or(0) : value.as_int();
}

void validate_int_or_percent(const Value& value, const Path& at, FieldErrors& errors) {
  if (value.is_string() && !percent_of(value.as_string())) {
    errors.invalid(
        at.text(), value,
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
        "'1%',  or '93%', regex used for validation is '[0-9]+%')");
  } else if (value.as_int() < 0) {
    errors.invalid(at.text(), value, "must be greater than or equal to 0");
  }
}

void validate_selects_template(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path selector_at = at.child("selector");
  const Value& labels = spec["template"]["metadata"]["labels"];
  // None at all selects nothing.
  if (spec["selector"].is_object()) {
    auto selector = kube::LabelSelector::from_json(spec["selector"], selector_at.text());
    if (!selector) {
      errors.invalid(selector_at.text(), spec["selector"], "invalid label selector");
      return;
    }
    if (selector->selects_everything() || selector->matches(labels)) return;
  }
  const Path pod_template = at.child("template");
  const Path meta = pod_template.child("metadata");
  errors.invalid(meta.text("labels"), labels, "`selector` does not match template `labels`");
}

void validate_deployment(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  validate_not_negative(spec["replicas"], at.child("replicas"), errors);
  validate_selector(spec, at, errors);
  validate_lasting_template(spec, at, errors);
  validate_strategy(spec["strategy"], at.child("strategy"), errors);
  for (const char* field : {"minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"}) {
    validate_not_negative(spec[field], at.child(field), errors);
  }
  const Value& deadline = spec["progressDeadlineSeconds"];
  if (deadline.is_int() && deadline.as_int() <= spec["minReadySeconds"].as_int()) {
    errors.invalid(at.text("progressDeadlineSeconds"), deadline,
                   "must be greater than minReadySeconds");
  }
}

void validate_replica_set(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  for (const char* field : {"replicas", "minReadySeconds"}) {
    validate_not_negative(spec[field], at.child(field), errors);
  }
  validate_selector(spec, at, errors);
  validate_lasting_template(spec, at, errors);
}

void validate_same_selector(const Value& object, const Value& before, FieldErrors& errors) {
  const Path at("spec");
  validate_immutable(object["spec"]["selector"], before["spec"]["selector"], at.child("selector"),
                     errors);
}

}  // namespace tessera::apiserver
