// What binds a claim to a volume, releases a volume and protects both while in use: one step at a time, pure.
//
// Shape:   a step is one write, or nothing; after each the plan is made again from what the API then says, so that a stop
//          between any two steps leaves nothing behind that the next plan does not finish.
// Source:  Kubernetes 1.36 pkg/controller/volume/{persistentvolume,pvcprotection,pvprotection} (behaviour, wording of events).
//          Not modelled: recycling by a pod, migration of volumes built into Kubernetes.
#pragma once

#include <string>
#include <vector>

#include "apiserver/controllers_cluster.h"

namespace tessera::apiserver::controller {

struct VolumeWorld {
  const Cache::Objects& volumes;
  const Cache::Objects& claims;
  const Cache::Objects& classes;
  std::vector<kube::Object> users;  // pods that name the claim in question
  base::Time now;
};

struct VolumeEvent {
  kube::Object about;
  bool warning = false;
  std::string reason;
  std::string message;
};

struct VolumeStep {
  enum class What : uint8_t {
    kNothing,
    kVolume,        // write `object`
    kVolumeStatus,  // its status
    kClaim,
    kClaimStatus,
    kDeleteVolume,
    kLookUpClaim,  // the claim `key` is not to be seen: ask the API before the volume counts as released
    kSyncClaim,  // the claim `key` goes on
  };
  What what = What::kNothing;
  json::Value object{};
  std::string key{};
  std::vector<VolumeEvent> events{};
};

VolumeStep plan_claim(const VolumeWorld& world, const kube::Object& claim);
// `looked_up`: the API was asked for the claim.
VolumeStep plan_volume(const VolumeWorld& world, const kube::Object& volume, bool looked_up);

}  // namespace tessera::apiserver::controller
