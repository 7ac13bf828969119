// Persistent volumes and the claims for them: who fits whom, by what marks they are bound, and which nodes reach a volume.
//
// Shape:   pure functions; the controller that binds and the scheduler that waits for it look through the same eyes.
// Units:   sizes are quantities of bytes.
// Source:  k8s.io/component-helpers v0.36.3 storage/volume; pkg/controller/volume/persistentvolume (behaviour).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/affinity.h"
#include "kube/object.h"
#include "kube/quantity.h"

namespace tessera::kube {

inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
inline constexpr std::string_view kProvisioner = "volume.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kBetaProvisioner =
    "volume.beta.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";

// The class that a claim or volume asks for, by the field or the annotation of old; empty: none.
std::string storage_class_of(const json::Value& object);
// A claim that says which class it wants, be it none at all.
bool names_storage_class(const json::Value& claim);
bool is_default_class(const json::Value& storage_class);
// Of several default classes the newest counts, then the name.
bool default_class_before(const json::Value& a, const json::Value& b);
// The class waits for the pod that uses the claim.
bool waits_for_consumer(const json::Value& storage_class);

// spec.capacity.storage of a volume, the request of a claim; zero where there is none.
Quantity storage_of(const Object& volume_or_claim);
bool has_annotation(const Object& object, std::string_view name);

// The volume is for this claim: its claimRef names it, by uid where it has one.
bool is_meant_for(const Object& volume, const Object& claim);
// Why the claim cannot have the volume, in Kubernetes' words; empty: it can.
std::string volume_mismatch(const Object& volume, const Object& claim);

// spec.nodeAffinity of a volume: the terms, of which one must hold. Nothing set: every node reaches it.
Affinity reach_of(const Object& volume);
bool reaches(const Object& volume, const Object& node);

// The smallest volume that the claim may have. `node`: only volumes that it reaches; none: any, but for a delayed claim
// only one that is meant for it. `taken` are out of the question.
Object match_volume(const Object& claim, const std::vector<Object>& volumes, const Object& node,
                    const std::set<std::string>& taken, bool delayed);
// The volume with a claimRef that names the claim; null where it has that already.
json::Value bound_to(const Object& volume, const Object& claim);

// The claims that a pod uses, ephemeral ones ("<pod>-<volume>") too.
struct ClaimUse {
  std::string name;
  bool ephemeral = false;
};
std::vector<ClaimUse> claims_of(const Object& pod);

}  // namespace tessera::kube
