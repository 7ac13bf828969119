#include "apiserver/validate_storage.h"

#include <algorithm>

#include "apiserver/server_types.h"
#include "apiserver/validate_affinity.h"
#include "apiserver/validate_meta.h"
#include "apiserver/validate_resources.h"
#include "apiserver/validate_volumes.h"
#include "kube/volumes.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::Quantity;

const std::vector<std::string> kAccessModes = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                               "ReadWriteOncePod"};
const std::vector<std::string> kReclaimPolicies = {"Delete", "Recycle", "Retain"};
const std::vector<std::string> kVolumeModes = {"Block", "Filesystem"};
// What a volume can be made of, in the order that Kubernetes looks.
constexpr const char* kSources[] = {"hostPath",
                                    "gcePersistentDisk",
                                    "awsElasticBlockStore",
                                    "glusterfs",
                                    "flocker",
                                    "nfs",
                                    "rbd",
                                    "quobyte",
                                    "cephfs",
                                    "iscsi",
                                    "cinder",
                                    "fc",
                                    "flexVolume",
                                    "azureFile",
                                    "vsphereVolume",
                                    "photonPersistentDisk",
                                    "portworxVolume",
                                    "azureDisk",
                                    "scaleIO",
                                    "local",
                                    "storageos",
                                    "csi"};

void validate_access_modes(const Value& modes, const Path& at, FieldErrors& errors) {
  bool single = false;
  bool other = false;
  for (const Value& mode : modes.items()) {
    validate_choice(mode, kAccessModes, at, errors);
    const bool known = std::ranges::find(kAccessModes, mode.as_string()) != kAccessModes.end();
    single = single || mode.as_string() == "ReadWriteOncePod";
    other = other || (known && mode.as_string() != "ReadWriteOncePod");
  }
  if (single && other) {
    errors.forbidden(at.text(), "may not use ReadWriteOncePod with other access modes");
  }
}

void validate_class_name(const Value& name, const Path& at, FieldErrors& errors) {
  if (name.as_string().empty()) return;
  validate_dns_subdomain(name.as_string(), at, errors);
}

void validate_positive(const Value& amount, const Path& at, FieldErrors& errors) {
  if (quantity_of(amount).sign() <= 0) {
    errors.invalid(at.text(), amount, "must be greater than zero");
  }
}

void validate_capacity(const Value& capacity, const Path& at, FieldErrors& errors) {
  if (capacity.empty()) errors.required(at.text());
  if (!capacity.contains("storage") || capacity.size() > 1) {
    errors.not_supported(at.text(), capacity, {"storage"});
  }
  for (const json::Member& member : capacity.members()) {
    validate_positive(member.value, at.key(member.name()), errors);
  }
}

void require_text(const Value& source, const char* field, const Path& at, FieldErrors& errors) {
  if (source[field].as_string().empty()) errors.required(at.text(field));
}

void validate_local(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path local = at.child("local");
  const Value& path = spec["local"]["path"];
  require_text(spec["local"], "path", local, errors);
  if (has_parent_step(path.as_string())) {
    errors.invalid(local.text("path"), path, "must not contain '..'");
  }
  if (!spec.contains("nodeAffinity")) {
    errors.required(at.text("nodeAffinity"), "Local volume requires node affinity");
  }
}

void validate_csi_source(const Value& csi, const Path& at, FieldErrors& errors) {
  validate_driver_name(csi["driver"], at.child("driver"), errors);
  require_text(csi, "volumeHandle", at, errors);
  for (const char* ref : {"controllerPublishSecretRef", "controllerExpandSecretRef",
                          "nodePublishSecretRef", "nodeExpandSecretRef"}) {
    if (!csi.contains(ref)) continue;
    for (const char* field : {"name", "namespace"}) {
      require_text(csi[ref], field, at.child(ref), errors);
    }
  }
}

void validate_nfs(const Value& nfs, const Path& at, FieldErrors& errors) {
  for (const char* field : {"server", "path"}) require_text(nfs, field, at, errors);
  if (!nfs["path"].as_string().starts_with('/')) {
    errors.invalid(at.text("path"), nfs["path"], "must be an absolute path");
  }
}

