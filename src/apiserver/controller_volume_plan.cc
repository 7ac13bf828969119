#include "apiserver/controller_volume_plan.h"

#include <algorithm>
#include <optional>

#include "apiserver/admission_storage.h"
#include "apiserver/controllers_pods.h"
#include "kube/volumes.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;
using What = VolumeStep::What;

namespace {

Object find_in(const Cache::Objects& objects, std::string_view key) {
  const auto it = objects.find(key);
  return it == objects.end() ? Object() : it->second;
}

VolumeStep write(What what, Value object) {
  return {what, std::move(object)};
}

VolumeStep told(VolumeStep step, const Object& about, bool warning, std::string reason,
                std::string message) {
  step.events.push_back({about, warning, std::move(reason), std::move(message)});
  return step;
}

// The object with the finalizer added or taken off.
Value with_finalizer(const Object& object, std::string_view finalizer, bool wanted) {
  Value out = object.json();
  Value list = Value::array();
  for (const Value& item : object.metadata()["finalizers"].items()) {
    if (item.as_string() != finalizer) list.push_back(item);
  }
  if (wanted) list.push_back(finalizer);
  if (list.empty()) {
    out.ref("metadata").erase("finalizers");
  } else {
    out.ref("metadata").set("finalizers", std::move(list));
  }
  return out;
}

// What is in use is only marked for deletion; everything else has the mark of protection.
std::optional<VolumeStep> protect(What what, const Object& object, std::string_view finalizer,
                                  bool used) {
  const bool has = has_finalizer(object, finalizer);
  if (object.deleting()) {
    if (!has || used) return std::nullopt;
    return write(what, with_finalizer(object, finalizer, false));
  }
  if (has) return std::nullopt;
  return write(what, with_finalizer(object, finalizer, true));
}

bool uses_for_deletion(const Object& pod) {
  return !pod.get("spec", "nodeName").as_string().empty();
}

// ---- writes of status

// Nothing where the volume is in that phase already.
VolumeStep phase_of_volume(const VolumeWorld& world, const Object& volume, const char* phase,
                           std::string_view message = {}) {
  if (volume.get("status", "phase").as_string() == phase) return {};
  Value out = volume.json();
  Value& status = out.ref("status");
  status.set("phase", phase);
  status.set("lastPhaseTransitionTime", base::to_rfc3339(world.now));
  if (message.empty()) {
    status.erase("message");
  } else {
    status.set("message", message);
  }
  return write(What::kVolumeStatus, std::move(out));
}

VolumeStep phase_of_claim(const Object& claim, const char* phase, const Object& volume) {
  Value out = claim.json();
  Value& status = out.ref("status");
  const bool moves = status["phase"].as_string() != phase;
  status.set("phase", phase);
  if (!volume) {
    status.erase("accessModes");
    status.erase("capacity");
    status.erase("currentVolumeAttributesClassName");
  } else {
    status.set("accessModes", volume.get("spec", "accessModes"));
    // A bound claim may lag behind its volume on purpose: its file system has yet to grow.
    if (moves) status.set("capacity", volume.get("spec", "capacity"));
    const Value& attributes = volume.get("spec", "volumeAttributesClassName");
    if (moves && attributes.is_string()) status.set("currentVolumeAttributesClassName", attributes);
  }
  if (out["status"] == claim["status"]) return {};
  return write(What::kClaimStatus, std::move(out));
}

VolumeStep lost(const Object& claim, const char* reason, const char* message) {
  if (claim.get("status", "phase").as_string() == "Lost") return {};
  return told(phase_of_claim(claim, "Lost", {}), claim, true, reason, message);
}

// ---- binding: volume, its phase, claim, its phase

VolumeStep bind(const VolumeWorld& world, const Object& volume, const Object& claim) {
  Value changed = kube::bound_to(volume, claim);
  if (!changed.is_null()) return write(What::kVolume, std::move(changed));
  VolumeStep step = phase_of_volume(world, volume, "Bound");
  if (step.what != What::kNothing) return step;
  const bool named = claim.get("spec", "volumeName").as_string() == volume.name();
  if (!named || !kube::has_annotation(claim, kube::kBindCompleted)) {
    Value out = claim.json();
    Value& annotations = out.ref("metadata", "annotations");
    if (!named) annotations.set(kube::kBoundByController, "yes");
    annotations.set(kube::kBindCompleted, "yes");
    if (!named) out.ref("spec").set("volumeName", volume.name());
    return write(What::kClaim, std::move(out));
  }
  return phase_of_claim(claim, "Bound", volume);
}

std::string consumers(const VolumeWorld& world) {
  std::string names;
  size_t count = 0;
  for (const Object& pod : world.users) {
    if (is_finished(pod) || uses_for_deletion(pod)) continue;
    if (count++ > 0) names += ',';
    names += pod.name();
  }
  if (count == 0) return {};
  return fmt::format("waiting for {} {} to be scheduled", count > 1 ? "pods" : "pod", names);
}

VolumeStep wait_for_consumer(const VolumeWorld& world, const Object& claim) {
  const std::string who = consumers(world);
  return who.empty()
             ? told(phase_of_claim(claim, "Pending", {}), claim, false, "WaitForFirstConsumer",
                    "waiting for first consumer to be created before binding")
             : told(phase_of_claim(claim, "Pending", {}), claim, false, "WaitForPodScheduled", who);
}

// The class says who makes the volume; the claim carries that name until the volume is there.
VolumeStep provision(const VolumeWorld& world, const Object& claim, const std::string& name) {
  const Object storage_class = find_in(world.classes, name);
  if (!storage_class) {
    return told({}, claim, true, "ProvisioningFailed",
                fmt::format("storageclass.storage.k8s.io \"{}\" not found", name));
  }
  const std::string provisioner = storage_class["provisioner"].str();
  if (provisioner.starts_with("kubernetes.io/")) {
    return told({}, claim, true, "ProvisioningFailed",
                fmt::format("no volume plugin matched name: {}", provisioner));
  }
  if (claim.annotation(kube::kProvisioner) != provisioner ||
      claim.annotation(kube::kBetaProvisioner) != provisioner) {
    Value out = claim.json();
    Value& annotations = out.ref("metadata", "annotations");
    annotations.set(kube::kProvisioner, provisioner);
    annotations.set(kube::kBetaProvisioner, provisioner);
    return write(What::kClaim, std::move(out));
  }
  return told(
      {}, claim, false, "ExternalProvisioning",
      fmt::format("Waiting for a volume to be created either by the external provisioner '{}' or "
                  "manually by the system administrator. If volume creation is delayed, please "
                  "verify that the provisioner is running and correctly registered.",
                  provisioner));
}

Object default_class(const Cache::Objects& classes) {
  Object best;
  for (const auto& [key, item] : classes) {
    if (!kube::is_default_class(item.json())) continue;
    if (!best || kube::default_class_before(item.json(), best.json())) best = item;
  }
  return best;
}

VolumeStep plan_any_volume(const VolumeWorld& world, const Object& claim) {
  const std::string name = kube::storage_class_of(claim.json());
  const bool delayed =
      !name.empty() && kube::waits_for_consumer(find_in(world.classes, name).json());
  std::vector<Object> volumes;
  for (const auto& [key, volume] : world.volumes) volumes.push_back(volume);
  const Object volume = kube::match_volume(claim, volumes, {}, {}, delayed);
  if (volume) return bind(world, volume, claim);
  if (!kube::names_storage_class(claim.json())) {
    if (const Object found = default_class(world.classes)) {
      Value out = claim.json();
      out.ref("spec").set("storageClassName", found.name());
      return write(What::kClaim, std::move(out));
    }
  }
  if (delayed && !kube::has_annotation(claim, kube::kSelectedNode)) {
    return wait_for_consumer(world, claim);
  }
  if (!name.empty()) return provision(world, claim, name);
  return told(phase_of_claim(claim, "Pending", {}), claim, false, "FailedBinding",
              "no persistent volumes available for this claim and no storage class is set");
}

VolumeStep plan_named_volume(const VolumeWorld& world, const Object& claim) {
  const std::string name = claim.get("spec", "volumeName").str();
  const Object volume = find_in(world.volumes, name);
  if (!volume) return phase_of_claim(claim, "Pending", {});
  if (volume.get("spec", "claimRef").is_object()) {
    if (kube::is_meant_for(volume, claim)) return bind(world, volume, claim);
    VolumeStep step;
    if (!kube::has_annotation(claim, kube::kBoundByController)) {
      step = phase_of_claim(claim, "Pending", {});
    }
    return told(std::move(step), claim, true, "FailedBinding",
                fmt::format("volume \"{}\" already bound to a different claim.", name));
  }
  const std::string why = kube::volume_mismatch(volume, claim);
  if (why.empty()) return bind(world, volume, claim);
  return told(phase_of_claim(claim, "Pending", {}), claim, true, "VolumeMismatch",
              fmt::format("Cannot bind to requested volume \"{}\": {}", name, why));
}

VolumeStep plan_bound_claim(const VolumeWorld& world, const Object& claim) {
  const std::string name = claim.get("spec", "volumeName").str();
  if (name.empty()) {
    return lost(claim, "ClaimLost",
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
  }
  const Object volume = find_in(world.volumes, name);
  if (!volume) {
    return lost(claim, "ClaimLost",
                "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  }
  const Value& ref = volume.get("spec", "claimRef");
  if (!ref.is_object() || ref["uid"].as_string() == claim.uid()) return bind(world, volume, claim);
  return lost(claim, "ClaimMisbound",
              "Two claims are bound to the same volume, this one is bound incorrectly");
}

// ---- volumes

VolumeStep failed(const VolumeWorld& world, const Object& volume, const char* reason,
                  const std::string& message) {
  VolumeStep step = phase_of_volume(world, volume, "Failed", message);
  if (step.what == What::kNothing) return step;
  return told(std::move(step), volume, true, reason, message);
}

// A volume of an outside provisioner is that one's to delete.
VolumeStep delete_volume(const VolumeWorld& world, const Object& volume) {
  constexpr std::string_view kFolder = "/tmp/";
  const std::string_view by = volume.annotation(kube::kProvisionedBy);
  const bool outside =
      by.empty() ? volume["spec"].contains("csi") : !by.starts_with("kubernetes.io/");
  if (outside || volume.deleting()) return {};
  const Value* path = volume["spec"]["hostPath"].find("path");
  if (path == nullptr) {
    return failed(world, volume, "VolumeFailedDelete",
                  fmt::format("error getting deleter volume plugin for volume \"{}\": no deletable "
                              "volume plugin matched",
                              volume.name()));
  }
  if (!path->as_string().starts_with(kFolder) || path->as_string() == kFolder) {
    return failed(world, volume, "VolumeFailedDelete",
                  fmt::format("host_path deleter only supports /tmp/.+ but received provided {}",
                              path->as_string()));
  }
  return write(What::kDeleteVolume, volume.json());
}

VolumeStep reclaim(const VolumeWorld& world, const Object& volume) {
  const std::string_view phase = volume.get("status", "phase").as_string();
  if (phase != "Released" && phase != "Failed") return phase_of_volume(world, volume, "Released");
  const std::string_view policy = volume.get("spec", "persistentVolumeReclaimPolicy").as_string();
  if (policy == "Delete") return delete_volume(world, volume);
  if (policy != "Recycle") return {};
  return failed(world, volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!");
}

VolumeStep unbind(const Object& volume) {
  Value out = volume.json();
  if (!kube::has_annotation(volume, kube::kBoundByController)) {
    out.ref("spec", "claimRef").erase("uid");
    return write(What::kVolume, std::move(out));
  }
  out.ref("spec").erase("claimRef");
  Value& annotations = out.ref("metadata", "annotations");
  annotations.erase(kube::kBoundByController);
  if (annotations.empty()) out.ref("metadata").erase("annotations");
  return write(What::kVolume, std::move(out));
}

VolumeStep plan_claimed(const VolumeWorld& world, const Object& volume, const Object& claim) {
  const std::string name = claim.get("spec", "volumeName").str();
  if (name == volume.name()) return phase_of_volume(world, volume, "Bound");
  if (name.empty()) {
    const auto mode = [](const Object& object) {
      const std::string set = object.get("spec", "volumeMode").str();
      return set.empty() ? "Filesystem" : set;
    };
    if (mode(volume) == mode(claim)) return {What::kSyncClaim, {}, claim.key()};
    return told(
        told({}, volume, true, "VolumeMismatch",
             fmt::format("Cannot bind PersistentVolume to requested PersistentVolumeClaim \"{}\" "
                         "due to incompatible volumeMode.",
                         claim.name())),
        claim, true, "VolumeMismatch",
        fmt::format("Cannot bind PersistentVolume \"{}\" to requested PersistentVolumeClaim due to "
                    "incompatible volumeMode.",
                    volume.name()));
  }
  const bool made = kube::has_annotation(volume, kube::kProvisionedBy);
  const bool goes = volume.get("spec", "persistentVolumeReclaimPolicy").as_string() == "Delete";
  return made && goes ? reclaim(world, volume) : unbind(volume);
}

}  // namespace

VolumeStep plan_claim(const VolumeWorld& world, const Object& claim) {
  const bool used = std::ranges::any_of(world.users, uses_for_deletion);
  if (auto step = protect(What::kClaim, claim, kClaimProtection, used)) return std::move(*step);
  if (kube::has_annotation(claim, kube::kBindCompleted)) return plan_bound_claim(world, claim);
  return claim.get("spec", "volumeName").as_string().empty() ? plan_any_volume(world, claim)
                                                             : plan_named_volume(world, claim);
}

VolumeStep plan_volume(const VolumeWorld& world, const Object& volume, bool looked_up) {
  const std::string_view phase = volume.get("status", "phase").as_string();
  if (auto step = protect(What::kVolume, volume, kVolumeProtection, phase == "Bound")) {
    return std::move(*step);
  }
  const Value& ref = volume.get("spec", "claimRef");
  if (!ref.is_object() || ref["uid"].as_string().empty()) {
    return phase_of_volume(world, volume, "Available");
  }
  const std::string key =
      fmt::format("{}/{}", ref["namespace"].as_string(), ref["name"].as_string());
  const Object claim = find_in(world.claims, key);
  if (claim && claim.uid() == ref["uid"].as_string()) return plan_claimed(world, volume, claim);
  const bool over = phase == "Released" || phase == "Failed";
  if (!over && !looked_up) return {What::kLookUpClaim, {}, key};
  return reclaim(world, volume);
}

}  // namespace tessera::apiserver::controller
