#include "kube/volumes.h"

#include <algorithm>
#include <map>

#include "kube/labels.h"

namespace tessera::kube {
namespace {

using json::Value;

constexpr const char* kBetaClass = "volume.beta.kubernetes.io/storage-class";

Quantity quantity_at(const Value& list) {
  auto parsed = Quantity::parse(list["storage"].as_string());
  return parsed ? *parsed : Quantity();
}

std::string mode_of(const Object& object) {
  const std::string mode = object.get("spec", "volumeMode").str();
  return mode.empty() ? "Filesystem" : mode;
}

bool has_modes(const Object& volume, const Object& claim) {
  const auto have = volume.get("spec", "accessModes").items();
  return std::ranges::all_of(claim.get("spec", "accessModes").items(), [&](const Value& wanted) {
    return std::ranges::find(have, wanted) != have.end();
  });
}

StringMap labels_of(const Object& object) {
  StringMap out;
  for (const json::Member& label : object.metadata()["labels"].members()) {
    out.emplace(label.name(), label.value.as_string());
  }
  return out;
}

// What keeps a volume from a claim whatever class, selector and node say.
bool out_of_question(const Object& volume, const Object& claim) {
  const bool others = volume.get("spec", "claimRef").is_object() && !is_meant_for(volume, claim);
  return others || volume.deleting() || storage_of(volume) < storage_of(claim) ||
         mode_of(volume) != mode_of(claim) ||
         volume.get("spec", "volumeAttributesClassName").as_string() !=
             claim.get("spec", "volumeAttributesClassName").as_string();
}

bool selected(const Object& volume, const Object& claim) {
  const Value& selector = claim.get("spec", "selector");
  if (selector.is_null()) return true;
  const auto parsed = LabelSelector::from_json(selector, "spec.selector");
  return parsed && parsed->matches(volume.metadata()["labels"]);
}

bool may_have(const Object& volume, const Object& claim) {
  return volume.get("status", "phase").as_string() == "Available" && selected(volume, claim) &&
         storage_class_of(volume.json()) == storage_class_of(claim.json());
}

}  // namespace

std::string storage_class_of(const Value& object) {
  const Value& old = object["metadata"]["annotations"][kBetaClass];
  return old.is_string() ? old.str() : object["spec"]["storageClassName"].str();
}

bool names_storage_class(const Value& claim) {
  return claim["metadata"]["annotations"].contains(kBetaClass) ||
         claim["spec"].contains("storageClassName");
}

bool is_default_class(const Value& storage_class) {
  const Value& annotations = storage_class["metadata"]["annotations"];
  return annotations["storageclass.kubernetes.io/is-default-class"].as_string() == "true" ||
         annotations["storageclass.beta.kubernetes.io/is-default-class"].as_string() == "true";
}

bool default_class_before(const Value& a, const Value& b) {
  const std::string_view made_a = a["metadata"]["creationTimestamp"].as_string();
  const std::string_view made_b = b["metadata"]["creationTimestamp"].as_string();
  if (made_a != made_b) return made_a > made_b;
  return a["metadata"]["name"].as_string() < b["metadata"]["name"].as_string();
}

bool waits_for_consumer(const Value& storage_class) {
  return storage_class["volumeBindingMode"].as_string() == "WaitForFirstConsumer";
}

Quantity storage_of(const Object& object) {
  const bool claim = object.get("spec", "resources").is_object();
  return quantity_at(claim ? object.get("spec", "resources", "requests")
                           : object.get("spec", "capacity"));
}

bool has_annotation(const Object& object, std::string_view name) {
  return object.metadata()["annotations"].contains(name);
}

bool is_meant_for(const Object& volume, const Object& claim) {
  const Value& ref = volume.get("spec", "claimRef");
  if (!ref.is_object() || ref["name"].as_string() != claim.name() ||
      ref["namespace"].as_string() != claim.ns()) {
    return false;
  }
  return ref["uid"].as_string().empty() || ref["uid"].as_string() == claim.uid();
}

std::string volume_mismatch(const Object& volume, const Object& claim) {
  if (volume.deleting()) {
    return "the volume is marked for deletion \"" + std::string(volume.name()) + "\"";
  }
  if (storage_of(volume) < storage_of(claim)) return "requested PV is too small";
  if (storage_class_of(volume.json()) != storage_class_of(claim.json())) {
    return "storageClassName does not match";
  }
  if (volume.get("spec", "volumeAttributesClassName").as_string() !=
      claim.get("spec", "volumeAttributesClassName").as_string()) {
    return "volumeAttributesClassName does not match";
  }
  if (mode_of(volume) != mode_of(claim)) return "incompatible volumeMode";
  return has_modes(volume, claim) ? "" : "incompatible accessMode";
}

Affinity reach_of(const Object& volume) {
  const Value& required = volume.get("spec", "nodeAffinity", "required");
  if (!required.is_object()) return {};
  const auto affinity = decode_affinity(
      Value::object(
          {{"nodeAffinity",
            Value::object({{"requiredDuringSchedulingIgnoredDuringExecution", required}})}}),
      "spec.nodeAffinity");
  if (affinity) return *affinity;
  Affinity nowhere;
  nowhere.has_required_node_terms = true;
  return nowhere;
}

bool reaches(const Object& volume, const Object& node) {
  const Affinity reach = reach_of(volume);
  return !reach.has_required_node_terms || matches_node({}, reach, labels_of(node), node.name());
}

Object match_volume(const Object& claim, const std::vector<Object>& volumes, const Object& node,
                    const std::set<std::string>& taken, bool delayed) {
  // Those with the fewest access modes beyond what is asked come first; a node takes them all alike.
  std::map<size_t, std::vector<const Object*>> by_modes;
  for (const Object& volume : volumes) {
    if (taken.contains(std::string(volume.name())) || out_of_question(volume, claim)) continue;
    if (!node && !has_modes(volume, claim)) continue;
    by_modes[node ? 0 : volume.get("spec", "accessModes").size()].push_back(&volume);
  }
  for (const auto& [modes, group] : by_modes) {
    const Object* best = nullptr;
    for (const Object* volume : group) {
      const bool near = !node || reaches(*volume, node);
      if (is_meant_for(*volume, claim)) return near ? *volume : Object();
      if ((!node && delayed) || !near || !may_have(*volume, claim)) continue;
      if (node && !has_modes(*volume, claim)) continue;
      if (best == nullptr || storage_of(*volume) < storage_of(*best)) best = volume;
    }
    if (best != nullptr) return *best;
  }
  return {};
}

Value bound_to(const Object& volume, const Object& claim) {
  const Value& ref = volume.get("spec", "claimRef");
  const bool meant = is_meant_for(volume, claim);
  const bool named = meant && ref["uid"].as_string() == claim.uid();
  const bool marked = meant || has_annotation(volume, kBoundByController);
  if (named && marked) return {};
  Value out = volume.json();
  if (!named) {
    out.ref("spec").set("claimRef", Value::object({{"apiVersion", "v1"},
                                                   {"kind", "PersistentVolumeClaim"},
                                                   {"name", claim.name()},
                                                   {"namespace", claim.ns()},
                                                   {"uid", claim.uid()},
                                                   {"resourceVersion", claim.resource_version()}}));
  }
  if (!marked) out.ref("metadata", "annotations").set(kBoundByController, "yes");
  return out;
}

std::vector<ClaimUse> claims_of(const Object& pod) {
  std::vector<ClaimUse> out;
  for (const Value& volume : pod.get("spec", "volumes").items()) {
    if (volume.contains("persistentVolumeClaim")) {
      out.push_back({volume["persistentVolumeClaim"]["claimName"].str(), false});
    } else if (volume.contains("ephemeral")) {
      out.push_back({std::string(pod.name()) + "-" + volume["name"].str(), true});
    }
  }
  return out;
}

}  // namespace tessera::kube
