#include "apiserver/server_types.h"
#include "apiserver/validate_job_policy.h"
#include "apiserver/validate_meta.h"
#include "apiserver/validate_pod.h"
#include "apiserver/validate_workload.h"
#include "kube/labels.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr int64_t kIndexesMax = 100'000;
// With more completions than kIndexesMax and a back-off limit per index.
constexpr int64_t kParallelMaxOfMany = 10'000;
constexpr size_t kManagerBytesMax = 63;

void validate_generated_labels(const Value& object, FieldErrors& errors) {
  const Value& spec = object["spec"];
  if (spec["manualSelector"].as_bool() || !spec["selector"].is_object()) return;
  const Path at("spec");
  const Path pod_template = at.child("template");
  const Path meta = pod_template.child("metadata");
  const Path labels = meta.child("labels");
  const struct {
    const char* label;
    const Value& value;
  } wanted[] = {{"controller-uid", object["metadata"]["uid"]},
                {"job-name", object["metadata"]["name"]},
                {"batch.kubernetes.io/controller-uid", object["metadata"]["uid"]},
                {"batch.kubernetes.io/job-name", object["metadata"]["name"]}};
  for (const auto& each : wanted) {
    const Value* found = spec["template"]["metadata"]["labels"].find(each.label);
    if (found == nullptr) {
      errors.required(labels.key(each.label).text(),
                      fmt::format("must be '{}'", each.value.as_string()));
    } else if (!(*found == each.value)) {
      errors.invalid(labels.key(each.label).text(), *found,
                     fmt::format("must be '{}'", each.value.as_string()));
    }
  }
  Value expected = Value::object();
  for (const auto& each : wanted) expected.set(each.label, each.value);
  auto selector = kube::LabelSelector::from_json(spec["selector"], at.text("selector"));
  if (selector && !selector->matches(expected)) {
    errors.invalid(at.text("selector"), spec["selector"], "`selector` not auto-generated");
  }
}

void validate_many_indexes(const Value& spec, const Path& at, FieldErrors& errors) {
  if (!spec.contains("maxFailedIndexes")) {
    errors.required(at.text("maxFailedIndexes"),
                    "must be specified when completions is above 100000");
  }
  for (const char* field : {"parallelism", "maxFailedIndexes"}) {
    if (spec[field].as_int() <= kParallelMaxOfMany) continue;
    errors.invalid(at.text(field), spec[field],
                   "must be less than or equal to 10000 when completions are above 100000 and used "
                   "with backoff limit per index");
  }
}

void validate_indexed(const Value& spec, const Path& at, FieldErrors& errors) {
  const Value& completions = spec["completions"];
  const Value& failed = spec["maxFailedIndexes"];
  if (completions.is_null()) {
    errors.required(at.text("completions"), "when completion mode is Indexed");
  } else if (failed.is_int() && failed.as_int() > completions.as_int()) {
    errors.invalid(at.text("maxFailedIndexes"), failed,
                   "must be less than or equal to completions");
  }
  if (spec["parallelism"].as_int() > kIndexesMax) {
    errors.invalid(at.text("parallelism"), spec["parallelism"],
                   "must be less than or equal to 100000 when completion mode is Indexed");
  }
  if (failed.as_int() > kIndexesMax) {
    errors.invalid(at.text("maxFailedIndexes"), failed, "must be less than or equal to 100000");
  }
  if (completions.as_int() > kIndexesMax && spec.contains("backoffLimitPerIndex")) {
    validate_many_indexes(spec, at, errors);
  }
}

void validate_mode(const Value& spec, const Path& at, FieldErrors& errors) {
  const std::string_view mode = spec["completionMode"].as_string();
  if (mode == "Indexed") {
    validate_indexed(spec, at, errors);
    return;
  }
  // Templates of CronJobs need not say.
  if (mode != "NonIndexed" && spec.contains("completionMode")) {
    errors.not_supported(at.text("completionMode"), spec["completionMode"],
                         {"NonIndexed", "Indexed"});
  }
  for (const char* field : {"backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"}) {
    if (!spec.contains(field)) continue;
    errors.invalid(at.text(field), spec[field], "requires indexed completion mode");
  }
}

void validate_replacement_policy(const Value& spec, const Path& at, FieldErrors& errors) {
  const Value& policy = spec["podReplacementPolicy"];
  if (policy.is_null() || policy.as_string() == "Failed") return;
  if (spec["podFailurePolicy"].is_object()) {
    errors.not_supported(at.text("podReplacementPolicy"), policy, {"Failed"});
  } else if (policy.as_string() != "TerminatingOrFailed") {
    errors.not_supported(at.text("podReplacementPolicy"), policy,
                         {"Failed", "TerminatingOrFailed"});
  }
}

