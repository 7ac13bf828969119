#include "apiserver/admission_storage.h"

#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/validate_resources.h"
#include "kube/volumes.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kNotReady = "node.kubernetes.io/not-ready";

void add_finalizer(Value& object, std::string_view finalizer) {
  for (const Value& item : object["metadata"]["finalizers"].items()) {
    if (item.as_string() == finalizer) return;
  }
  object.ref("metadata", "finalizers").push_back(finalizer);
}

}  // namespace

void admit_new_claim(const Core& core, Value& claim) {
  add_finalizer(claim, kClaimProtection);
  if (core.storage_classes == nullptr || kube::names_storage_class(claim)) return;
  Value found;
  for (const Store::Found& item : core.store->newest(core.storage_classes, "")) {
    if (!kube::is_default_class(item.object)) continue;
    if (found.is_null() || kube::default_class_before(item.object, found)) found = item.object;
  }
  if (!found.is_null()) claim.ref("spec").set("storageClassName", found["metadata"]["name"]);
}

void admit_new_volume(Value& volume) {
  add_finalizer(volume, kVolumeProtection);
}

void admit_new_node(Value& node) {
  for (const Value& taint : node["spec"]["taints"].items()) {
    if (taint["key"].as_string() == kNotReady && taint["effect"].as_string() == "NoSchedule") {
      return;
    }
  }
  node.ref("spec", "taints")
      .push_back(Value::object({{"key", kNotReady}, {"effect", "NoSchedule"}}));
}

base::Status admit_claim_growth(const Core& core, const Value& claim, const Value& before) {
  const auto size = [](const Value& object) {
    return quantity_of(object["spec"]["resources"]["requests"]["storage"]);
  };
  if (size(claim) <= size(before)) return {};
  const std::string name = claim["metadata"]["name"].str();
  if (before["status"]["phase"].as_string() != "Bound") {
    return base::error(
        forbidden(*core.claims, name, "Only bound persistent volume claims can be expanded"));
  }
  const std::string storage_class = kube::storage_class_of(claim);
  const bool grows = !storage_class.empty() && storage_class == kube::storage_class_of(before) &&
                     core.storage_classes != nullptr &&
                     core.store->latest(core.storage_classes, storage_class)
                         .object["allowVolumeExpansion"]
                         .as_bool();
  if (grows) return {};
  return base::error(forbidden(*core.claims, name,
                               "only dynamically provisioned pvc can be resized and the "
                               "storageclass that provisions the pvc must support resize"));
}

}  // namespace tessera::apiserver
