#include "apiserver/validate_sets.h"

#include <set>

#include "apiserver/validate_meta.h"
#include "apiserver/validate_pod.h"
#include "apiserver/validate_storage.h"
#include "apiserver/validate_workload.h"

namespace tessera::apiserver {
namespace {

using json::Value;

void validate_not_empty(const Value& selector, std::string_view owner, const Path& at,
                        FieldErrors& errors) {
  if (!selector.is_object()) return;
  if (!selector["matchLabels"].empty() || !selector["matchExpressions"].empty()) return;
  errors.invalid(at.text(), selector, fmt::format("empty selector is invalid for {}", owner));
}

void validate_at_most_all(const Value& value, const Path& at, FieldErrors& errors) {
  if (value.is_string() && number_of(value) > 100) {
    errors.invalid(at.text(), value, "must not be greater than 100%");
  }
}

void validate_stateful_rolling(const Value& rolling, const Path& at, FieldErrors& errors) {
  validate_not_negative(rolling["partition"], at.child("partition"), errors);
  const Value* most = rolling.find("maxUnavailable");
  if (most == nullptr) return;
  const Path here = at.child("maxUnavailable");
  validate_int_or_percent(*most, here, errors);
  if (number_of(*most) == 0) errors.invalid(here.text(), *most, "cannot be 0");
  validate_at_most_all(*most, here, errors);
}

void validate_stateful_strategy(const Value& strategy, const Path& at, FieldErrors& errors) {
  const std::string_view type = strategy["type"].as_string();
  const Path rolling = at.child("rollingUpdate");
  if (type == "OnDelete") {
    if (strategy.contains("rollingUpdate")) {
      errors.invalid(rolling.text(), strategy["rollingUpdate"],
                     "only allowed for updateStrategy 'RollingUpdate'");
    }
  } else if (type == "RollingUpdate") {
    validate_stateful_rolling(strategy["rollingUpdate"], rolling, errors);
  } else {
    errors.invalid(at.text(), strategy, "must be 'RollingUpdate' or 'OnDelete'");
  }
}

void validate_retention(const Value& policy, const Path& at, FieldErrors& errors) {
  if (!policy.is_object()) return;
  for (const char* field : {"whenDeleted", "whenScaled"}) {
    const std::string_view word = policy[field].as_string();
    if (word == "Retain" || word == "Delete") continue;
    errors.not_supported(at.text(field), policy[field], {"Retain", "Delete"});
  }
}

// The template as its pods come of it: names are the controller's, and each claim template is a volume.
Value template_of_pods(const Value& spec) {
  Value out = spec["template"];
  const Value& claims = spec["volumeClaimTemplates"];
  const Value& pod = spec["template"]["spec"];
  for (const char* field : {"hostname", "subdomain"}) {
    if (pod.contains(field)) out.ref("spec").erase(field);
  }
  if (claims.empty()) return out;
  std::set<std::string> taken;
  Value volumes = Value::array();
  for (const Value& claim : claims.items()) {
    const std::string name = claim["metadata"]["name"].str();
    if (!taken.insert(name).second) continue;
    volumes.push_back(Value::object(
        {{"name", name}, {"persistentVolumeClaim", Value::object({{"claimName", name}})}}));
  }
  for (const Value& volume : pod["volumes"].items()) {
    if (!taken.contains(volume["name"].str())) volumes.push_back(volume);
  }
  out.ref("spec").set("volumes", std::move(volumes));
  return out;
}

void validate_claim_templates(const Value& claims, const Path& at, FieldErrors& errors) {
  for (size_t i = 0; i < claims.size(); ++i) {
    const Path here = at.at(i);
    validate_claim_spec(claims.at(i)["spec"], here.child("spec"), errors);
  }
}

void validate_daemon_rolling(const Value& rolling, const Path& at, FieldErrors& errors) {
  const Value& down = rolling["maxUnavailable"];
  const Value& surge = rolling["maxSurge"];
  const Path down_at = at.child("maxUnavailable");
  const Path surge_at = at.child("maxSurge");
  validate_int_or_percent(down, down_at, errors);
  validate_int_or_percent(surge, surge_at, errors);
  validate_at_most_all(down, down_at, errors);
  validate_at_most_all(surge, surge_at, errors);
  if (number_of(down) != 0 && number_of(surge) != 0) {
    errors.invalid(surge_at.text(), surge, "may not be set when maxUnavailable is non-zero");
  } else if (number_of(down) == 0 && number_of(surge) == 0) {
    errors.required(down_at.text(), "cannot be 0 when maxSurge is 0");
  }
}

void validate_daemon_strategy(const Value& strategy, const Path& at, FieldErrors& errors) {
  const std::string_view type = strategy["type"].as_string();
  if (type == "OnDelete") return;
  const Path rolling = at.child("rollingUpdate");
  if (type != "RollingUpdate") {
    refuse_strategy(strategy, at, R"("RollingUpdate", "OnDelete")", errors);
  } else if (!strategy["rollingUpdate"].is_object()) {
    errors.required(rolling.text());
  } else {
    validate_daemon_rolling(strategy["rollingUpdate"], rolling, errors);
  }
}

// Whether all but what may change is the same.
bool same_but(const Value& object, const Value& before, std::initializer_list<const char*> open) {
  Value left = object;
  Value right = before;
  for (const char* field : open) {
    left.erase(field);
    right.erase(field);
  }
  return left == right;
}

}  // namespace

void validate_stateful_set(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  const std::string_view order = spec["podManagementPolicy"].as_string();
  if (order != "OrderedReady" && order != "Parallel") {
    errors.invalid(at.text("podManagementPolicy"), spec["podManagementPolicy"],
                   "must be 'OrderedReady' or 'Parallel'");
  }
  validate_stateful_strategy(spec["updateStrategy"], at.child("updateStrategy"), errors);
  validate_retention(spec["persistentVolumeClaimRetentionPolicy"],
                     at.child("persistentVolumeClaimRetentionPolicy"), errors);
  validate_claim_templates(spec["volumeClaimTemplates"], at.child("volumeClaimTemplates"), errors);
  for (const char* field : {"replicas", "minReadySeconds"}) {
    validate_not_negative(spec[field], at.child(field), errors);
  }
  validate_not_negative(spec["ordinals"]["start"], at.child("ordinals.start"), errors);
  if (!spec["serviceName"].as_string().empty()) {
    validate_dns_label(spec["serviceName"].as_string(), at.child("serviceName"), errors);
  }
  const Path selector = at.child("selector");
  if (!spec["selector"].is_object()) {
    errors.required(selector.text());
  } else {
    validate_label_selector(spec["selector"], selector, errors);
    validate_not_empty(spec["selector"], "statefulset", selector, errors);
  }
  validate_selects_template(spec, at, errors);
  const Value pods = template_of_pods(spec);
  const Path pod_template = at.child("template");
  validate_pod_template(pods, pod_template, errors);
  validate_lasting_pods(pods, "StatefulSet", pod_template, errors);
}

void validate_stateful_set_update(const Value& object, const Value& before, FieldErrors& errors) {
  if (same_but(object["spec"], before["spec"],
               {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
                "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy"})) {
    return;
  }
  errors.forbidden("spec",
                   "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                   "'template', 'updateStrategy', 'revisionHistoryLimit', "
                   "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
}

void validate_daemon_set(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  const Path selector = at.child("selector");
  if (!spec["selector"].is_object()) errors.required(selector.text());
  validate_label_selector(spec["selector"], selector, errors);
  validate_selects_template(spec, at, errors);
  validate_not_empty(spec["selector"], "daemonset", selector, errors);
  const Path pod_template = at.child("template");
  validate_pod_template(spec["template"], pod_template, errors);
  validate_lasting_pods(spec["template"], "DaemonSet", pod_template, errors);
  for (const char* field : {"minReadySeconds", "revisionHistoryLimit"}) {
    validate_not_negative(spec[field], at.child(field), errors);
  }
  validate_daemon_strategy(spec["updateStrategy"], at.child("updateStrategy"), errors);
}

void validate_controller_revision(const Value& object, FieldErrors& errors) {
  validate_not_negative(object["revision"], Path("revision"), errors);
  if (object["data"].is_null()) {
    errors.required("data", "data is mandatory");
  } else if (!object["data"].is_object()) {
    errors.required("data", "data must be a valid JSON object");
  }
}

void validate_controller_revision_update(const Value& object, const Value& before,
                                         FieldErrors& errors) {
  validate_immutable(object["data"], before["data"], Path("data"), errors);
}

}  // namespace tessera::apiserver