void validate_restart_policy(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path pod_template = at.child("template");
  const Path pod_spec = pod_template.child("spec");
  const Value& policy = spec["template"]["spec"]["restartPolicy"];
  const std::string_view word = policy.as_string();
  if (word.empty() || word == "Always") {
    errors.required(pod_spec.text("restartPolicy"), "valid values: \"OnFailure\", \"Never\"");
  } else if (word != "OnFailure" && word != "Never") {
    errors.not_supported(pod_spec.text("restartPolicy"), policy, {"OnFailure", "Never"});
  } else if (spec["podFailurePolicy"].is_object() && word != "Never") {
    errors.invalid(pod_spec.text("restartPolicy"), policy,
                   "only \"Never\" is supported when podFailurePolicy is specified");
  }
}

void validate_managed_by(const Value& spec, const Path& at, FieldErrors& errors) {
  const Value* manager = spec.find("managedBy");
  if (manager == nullptr) return;
  const Path here = at.child("managedBy");
  validate_prefixed_path(*manager, here, errors);
  if (manager->as_string().size() > kManagerBytesMax) {
    errors.too_long(here.text(), kManagerBytesMax);
  }
}

// Pods of an indexed job are called after it and their index.
void validate_host_names(const Value& object, FieldErrors& errors) {
  const Value& spec = object["spec"];
  const int64_t completions = spec["completions"].as_int();
  if (spec["completionMode"].as_string() != "Indexed" || completions <= 0) return;
  const Value& name = object["metadata"]["name"];
  const std::string longest = fmt::format("{}-{}", name.as_string(), completions - 1);
  if (kube::check_dns1123_label(longest).empty()) return;
  errors.invalid("metadata.name", name,
                 fmt::format("will not able to create pod with invalid DNS label: {}", longest));
}

// Where suspended, the resources and where it may run of a template may still change.
Value fixed_part(const Value& pod_template) {
  Value out = pod_template;
  if (out.contains("metadata")) {
    out.ref("metadata").erase("labels");
    out.ref("metadata").erase("annotations");
  }
  Value& spec = out.ref("spec");
  for (const char* field : {"nodeSelector", "tolerations", "schedulingGates"}) spec.erase(field);
  if (spec["affinity"].is_object()) {
    spec.ref("affinity").erase("nodeAffinity");
    if (spec["affinity"].empty()) spec.erase("affinity");
  }
  for (const char* list : {"containers", "initContainers"}) {
    for (size_t i = 0; i < spec[list].size(); ++i) spec.ref(list).ref_at(i).erase("resources");
  }
  return out;
}

}  // namespace

void validate_job_spec(const Value& spec, const Path& at, FieldErrors& errors) {
  for (const char* field :
       {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
        "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    validate_not_negative(spec[field], at.child(field), errors);
  }
  if (spec.contains("maxFailedIndexes") && !spec.contains("backoffLimitPerIndex")) {
    errors.required(at.text("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
  }
  validate_managed_by(spec, at, errors);
  validate_mode(spec, at, errors);
  validate_job_policies(spec, at, errors);
  validate_replacement_policy(spec, at, errors);
  validate_pod_template(spec["template"], at.child("template"), errors);
  validate_restart_policy(spec, at, errors);
}

namespace {

void validate_same_template(const Value& now, const Value& before, const Path& at,
                            FieldErrors& errors) {
  if (now == before) return;
  errors.add(
      {"FieldValueInvalid",
       fmt::format("Invalid value: {}: field is immutable", server_text("PodTemplateSpec", now)),
       at.text()});
}

void validate_selected_spec(const Value& spec, FieldErrors& errors) {
  const Path at("spec");
  validate_job_spec(spec, at, errors);
  if (!spec["selector"].is_object()) {
    errors.required(at.text("selector"));
  } else {
    validate_label_selector(spec["selector"], at.child("selector"), errors);
  }
  validate_selects_template(spec, at, errors);
}

}  // namespace

void validate_job(const Value& object, FieldErrors& errors) {
  validate_generated_labels(object, errors);
  validate_selected_spec(object["spec"], errors);
  validate_host_names(object, errors);
}

void validate_job_update(const Value& object, const Value& before, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  const Value& old = before["spec"];
  // Kubernetes looks twice, and so names each fault of the spec as two causes.
  validate_selected_spec(spec, errors);
  if (spec["completionMode"].as_string() != "Indexed") {
    validate_immutable(spec["completions"], old["completions"], at.child("completions"), errors);
  } else if (!(spec["completions"] == old["completions"]) && spec["completions"].is_int() &&
             !(spec["completions"] == spec["parallelism"])) {
    errors.invalid(at.text("completions"), spec["completions"],
                   "can only be modified in tandem with spec.parallelism");
  }
  validate_immutable(spec["selector"], old["selector"], at.child("selector"), errors);
  const bool open = old["suspend"].as_bool() && !before["status"].contains("startTime");
  if (!open || !(fixed_part(spec["template"]) == fixed_part(old["template"]))) {
    validate_same_template(spec["template"], old["template"], at.child("template"), errors);
  }
  for (const char* field : {"completionMode", "podFailurePolicy", "backoffLimitPerIndex",
                            "managedBy", "successPolicy"}) {
    validate_immutable(spec[field], old[field], at.child(field), errors);
  }
}

}  // namespace tessera::apiserver
