#include "apiserver/validate_volumes.h"

#include <algorithm>
#include <set>

#include "apiserver/validate_meta.h"

namespace tessera::apiserver {
namespace {

using json::Value;

void validate_descending(const Value& path, const Path& at, FieldErrors& errors) {
  if (path.as_string().starts_with('/')) {
    errors.invalid(at.text(), path, "must be a relative path");
  }
  if (has_parent_step(path.as_string())) errors.invalid(at.text(), path, "must not contain '..'");
}

void validate_mode(const Value& mode, const Path& at, FieldErrors& errors) {
  if (mode.as_int() < 0 || mode.as_int() > 0777) {
    errors.invalid(at.text(), mode, "must be a number between 0 and 0777 (octal), both inclusive");
  }
}

void validate_items(const Value& items, const Path& at, FieldErrors& errors) {
  for (size_t i = 0; i < items.size(); ++i) {
    const Path here = at.at(i);
    for (const char* field : {"key", "path"}) {
      if (items.at(i)[field].as_string().empty()) errors.required(here.text(field));
    }
    validate_descending(items.at(i)["path"], here.child("path"), errors);
    validate_mode(items.at(i)["mode"], here.child("mode"), errors);
  }
}

struct Source {
  std::string_view kind;
  std::vector<const char*> required;
};

const std::vector<Source>& sources() {
  static const std::vector<Source> kSources = {{"emptyDir", {}},
                                               {"hostPath", {"path"}},
                                               {"secret", {"secretName"}},
                                               {"nfs", {"server", "path"}},
                                               {"iscsi", {"targetPortal", "iqn"}},
                                               {"persistentVolumeClaim", {"claimName"}},
                                               {"configMap", {"name"}},
                                               {"downwardAPI", {}},
                                               {"projected", {}},
                                               {"csi", {"driver"}},
                                               {"ephemeral", {"volumeClaimTemplate"}},
                                               {"image", {}},
                                               {"fc", {}},
                                               {"cephfs", {}},
                                               {"rbd", {}},
                                               {"cinder", {}},
                                               {"glusterfs", {}},
                                               {"flexVolume", {"driver"}},
                                               {"gitRepo", {"repository"}},
                                               {"flocker", {}},
                                               {"azureFile", {}},
                                               {"azureDisk", {}},
                                               {"awsElasticBlockStore", {"volumeID"}},
                                               {"gcePersistentDisk", {"pdName"}},
                                               {"portworxVolume", {"volumeID"}},
                                               {"quobyte", {}},
                                               {"photonPersistentDisk", {}},
                                               {"scaleIO", {}},
                                               {"storageos", {}},
                                               {"vsphereVolume", {}}};
  return kSources;
}

void validate_source(const Source& rule, const Value& source, const Path& at, FieldErrors& errors) {
  for (const char* field : rule.required) {
    const Value& value = source[field];
    if (value.is_null() || (value.is_string() && value.as_string().empty())) {
      errors.required(at.text(field));
    }
  }
  if (rule.kind == "emptyDir" && source["sizeLimit"].as_string().starts_with('-')) {
    errors.forbidden(at.text("sizeLimit"), "SizeLimit field must be a valid resource quantity");
  }
  if (rule.kind == "hostPath") validate_host_path(source, at, errors);
  validate_mode(source["defaultMode"], at.child("defaultMode"), errors);
  if (rule.kind == "secret" || rule.kind == "configMap") {
    validate_items(source["items"], at.child("items"), errors);
  }
}

void validate_volume(const Value& volume, const Path& at, FieldErrors& errors) {
  bool found = false;
  for (const Source& rule : sources()) {
    if (!volume[rule.kind].is_object()) continue;
    const Path here = at.child(rule.kind);
    if (found) {
      errors.forbidden(here.text(), "may not specify more than 1 volume type");
    } else {
      validate_source(rule, volume[rule.kind], here, errors);
    }
    found = true;
  }
  if (!found) errors.required(at.text(), "must specify a volume type");
}

bool has_volume(const Value& volumes, const Value& name) {
  const auto items = volumes.items();
  return std::ranges::any_of(items, [&](const Value& volume) { return volume["name"] == name; });
}

void validate_mount(const Value& mount, const Value& volumes, const Path& at,
                    std::set<std::string>& paths, FieldErrors& errors) {
  const Value& name = mount["name"];
  if (name.as_string().empty()) errors.required(at.text("name"));
  if (!has_volume(volumes, name)) errors.not_found(at.text("name"), name);
  if (mount["mountPath"].as_string().empty()) errors.required(at.text("mountPath"));
  if (!paths.insert(mount["mountPath"].str()).second) {
    errors.invalid(at.text("mountPath"), mount["mountPath"], "must be unique");
  }
  for (const char* field : {"subPath", "subPathExpr"}) {
    if (mount.contains(field)) validate_descending(mount[field], at.child(field), errors);
  }
  if (mount.contains("subPath") && mount.contains("subPathExpr")) {
    errors.invalid(at.text("subPathExpr"), mount["subPathExpr"],
                   "subPathExpr and subPath are mutually exclusive");
  }
}

}  // namespace

bool has_parent_step(std::string_view path) {
  while (true) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return true;
    if (slash == path.npos) return false;
    path.remove_prefix(slash + 1);
  }
}

void validate_host_path(const Value& source, const Path& at, FieldErrors& errors) {
  static const std::vector<std::string> kTypes = {
      "",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
      "File", "FileOrCreate", "Socket"};
  if (has_parent_step(source["path"].as_string())) {
    errors.invalid(at.text("path"), source["path"], "must not contain '..'");
  }
  if (std::ranges::find(kTypes, source["type"].as_string()) == kTypes.end()) {
    errors.not_supported(at.text("type"), source["type"], kTypes);
  }
}

void validate_volumes(const Value& volumes, const Path& at, FieldErrors& errors) {
  std::set<std::string> names;
  for (size_t i = 0; i < volumes.size(); ++i) {
    const Value& volume = volumes.at(i);
    const Path here = at.at(i);
    validate_volume(volume, here, errors);
    if (volume["name"].as_string().empty()) {
      errors.required(here.text("name"));
      continue;
    }
    validate_dns_label(volume["name"].as_string(), here.child("name"), errors);
    if (!names.insert(volume["name"].str()).second) {
      errors.duplicate(here.text("name"), volume["name"]);
    }
  }
}

void validate_volume_mounts(const Value& container, const Value& volumes, const Path& at,
                            FieldErrors& errors) {
  std::set<std::string> paths;
  const Path mounts = at.child("volumeMounts");
  for (size_t i = 0; i < container["volumeMounts"].size(); ++i) {
    validate_mount(container["volumeMounts"].at(i), volumes, mounts.at(i), paths, errors);
  }
  const Path devices = at.child("volumeDevices");
  for (size_t i = 0; i < container["volumeDevices"].size(); ++i) {
    const Value& device = container["volumeDevices"].at(i);
    const Path here = devices.at(i);
    if (!has_volume(volumes, device["name"])) errors.not_found(here.text("name"), device["name"]);
    if (device["devicePath"].as_string().empty()) errors.required(here.text("devicePath"));
  }
}

}  // namespace tessera::apiserver
