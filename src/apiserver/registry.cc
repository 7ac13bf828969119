#include "apiserver/registry.h"

#include <string>
#include <utility>

#include "apiserver/admission.h"
#include "apiserver/admission_storage.h"
#include "apiserver/api_errors.h"
#include "apiserver/api_pods_part.h"
#include "apiserver/field_ownership.h"
#include "apiserver/node_access.h"
#include "apiserver/pod_groups.h"
#include "apiserver/rbac_guard.h"
#include "apiserver/registry_meta.h"
#include "apiserver/validate_meta.h"
#include "apiserver/warnings.h"
#include "kube/managed_fields.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kGeneratedPrefixMax = 58;  // 63 less the five letters drawn
constexpr int kSuffixLength = 5;

base::Status check_namespace(const Call& call, const Value& object) {
  const std::string_view ns = object["metadata"]["namespace"].as_string();
  if (ns == call.request.ns || ns.empty()) return {};
  return base::error(bad_request(
      "the namespace of the provided object does not match the namespace sent on the request"));
}

base::Status fill_meta(Core& core, const Call& call, Value& object) {
  const Kind& kind = *call.kind;
  TS_TRY_STATUS(check_namespace(call, object));
  Value& meta = object.ref("metadata");
  if (!meta["resourceVersion"].as_string().empty()) {
    return base::error(plain_error("resourceVersion should not be set on objects to be created"));
  }
  for (const char* field : {"resourceVersion", "selfLink", "managedFields", "deletionTimestamp",
                            "deletionGracePeriodSeconds"}) {
    meta.erase(field);
  }
  if (kind.namespaced) meta.set("namespace", call.request.ns);
  if (meta["name"].as_string().empty() && !meta["generateName"].as_string().empty()) {
    const std::string prefix = meta["generateName"].str().substr(0, kGeneratedPrefixMax);
    meta.set("name", prefix + core.suffix(kSuffixLength));
  }
  meta.set("uid", core.uuid());
  meta.set("creationTimestamp", base::to_rfc3339(core.now()));
  if (kind.has_generation) meta.set("generation", 1);
  return {};
}

base::Status refuse_where_wrong(const Kind& kind, const Value& object, const FieldErrors& errors) {
  if (errors.empty()) return {};
  return base::error(invalid(kind, object["metadata"]["name"].as_string(), errors.causes()));
}

// Kinds whose objects are replaced only by those who say what they have seen.
bool needs_version(const Kind& kind) {
  return kind.custom != nullptr || kind.group == "apiextensions.k8s.io" ||
         (kind.group == "scheduling.k8s.io" && kind.version == "v1beta1");
}

// Resource versions and ids that the client says it means.
base::Status check_preconditions(const Kind& kind, const Value& object, const Value& before,
                                 bool patch) {
  const Value& meta = object["metadata"];
  const Value& old = before["metadata"];
  const std::string_view version = meta["resourceVersion"].as_string();
  const std::string_view name = old["name"].as_string();
  if (version.empty() && !patch && needs_version(kind)) {
    Kind resource;
    resource.group = kind.group;
    resource.kind = kind.plural;
    FieldErrors errors;
    errors.invalid("metadata.resourceVersion", 0, "must be specified for an update");
    return base::error(invalid(resource, name, errors.causes()));
  }
  if (!version.empty() && version != old["resourceVersion"].as_string()) {
    return base::error(modified(kind, name));
  }
  // That a patch changes the uid is told with what else is wrong.
  const std::string_view uid = meta["uid"].as_string();
  if (patch || uid.empty() || uid == old["uid"].as_string()) return {};
  return base::error(other_uid(kind, before, uid));
}

// Through /finalize only the finalizers of a namespace's spec change; elsewhere they stay.
void keep_namespace_finalizers(Value& object, const Value& before, bool finalize) {
  const Value finalizers = (finalize ? object : before)["spec"]["finalizers"];
  if (finalize) object = before;
  if (finalizers == object["spec"]["finalizers"]) return;
  if (finalizers.empty()) {
    object.ref("spec").erase("finalizers");
  } else {
    object.ref("spec", "finalizers") = finalizers;
  }
}