void validate_first_source(std::string_view name, const Value& spec, const Path& at,
                           FieldErrors& errors) {
  const Path here = at.child(name);
  if (name == "hostPath") {
    require_text(spec[name], "path", here, errors);
    validate_host_path(spec[name], here, errors);
  } else if (name == "local") {
    validate_local(spec, at, errors);
  } else if (name == "csi") {
    validate_csi_source(spec[name], here, errors);
  } else if (name == "nfs") {
    validate_nfs(spec[name], here, errors);
  }
}

void validate_sources(const Value& spec, const Path& at, FieldErrors& errors) {
  size_t found = 0;
  for (const char* name : kSources) {
    if (!spec.contains(name)) continue;
    if (++found > 1) {
      errors.forbidden(at.text(name), "may not specify more than 1 volume type");
    } else {
      validate_first_source(name, spec, at, errors);
    }
  }
  if (found == 0) errors.required(at.text(), "must specify a volume type");
}

void validate_node_affinity(const Value* affinity, const Path& at, FieldErrors& errors) {
  if (affinity == nullptr) return;
  const Path required = at.child("required");
  if (affinity->contains("required")) {
    validate_node_selector((*affinity)["required"], required, errors);
  } else {
    errors.required(required.text(), "must specify required node constraints");
  }
}

void validate_attributes_class(const Value& spec, const Path& at, FieldErrors& errors) {
  const Value* name = spec.find("volumeAttributesClassName");
  if (name == nullptr) return;
  const Path here = at.child("volumeAttributesClassName");
  if (name->as_string().empty()) errors.required(here.text(), "an empty string is disallowed");
  validate_class_name(*name, here, errors);
  if (!spec.contains("csi")) {
    errors.required(at.text("csi"), "has to be specified when using volumeAttributesClassName");
  }
}

Value source_of(const Value& spec) {
  Value out = Value::object();
  for (const char* name : kSources) {
    if (spec.contains(name)) out.set(name, spec[name]);
  }
  return out;
}

void validate_data_source(const Value& source, const Path& at, FieldErrors& errors) {
  if (source.is_null()) return;
  for (const char* field : {"name", "kind"}) require_text(source, field, at, errors);
  const std::string_view group = source["apiGroup"].as_string();
  if (!group.empty()) {
    validate_dns_subdomain(group, at.child("apiGroup"), errors);
  } else if (source["kind"].as_string() != "PersistentVolumeClaim") {
    errors.invalid(at.text(), source["kind"],
                   "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
  }
  if (!source["namespace"].as_string().empty()) {
    validate_dns_label(source["namespace"].as_string(), at.child("namespace"), errors);
  }
}

// What of a claim never changes: only its size may, once bound, and the volume may be named once.
Value fixed_part(const Value& spec, const Value& before, bool bound, bool unnamed) {
  Value out = spec;
  const auto take = [](Value& at, const Value& from, const char* field) {
    if (const Value* old = from.find(field)) {
      at.set(field, *old);
    } else {
      at.erase(field);
    }
  };
  if (unnamed) take(out, before, "volumeName");
  if (!bound) return out;
  take(out, before, "volumeAttributesClassName");
  if (out["resources"]["requests"].contains("storage")) {
    take(out.ref("resources", "requests"), before["resources"]["requests"], "storage");
  }
  return out;
}

}  // namespace

void validate_persistent_volume(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  const Path modes = at.child("accessModes");
  if (spec["accessModes"].empty()) errors.required(modes.text());
  validate_access_modes(spec["accessModes"], modes, errors);
  validate_capacity(spec["capacity"], at.child("capacity"), errors);
  const Path policy = at.child("persistentVolumeReclaimPolicy");
  validate_choice(spec["persistentVolumeReclaimPolicy"], kReclaimPolicies, policy, errors);
  validate_node_affinity(spec.find("nodeAffinity"), at.child("nodeAffinity"), errors);
  validate_sources(spec, at, errors);
  if (spec["hostPath"]["path"].as_string() == "/" &&
      spec["persistentVolumeReclaimPolicy"].as_string() == "Recycle") {
    errors.forbidden(policy.text(), "may not be 'recycle' for a hostPath mount of '/'");
  }
  validate_class_name(spec["storageClassName"], at.child("storageClassName"), errors);
  validate_choice(spec["volumeMode"], kVolumeModes, at.child("volumeMode"), errors);
  validate_attributes_class(spec, at, errors);
}

