#include "apiserver/api_pods_part.h"

#include <algorithm>
#include <set>
#include <utility>

#include "apiserver/validate_path.h"
#include "kube/pod_resources.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kEphemeral = "ephemeralContainers";

const Value& named(const Value& list, const Value& name) {
  static const Value kNone;
  for (const Value& item : list.items()) {
    if (item["name"] == name) return item;
  }
  return kNone;
}

void set_or_erase(Value& object, const char* field, const Value& value) {
  if (value.is_null()) {
    object.erase(field);
  } else {
    object.set(field, value);
  }
}

// The old containers with the new amounts; a list of another length is left for validation to refuse.
Value resized(const Value& list, const Value& before) {
  if (list.size() != before.size()) return list;
  Value out = before;
  for (size_t i = 0; i < before.size(); ++i) {
    if (!(list.at(i)["name"] == before.at(i)["name"])) return list;
    for (const char* field : {"resources", "resizePolicy"}) {
      if (list.at(i)[field] == before.at(i)[field]) continue;
      set_or_erase(out.ref_at(i), field, list.at(i)[field]);
    }
  }
  return out;
}

// Without what a resize may change.
Value without_compute(Value list) {
  for (size_t i = 0; i < list.size(); ++i) {
    Value& container = list.ref_at(i);
    container.erase("resizePolicy");
    for (const char* half : {"requests", "limits"}) {
      if (!container["resources"][half].is_object()) continue;
      Value& amounts = container.ref("resources", half);
      amounts.erase("cpu");
      amounts.erase("memory");
      if (amounts.empty()) container.ref("resources").erase(half);
    }
    if (container["resources"].empty()) container.erase("resources");
  }
  return list;
}

void validate_removals(const Value& list, const Value& before, const Path& at,
                       FieldErrors& errors) {
  for (size_t i = 0; i < std::min(list.size(), before.size()); ++i) {
    const Path container = at.at(i);
    const Path here = container.child("resources");
    for (const char* half : {"requests", "limits"}) {
      for (const char* name : {"cpu", "memory"}) {
        if (!before.at(i)["resources"][half].contains(name)) continue;
        if (list.at(i)["resources"][half].contains(name)) continue;
        errors.forbidden(here.text(half), fmt::format("resource {} cannot be removed", half));
        break;
      }
    }
  }
}

bool plain_init_changed(const Value& list, const Value& before) {
  for (size_t i = 0; i < std::min(list.size(), before.size()); ++i) {
    if (before.at(i)["restartPolicy"].as_string() != "Always" && !(list.at(i) == before.at(i))) {
      return true;
    }
  }
  return false;
}

void validate_resize(const Value& object, const Value& before, FieldErrors& errors) {
  const Path spec("spec");
  for (const char* list : {"containers", "initContainers"}) {
    const Value& now = object["spec"][list];
    const Value& old = before["spec"][list];
    const Path at = spec.child(list);
    validate_removals(now, old, at, errors);
    if (without_compute(now) == without_compute(old)) continue;
    errors.forbidden("spec", "only cpu and memory resources are mutable");
    return;
  }
  if (plain_init_changed(object["spec"]["initContainers"], before["spec"]["initContainers"])) {
    errors.forbidden("spec", "only cpu and memory resources for sidecar containers are mutable");
  }
  const auto now = kube::decode_pod(kube::Object(object));
  const auto old = kube::decode_pod(kube::Object(before));
  if (!now || !old || kube::qos_class(*now) == kube::qos_class(*old)) return;
  errors.invalid("spec", Value(kube::qos_class(*old)),
                 "Pod QOS Class may not change as a result of resizing");
}

void validate_kept(const Value& list, const Value& before, FieldErrors& errors) {
  const std::string field = std::string("spec.") + kEphemeral;
  for (const Value& old : before.items()) {
    const Value& now = named(list, old["name"]);
    if (now == old) continue;
    errors.forbidden(field,
                     fmt::format("existing ephemeral containers \"{}\" may not be {}\n",
                                 old["name"].as_string(), now.is_null() ? "removed" : "changed"));
  }
}

void validate_ephemeral_container(const Value& container, const Value& spec, const Path& at,
                                  FieldErrors& errors) {
  if (container["name"].as_string().empty()) errors.required(at.text("name"));
  if (container["image"].as_string().empty()) errors.required(at.text("image"));
  for (const char* field :
       {"ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources"}) {
    if (container[field].empty()) continue;
    errors.forbidden(at.text(field), "cannot be set for an Ephemeral Container");
  }
  const Value& target = container["targetContainerName"];
  if (target.as_string().empty()) return;
  const bool known = !named(spec["containers"], target).is_null() ||
                     !named(spec["initContainers"], target).is_null();
  if (!known) errors.not_found(at.text("targetContainerName"), target);
}

void validate_ephemeral(const Value& object, const Value& before, FieldErrors& errors) {
  const Value& spec = object["spec"];
  const Path root("spec");
  const Path at = root.child(kEphemeral);
  std::set<std::string_view> names;
  for (const char* list : {"containers", "initContainers"}) {
    for (const Value& container : spec[list].items()) names.insert(container["name"].as_string());
  }
  for (size_t i = 0; i < spec[kEphemeral].size(); ++i) {
    const Value& container = spec[kEphemeral].at(i);
    const Path here = at.at(i);
    validate_ephemeral_container(container, spec, here, errors);
    if (!names.insert(container["name"].as_string()).second) {
      errors.duplicate(here.text("name"), container["name"]);
    }
  }
  validate_kept(spec[kEphemeral], before["spec"][kEphemeral], errors);
}

}  // namespace

bool is_pod_part(std::string_view subresource) {
  return subresource == "resize" || subresource == "ephemeralcontainers";
}

Value with_pod_part(const Value& object, const Value& before, std::string_view subresource) {
  Value out = before;
  Value& spec = out.ref("spec");
  if (subresource == "ephemeralcontainers") {
    set_or_erase(spec, kEphemeral, object["spec"][kEphemeral]);
  } else {
    for (const char* list : {"containers", "initContainers"}) {
      set_or_erase(spec, list, resized(object["spec"][list], before["spec"][list]));
    }
  }
  return out;
}

void validate_pod_part(const Value& object, const Value& before, std::string_view subresource,
                       FieldErrors& errors) {
  if (subresource == "resize") {
    validate_resize(object, before, errors);
  } else {
    validate_ephemeral(object, before, errors);
  }
}

}  // namespace tessera::apiserver
