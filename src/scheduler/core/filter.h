// Whether one node can hold one pod, and if not, why: in Kubernetes' order and words.
//
// Shape:   rules (cordon, taints, selector and affinity, volumes, GPU model) depend on the node's
//          declaration and are answered by check_rules; amounts by fits (yes or no, fast) and
//          shortages (all that is short, for explanations). Rules between pods are in pod_rules.h.
// Source:  kube-scheduler 1.36: plugin order and failure messages.
#pragma once

#include <cstdint>

#include "scheduler/core/cluster.h"

namespace tessera::scheduler::core {

enum class Reason : uint8_t {
  kNone,
  kGone,  // the slot is empty: not a node at all
  kNotReady,
  kUnschedulable,
  kTaint,
  kNodeAffinity,
  kVolumeReach,
  kVolumeBind,
  kVolumeMissing,
  kGpuModel,
  kTooManyPods,
  kInsufficientCpu,
  kInsufficientMemory,
  kInsufficientStorage,
  kInsufficientExtended,
  kInsufficientGpu,
  kInsufficientGpuShare,
  kSpread,
  kSpreadLabel,
  kAffinity,
  kAntiAffinity,
  kExistingAntiAffinity,
};

// A reason with what it is about: the taint, or the resource.
struct Finding {
  Reason reason = Reason::kNone;
  Taint taint;
  ResourceId resource;
  int64_t missing = 0;  // amount short, in the resource's unit
  bool never = false;   // an empty node of this kind would not do either
  explicit operator bool() const { return reason != Reason::kNone; }
};

// The first rule that keeps the shape off the node.
Finding check_rules(const Cluster& cluster, NodeId node, const Shape& shape);
// Points for preferred affinity (0 to 100 by weight) less those for PreferNoSchedule taints.
int32_t preference(const Cluster& cluster, NodeId node, const Shape& shape);

// All amounts fit now.
bool fits(const Cluster& cluster, NodeId node, const Shape& shape);
// Devices that could each give the request's share.
int32_t devices_fitting(const NodeLoad& node, const GpuAsk& gpu);

// Every amount that is short, in Kubernetes' order.
std::vector<Finding> shortages(const Cluster& cluster, NodeId node, const Shape& shape);

}  // namespace tessera::scheduler::core
