#include <algorithm>
#include <limits>
#include <set>

#include "apiserver/server_types.h"
#include "apiserver/validate_meta.h"
#include "apiserver/validate_pod.h"
#include "apiserver/validate_scheduling.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr std::string_view kMayChange =
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions "
    "to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
    "was previously negative)";

// False where nothing else is worth saying.
bool validate_same_containers(const Value& spec, const Value& before, const char* list,
                              const Path& at, FieldErrors& errors) {
  if (spec[list].size() == before[list].size()) return true;
  errors.forbidden(at.text(list), "pod updates may not add or remove containers");
  return false;
}

void validate_deadline(const Value& spec, const Value& before, const Path& at,
                       FieldErrors& errors) {
  constexpr const char* kField = "activeDeadlineSeconds";
  const Value* now = spec.find(kField);
  const Value* old = before.find(kField);
  if (now == nullptr) {
    if (old != nullptr) {
      errors.invalid(at.text(kField), Value(),
                     "must not update from a positive integer to nil value");
    }
    return;
  }
  if (now->as_int() < 0 || now->as_int() > std::numeric_limits<int32_t>::max()) {
    errors.invalid(at.text(kField), *now, "must be between 0 and 2147483647, inclusive");
  } else if (old != nullptr && old->as_int() < now->as_int()) {
    errors.invalid(at.text(kField), *now, "must be less than or equal to previous value");
  }
}

Value without_seconds(Value toleration) {
  toleration.erase("tolerationSeconds");
  return toleration;
}

void validate_added_tolerations(const Value& spec, const Value& before, const Path& at,
                                FieldErrors& errors) {
  for (const Value& old : before["tolerations"].items()) {
    const auto now = spec["tolerations"].items();
    const Value wanted = without_seconds(old);
    if (std::ranges::any_of(now, [&](const Value& t) { return without_seconds(t) == wanted; })) {
      continue;
    }
    errors.forbidden(at.text("tolerations"),
                     "existing toleration can not be modified except its tolerationSeconds");
    return;
  }
}

void validate_removed_gates(const Value& spec, const Value& before, const Path& at,
                            FieldErrors& errors) {
  std::set<std::string_view> had;
  for (const Value& gate : before["schedulingGates"].items()) had.insert(gate["name"].as_string());
  const Path list = at.child("schedulingGates");
  const Value& gates = spec["schedulingGates"];
  for (size_t i = 0; i < gates.size(); ++i) {
    const std::string_view name = gates.at(i)["name"].as_string();
    if (had.contains(name)) continue;
    const Path here = list.at(i);
    errors.forbidden(
        here.text("name"),
        fmt::format("only deletion is allowed, but found new scheduling gate '{}'", name));
  }
}

void take(Value& spec, const Value& before, const char* field) {
  if (const Value* old = before.find(field)) {
    spec.set(field, *old);
  } else {
    spec.erase(field);
  }
}

void take_images(Value& spec, const Value& before, const char* list) {
  for (size_t i = 0; i < spec[list].size(); ++i) {
    const Value& image = before[list].at(i)["image"];
    if (!(spec[list].at(i)["image"] == image)) spec.ref(list).ref_at(i).set("image", image);
  }
}

// A gated pod's node selector may get more keys, and its node affinity may get tighter.
void take_gated(Value& spec, const Value& before, const Path& at, FieldErrors& errors) {
  if (before["schedulingGates"].empty()) return;
  for (const json::Member& old : before["nodeSelector"].members()) {
    if (spec["nodeSelector"][old.name()] == old.value) continue;
    errors.invalid(at.text("nodeSelector"), spec["nodeSelector"],
                   "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    break;
  }
  take(spec, before, "nodeSelector");
  const Value old_affinity = before.get("affinity", "nodeAffinity");
  if (old_affinity["requiredDuringSchedulingIgnoredDuringExecution"].is_object()) return;
  if (old_affinity.is_object()) {
    spec.ref("affinity").set("nodeAffinity", old_affinity);
  } else if (spec["affinity"].is_object()) {
    spec.ref("affinity").erase("nodeAffinity");
    if (spec["affinity"].empty() && !before.contains("affinity")) spec.erase("affinity");
  }
}

// What binding wrote about devices is the record of who holds which GPU: it stays while the pod is on its node.
void validate_device_record(const Value& pod, const Value& before, FieldErrors& errors) {
  if (before["spec"]["nodeName"].as_string().empty()) return;
  for (const char* key :
       {"tessera.dev/gpus", "tessera.dev/share-gpus", "tessera.dev/share-milli"}) {
    const Value& now = pod["metadata"]["annotations"][key];
    if (now == before["metadata"]["annotations"][key]) continue;
    errors.forbidden(fmt::format("metadata.annotations[{}]", key),
                     "is written when the pod is bound and may not be changed");
  }
}

}  // namespace

void validate_pod_update(const Value& pod, const Value& before, FieldErrors& errors) {
  validate_device_record(pod, before, errors);
  const Path at("spec");
  const Value& now = pod["spec"];
  const Value& old = before["spec"];
  if (now == old) return;
  if (!validate_same_containers(now, old, "containers", at, errors)) return;
  if (!validate_same_containers(now, old, "initContainers", at, errors)) return;
  validate_deadline(now, old, at, errors);
  validate_added_tolerations(now, old, at, errors);
  validate_removed_gates(now, old, at, errors);
  Value rest = now;
  take_images(rest, old, "containers");
  take_images(rest, old, "initContainers");
  for (const char* field : {"activeDeadlineSeconds", "schedulingGates", "tolerations"}) {
    take(rest, old, field);
  }
  if (old["terminationGracePeriodSeconds"].as_int() < 0 &&
      rest["terminationGracePeriodSeconds"].as_int() == 1) {
    take(rest, old, "terminationGracePeriodSeconds");
  }
  take_gated(rest, old, at, errors);
  if (rest == old) return;
  errors.forbidden("spec", fmt::format("{}\n{}", kMayChange, server_diff("PodSpec", old, rest)));
}

}  // namespace tessera::apiserver