// Through /status only the status changes, otherwise all but the status.
void keep_other_half(const Kind& kind, Value& object, const Value& before, bool status) {
  if (!status) {
    if (!kind.status_subresource) return;
    if (before.contains("status")) {
      if (!object["status"].same_node(before["status"])) object.set("status", before["status"]);
    } else {
      object.erase("status");
    }
    return;
  }
  Value kept = before;
  if (object.contains("status")) {
    kept.set("status", object["status"]);
  } else {
    kept.erase("status");
  }
  if (kind.custom != nullptr) {
    // Nothing else of the metadata is written here than who wrote.
    object = std::move(kept);
    return;
  }
  if (!object["metadata"].same_node(before["metadata"])) {
    Value meta = object["metadata"];
    for (const char* field : {"ownerReferences", "labels"}) {
      if (kind.kind == "Pod" && std::string_view(field) == "labels") continue;
      if (before["metadata"].contains(field)) {
        meta.set(field, before["metadata"][field]);
      } else {
        meta.erase(field);
      }
    }
    kept.set("metadata", std::move(meta));
  }
  object = std::move(kept);
}

// The status of a custom object that has no resource of its own is a field as all others.
bool counts_status(const Kind& kind) {
  return kind.custom != nullptr && !kind.status_subresource;
}

// Everything but metadata and status is what the object should be; a change of it is a new generation.
void count_generation(const Kind& kind, Value& object, const Value& before) {
  if (!kind.has_generation) return;
  bool changed = false;
  for (const json::Member& member : object.members()) {
    const std::string_view name = member.name();
    if (name == "metadata" || (name == "status" && !counts_status(kind))) continue;
    if (!(member.value == before[name])) changed = true;
  }
  for (const json::Member& member : before.members()) {
    const bool status = member.name() == "status" && !counts_status(kind);
    if (member.name() != "metadata" && !status && !object.contains(member.name())) {
      changed = true;
    }
  }
  if (changed) {
    object.ref("metadata", "generation") = before["metadata"]["generation"].as_int() + 1;
  }
}

void warn(Call& call, const Value& object, const Value& before) {
  for (std::string& text : warnings_of(*call.kind, object, before)) {
    call.warnings.push_back(std::move(text));
  }
}

base::Status admit_create(Core& core, const Call& call, Value& object) {
  const Kind& kind = *call.kind;
  const Value& meta = object["metadata"];
  TS_TRY_STATUS(admit_namespace(core, kind, call.request.ns, meta["name"].as_string()));
  TS_TRY_STATUS(admit_rights(core, call, object, Value()));
  if (&kind == core.pods) TS_TRY_STATUS(admit_pod(core, call, object));
  if (is_pod_group(kind)) TS_TRY_STATUS(admit_pod_group(core, kind, object));
  if (&kind == core.claims) admit_new_claim(core, object);
  if (&kind == core.volumes) admit_new_volume(object);
  if (&kind == core.nodes && core.options.taint_new_nodes) admit_new_node(object);
  return {};
}

}  // namespace

bool may_go(const Value& object) {
  const Value& meta = object["metadata"];
  const bool is_namespace = object["kind"].as_string() == "Namespace";
  return meta.contains("deletionTimestamp") && meta["finalizers"].empty() &&
         meta["deletionGracePeriodSeconds"].as_int() == 0 &&
         !(is_namespace && !object["spec"]["finalizers"].empty());
}

base::Result<Value> prepare_create(Core& core, Call& call) {
  const Kind& kind = *call.kind;
  TS_TRY(Value object, decode_body(call, call.request.body, Value()));
  if (kind.defaults) kind.defaults(object);
  const Value sent_owners = object["metadata"]["managedFields"];
  Value owners = owners_after(core, call, Value(), object, sent_owners, "");
  TS_TRY_STATUS(fill_meta(core, call, object));
  set_owners(object, std::move(owners));
  TS_TRY_STATUS(admit_create(core, call, object));
  if (kind.prepare_create) kind.prepare_create(object);
  FieldErrors errors;
  validate_metadata(kind, object, errors);
  if (kind.validate) kind.validate(object, errors);
  if (call.view != nullptr && call.view->validate) call.view->validate(object, errors);
  if (kind.validate_create) kind.validate_create(object, errors);
  if (&kind == core.services && errors.empty() && !call.dry_run) {
    core.ips.assign(object, [&](uint64_t bound) { return core.draw(bound); }, errors);
  }
  TS_TRY_STATUS(admit_node_caller(core, call, Value(), object));
  TS_TRY_STATUS(refuse_where_wrong(kind, object, errors));
  TS_TRY_STATUS(check_limits(core, kind, object));
  warn(call, object, Value());
  return object;
}

