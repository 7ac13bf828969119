#include "apiserver/columns.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kOldClass = "volume.beta.kubernetes.io/storage-class";

std::string access_modes(const Value& modes) {
  static constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"ReadWriteOnce", "RWO"},
      {"ReadOnlyMany", "ROX"},
      {"ReadWriteMany", "RWX"},
      {"ReadWriteOncePod", "RWOP"}};
  std::string out;
  for (const auto& [mode, text] : kShort) {
    for (const Value& each : modes.items()) {
      if (each.as_string() != mode) continue;
      out.append(out.empty() ? "" : ",").append(text);
      break;
    }
  }
  return out;
}

Value phase(const kube::Object& object, base::Time) {
  return Value(object.deleting() ? "Terminating" : object.get("status", "phase").as_string());
}

Value class_name(const kube::Object& object, base::Time) {
  if (const Value* old = object.metadata()["annotations"].find(kOldClass)) return *old;
  return Value(object.get("spec", "storageClassName").as_string());
}

std::string amount_or_zero(const Value& amount) {
  return amount.is_string() ? amount.str() : "0";
}

Value claimed_by(const kube::Object& volume, base::Time) {
  const Value& claim = volume.get("spec", "claimRef");
  if (!claim.is_object()) return Value("");
  return Value(claim["namespace"].str() + "/" + claim["name"].str());
}

// Size and modes of a claim are shown once it has a volume.
bool has_volume(const kube::Object& claim) {
  return !claim.get("spec", "volumeName").as_string().empty();
}

Value default_marked(const kube::Object& object, base::Time) {
  std::string name(object.name());
  for (const char* mark : {"storageclass.kubernetes.io/is-default-class",
                           "storageclass.beta.kubernetes.io/is-default-class"}) {
    if (object.annotation(mark) == "true") return Value(name + " (default)");
  }
  return Value(name);
}

Cell flag(const char* field, bool otherwise) {
  return [field, otherwise](const kube::Object& driver, base::Time) {
    return Value(driver.get("spec", field).as_bool(otherwise));
  };
}

Value token_audiences(const kube::Object& driver, base::Time) {
  const Value& requests = driver.get("spec", "tokenRequests");
  return Value(requests.empty() ? "<unset>" : joined(requests, "audience"));
}

Value lifecycle_modes(const kube::Object& driver, base::Time) {
  std::string out;
  for (const Value& mode : driver.get("spec", "volumeLifecycleModes").items()) {
    out += (out.empty() ? "" : ",") + mode.str();
  }
  return Value(out.empty() ? "<none>" : out);
}

}  // namespace

std::vector<Column> persistent_volume_columns() {
  return {name_column(),
          text_column("Capacity",
                      [](const kube::Object& volume, base::Time) {
                        return Value(amount_or_zero(volume.get("spec", "capacity", "storage")));
                      }),
          text_column("Access Modes",
                      [](const kube::Object& volume, base::Time) {
                        return Value(access_modes(volume.get("spec", "accessModes")));
                      }),
          text_column("Reclaim Policy", text_at({"spec", "persistentVolumeReclaimPolicy"})),
          text_column("Status", phase),
          text_column("Claim", claimed_by),
          text_column("StorageClass", class_name),
          text_column("VolumeAttributesClass",
                      text_at({"spec", "volumeAttributesClassName"}, "<unset>")),
          text_column("Reason", text_at({"status", "reason"})),
          age_column(),
          wide_column("VolumeMode", text_at({"spec", "volumeMode"}, "<unset>"))};
}

std::vector<Column> persistent_volume_claim_columns() {
  return {name_column(),
          text_column("Status", phase),
          text_column("Volume", text_at({"spec", "volumeName"})),
          text_column("Capacity",
                      [](const kube::Object& claim, base::Time) {
                        if (!has_volume(claim)) return Value("");
                        return Value(amount_or_zero(claim.get("status", "capacity", "storage")));
                      }),
          text_column("Access Modes",
                      [](const kube::Object& claim, base::Time) {
                        if (!has_volume(claim)) return Value("");
                        return Value(access_modes(claim.get("status", "accessModes")));
                      }),
          text_column("StorageClass", class_name),
          text_column("VolumeAttributesClass",
                      text_at({"spec", "volumeAttributesClassName"}, "<unset>")),
          age_column(),
          wide_column("VolumeMode", text_at({"spec", "volumeMode"}, "<unset>"))};
}

std::vector<Column> storage_class_columns() {
  Column name = name_column();
  name.cell = default_marked;
  return {name,
          text_column("Provisioner", text_at({"provisioner"})),
          text_column("ReclaimPolicy", text_at({"reclaimPolicy"}, "Delete")),
          text_column("VolumeBindingMode", text_at({"volumeBindingMode"}, "Immediate")),
          text_column("AllowVolumeExpansion",
                      [](const kube::Object& object, base::Time) {
                        return Value(object["allowVolumeExpansion"].as_bool());
                      }),
          age_column()};
}

std::vector<Column> csi_node_columns() {
  return {name_column(),
          number_column("Drivers",
                        [](const kube::Object& node, base::Time) {
                          return Value(node.get("spec", "drivers").size());
                        }),
          age_column()};
}

std::vector<Column> csi_driver_columns() {
  return {name_column(),
          bool_column("AttachRequired", flag("attachRequired", true)),
          bool_column("PodInfoOnMount", flag("podInfoOnMount", false)),
          bool_column("StorageCapacity", flag("storageCapacity", false)),
          text_column("TokenRequests", token_audiences),
          bool_column("RequiresRepublish", flag("requiresRepublish", false)),
          text_column("Modes", lifecycle_modes),
          age_column()};
}

std::vector<Column> volume_attachment_columns() {
  Column attacher = text_column("Attacher", text_at({"spec", "attacher"}));
  attacher.format = "name";
  return {name_column(),
          attacher,
          text_column("PV", text_at({"spec", "source", "persistentVolumeName"})),
          text_column("Node", text_at({"spec", "nodeName"})),
          bool_column("Attached",
                      [](const kube::Object& object, base::Time) {
                        return Value(object.get("status", "attached").as_bool());
                      }),
          age_column()};
}

}  // namespace tessera::apiserver
