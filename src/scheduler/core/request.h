// What one pod asks of a node, with every name interned.
//
// Shape:   a PodRequest is a Shape (all that filters and scores on one node look at; equal shapes
//          share their cached scores) plus what ties it to other pods: namespace, labels, affinity
//          between pods, topology spread.
// Units:   thousandths of a core, bytes, thousandths of a GPU per device, MiB of GPU memory per
//          device.
// Errors:  check() names the field that makes no sense; amounts may be as large as int64 goes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "scheduler/core/amount.h"
#include "scheduler/core/selector.h"

namespace tessera::scheduler::core {

inline constexpr int kMilliPerGpu = 1000;
inline constexpr int kGpusPerNodeMax = 16;

struct ResourceAmount {
  ResourceId id;
  int64_t amount = 0;
  bool operator==(const ResourceAmount&) const = default;
};

// `count` devices with `milli` of each. A request by memory gives `memory_mib` and leaves `milli`
// to each node's model.
struct GpuAsk {
  int64_t count = 0;
  int32_t milli = kMilliPerGpu;
  int64_t memory_mib = 0;
  ResourceId resource;  // nvidia.com/gpu, amd.com/gpu; invalid: either

  bool whole() const { return milli == kMilliPerGpu && memory_mib == 0; }
  bool operator==(const GpuAsk&) const = default;
};

// What a volume asks of the node: one of `terms` must hold; none listed: no node will do.
struct VolumeRule {
  enum class Why : uint8_t {
    kReach,    // the volume is there and bound
    kBind,     // one is to be found or made
    kMissing,  // the claim is bound to one that is gone
  };
  Why why = Why::kReach;
  std::vector<NodeTerm> terms;
  bool operator==(const VolumeRule&) const = default;
};

struct Shape {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t storage_bytes = 0;
  GpuAsk gpu;
  std::vector<ResourceAmount> extended;  // sorted by id, none twice
  std::vector<ModelId> models;           // sorted, repeats allowed; empty: any GPU model
  std::vector<Label> node_selector;      // sorted by key
  std::vector<NodeTerm> required;        // OR; empty: no rule
  std::vector<VolumeRule> volumes;       // AND
  std::vector<PreferredTerm> preferred;
  std::vector<Toleration> tolerations;
  bool tolerates_cordon = false;  // the pod may go where others may not, as daemons do

  // True where labels, taints and models of a node can only matter by its taints.
  bool has_node_rules() const {
    return !models.empty() || !node_selector.empty() || !required.empty() || !volumes.empty();
  }
  bool operator==(const Shape&) const = default;
};
uint64_t hash_of(const Shape& shape);

struct SpreadRule {
  PodTerm term;  // namespaces: the pod's own
  int32_t max_skew = 1;
  bool required = true;  // DoNotSchedule; false: ScheduleAnyway
  bool operator==(const SpreadRule&) const = default;
};

struct PodRequest {
  Shape shape;
  StringId pod_namespace;
  Labels labels;
  std::vector<PodTerm> affinity;
  std::vector<PodTerm> anti_affinity;
  std::vector<SpreadRule> spread;
  int32_t priority = 0;
};

base::Status check(const PodRequest& request);

}  // namespace tessera::scheduler::core