base::Result<Value> prepare_update(Core& core, Call& call, Value object, const Value& before,
                                   std::string_view subresource) {
  const Kind& kind = *call.kind;
  const bool status = subresource == "status";
  TS_TRY_STATUS(check_namespace(call, object));
  const std::string_view name = object["metadata"]["name"].as_string();
  if (name.empty() && call.request.verb == kube::Verb::kUpdate) {
    return base::error(bad_request(
        fmt::format("the name of the object ({} based on URL) was undeterminable: name must be "
                    "provided",
                    call.request.name)));
  }
  if (!name.empty() && name != call.request.name) {
    return base::error(bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name,
                    call.request.name)));
  }
  TS_TRY_STATUS(check_preconditions(kind, object, before, call.request.verb == kube::Verb::kPatch));
  const Value sent_owners = object["metadata"]["managedFields"];
  if (!object["metadata"].same_node(before["metadata"])) carry_meta(object, before);
  keep_other_half(kind, object, before, status);
  const bool part = &kind == core.pods && is_pod_part(subresource);
  if (part) object = with_pod_part(object, before, subresource);
  TS_TRY_STATUS(admit_rights(core, call, object, before));
  TS_TRY_STATUS(admit_node_caller(core, call, before, object));
  if (&kind == core.namespaces && !status) {
    keep_namespace_finalizers(object, before, subresource == "finalize");
  }
  const bool defaults = !status || &kind == core.services;  // no other status has any
  if (defaults && kind.defaults) kind.defaults(object);
  set_owners(object, owners_after(core, call, before, object, sent_owners, subresource));
  if (&kind == core.pods && subresource.empty()) admit_pod_update(object);
  FieldErrors errors;
  const bool service = &kind == core.services && !status;
  if (service) ClusterIps::carry(object, before);
  if (!status && kind.prepare_update) kind.prepare_update(object, before);
  if (!status) count_generation(kind, object, before);
  set_owners(object, kube::keep_times(before, object));
  if (!object["metadata"].same_node(before["metadata"])) {
    validate_metadata(kind, object, errors);
    FieldErrors changed;
    validate_metadata_update(kind, object, before, changed);
    // Kubernetes looks twice, for all kinds and for this one, and tells it twice.
    for (int look = 0; look < 2; ++look) {
      for (const base::Cause& cause : changed.causes()) errors.add(cause);
    }
  }
  if (!status && kind.validate) kind.validate(object, errors);
  if (part) {
    validate_pod_part(object, before, subresource, errors);
  } else if (!status && kind.validate_update) {
    kind.validate_update(object, before, errors);
  } else if (status && kind.validate_status) {
    kind.validate_status(object, before, errors);
  }
  if (!status && call.view != nullptr) {
    if (call.view->validate) call.view->validate(object, errors);
    if (call.view->validate_update) call.view->validate_update(object, before, errors);
  }
  if (service && errors.empty() && !call.dry_run) {
    core.ips.reassign(object, before, [&](uint64_t bound) { return core.draw(bound); }, errors);
  }
  TS_TRY_STATUS(refuse_where_wrong(kind, object, errors));
  const bool claim = &kind == core.claims && subresource.empty();
  if (claim) TS_TRY_STATUS(admit_claim_growth(core, object, before));
  if (claim || subresource == "resize") TS_TRY_STATUS(check_limits(core, kind, object));
  if (!status) warn(call, object, before);
  return object;
}

}  // namespace tessera::apiserver