void validate_persistent_volume_update(const Value& object, const Value& before,
                                       FieldErrors& errors) {
  const Value& spec = object["spec"];
  const Value& old = before["spec"];
  Value source = source_of(spec);
  if (!old["csi"].contains("controllerExpandSecretRef") && source["csi"].is_object()) {
    source.ref("csi").erase("controllerExpandSecretRef");
  }
  if (!(source == source_of(old))) {
    errors.forbidden("spec.persistentvolumesource",
                     "spec.persistentvolumesource is immutable after creation");
  }
  validate_immutable(spec["volumeMode"], old["volumeMode"], Path("volumeMode"), errors);
  if (old.contains("nodeAffinity") && !(spec["nodeAffinity"] == old["nodeAffinity"])) {
    errors.invalid("nodeAffinity", spec["nodeAffinity"],
                   "field is immutable, except for updating from beta label to GA");
  }
  if (old.contains("volumeAttributesClassName") && !spec.contains("volumeAttributesClassName")) {
    errors.forbidden("spec.volumeAttributesClassName",
                     "update from non-nil value to nil is forbidden");
  }
}

void validate_claim_spec(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path modes = at.child("accessModes");
  if (spec["accessModes"].empty()) {
    errors.required(modes.text(), "at least 1 access mode is required");
  }
  validate_label_selector(spec["selector"], at.child("selector"), errors);
  validate_access_modes(spec["accessModes"], modes, errors);
  const Path resources = at.child("resources");
  const Path size = resources.key("storage");
  if (const Value* storage = spec["resources"]["requests"].find("storage")) {
    validate_positive(*storage, size, errors);
  } else {
    errors.required(size.text());
  }
  validate_class_name(spec["storageClassName"], at.child("storageClassName"), errors);
  validate_choice(spec["volumeMode"], kVolumeModes, at.child("volumeMode"), errors);
  for (const char* field : {"dataSource", "dataSourceRef"}) {
    validate_data_source(spec[field], at.child(field), errors);
  }
  const bool both = spec.contains("dataSource") && spec.contains("dataSourceRef");
  if (both && !spec["dataSourceRef"]["namespace"].as_string().empty()) {
    errors.invalid(at.text(), Value(at.text("dataSource")),
                   "may not be specified when dataSourceRef.namespace is specified");
  } else if (both && !(spec["dataSource"] == spec["dataSourceRef"])) {
    errors.invalid(at.text(), Value(at.text("dataSource")), "must match dataSourceRef");
  }
  validate_class_name(spec["volumeAttributesClassName"], at.child("volumeAttributesClassName"),
                      errors);
}

void validate_persistent_volume_claim(const Value& object, FieldErrors& errors) {
  validate_claim_spec(object["spec"], Path("spec"), errors);
}

void validate_persistent_volume_claim_update(const Value& object, const Value& before,
                                             FieldErrors& errors) {
  const Value& spec = object["spec"];
  const Value& old = before["spec"];
  const bool bound = object["status"]["phase"].as_string() == "Bound";
  const bool unnamed = old["volumeName"].as_string().empty();
  // A class may be given later to a claim that named none.
  Value asked = spec;
  if (!kube::names_storage_class(before)) asked.erase("storageClassName");
  const Value fixed = fixed_part(asked, old, bound, unnamed);
  if (!(fixed == old)) {
    errors.forbidden("spec",
                     "spec is immutable after creation except resources.requests and "
                     "volumeAttributesClassName for bound claims\n" +
                         server_diff("PersistentVolumeClaimSpec", old, fixed));
  }
  const Quantity now = quantity_of(spec["resources"]["requests"]["storage"]);
  const Quantity wanted = quantity_of(old["resources"]["requests"]["storage"]);
  if (now < wanted && now <= quantity_of(before["status"]["capacity"]["storage"])) {
    errors.forbidden("spec.resources.requests.storage",
                     "field can not be less than status.capacity");
  }
  validate_immutable(spec["volumeMode"], old["volumeMode"], Path("volumeMode"), errors);
}

}  // namespace tessera::apiserver
