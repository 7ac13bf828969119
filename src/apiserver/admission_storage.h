// What the server adds to volumes, claims and nodes, and when a claim may grow.
//
// Shape:   volumes and claims get the finalizer that protects them while in use; a claim without a class the default one;
//          a node the taint of those that are not ready yet, which the node controller takes off.
// Errors:  kForbidden in Kubernetes' words.
// Threads: any; reads the newest state of the store.
// Source:  Kubernetes' admission plugins StorageObjectInUseProtection, DefaultStorageClass, PersistentVolumeClaimResize,
//          TaintNodesByCondition.
#pragma once

#include <string_view>

#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

struct Core;

inline constexpr std::string_view kClaimProtection = "kubernetes.io/pvc-protection";
inline constexpr std::string_view kVolumeProtection = "kubernetes.io/pv-protection";

void admit_new_claim(const Core& core, json::Value& claim);
void admit_new_volume(json::Value& volume);
void admit_new_node(json::Value& node);
base::Status admit_claim_growth(const Core& core, const json::Value& claim,
                                const json::Value& before);

}  // namespace tessera::apiserver
