// What the claims of a pod say about where it may go, and what is written so that they are bound there.
//
// Shape:   pure functions over what the informers show; volume_binder.h carries the writes out and waits for their effect.
// Errors:  VolumeNeeds::problem holds as long as no node would do; kConflict: the place is of no use, another is to be found.
// Source:  kube-scheduler 1.36, plugin VolumeBinding (behaviour, wording). Not modelled: capacity of CSI drivers, limits of
//          volumes a node, zones of volumes without node affinity.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/object.h"
#include "scheduler/core/request.h"

namespace tessera::scheduler {

using Objects = std::map<std::string, kube::Object, std::less<>>;

struct VolumeWorld {
  const Objects& claims;
  const Objects& volumes;
  const Objects& classes;
};

struct VolumeNeeds {
  std::string problem;
  std::vector<core::VolumeRule> rules;
};
VolumeNeeds volume_needs(const VolumeWorld& world, const kube::Object& pod, const Objects& nodes,
                         core::Interner& names);

// What was promised to a claim that had no volume: one that is there, or a new one for the node.
struct VolumePromise {
  std::string claim;     // key
  std::string volume;    // empty: to be made
  json::Value write{};   // the volume or the claim as it is to be written; null: it says so already
  uint64_t version = 0;  // of the object once written
};
base::Result<std::vector<VolumePromise>> volume_promises(const VolumeWorld& world,
                                                         const kube::Object& pod,
                                                         const kube::Object& node);

// True once every claim is bound to a volume that reaches the node.
base::Result<bool> volumes_ready(const VolumeWorld& world, const kube::Object& pod,
                                 const kube::Object& node,
                                 const std::vector<VolumePromise>& promises);

uint64_t version_of(const json::Value& object);

}  // namespace tessera::scheduler
