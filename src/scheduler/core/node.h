// One node as the scheduler sees it: what it declares (NodeSpec) and what is left of it (NodeLoad).
//
// Shape:   NodeLoad is the part that filters and scores read for every node, kept small and
//          contiguous; NodeSpec is read where a rule needs it. Devices are bits of a mask and
//          entries of an array, device 0 first.
// Units:   thousandths of a core and of a GPU, bytes, MiB of GPU memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "scheduler/core/request.h"

namespace tessera::scheduler::core {

using base::NodeId;
using base::PodId;

struct NodeSpec {
  StringId name;
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t storage_bytes = 0;
  int64_t pods_max = 110;
  std::vector<ResourceAmount> extended;  // sorted by id, none twice
  Labels labels;                         // sorted by key
  std::vector<Taint> taints;
  ModelId model;
  ResourceId gpu_resource;
  int32_t gpus = 0;             // whole devices that may be handed out, 0 to 16
  int64_t gpu_memory_mib = 0;   // of one device; 0: unknown
  uint32_t gpus_unhealthy = 0;  // mask of devices that get nothing new
  bool unschedulable = false;   // cordoned
  bool ready = true;
  bool operator==(const NodeSpec&) const = default;
};

struct NodeLoad {
  int64_t cpu_free = 0;
  int64_t memory_free = 0;
  int64_t storage_free = 0;
  int64_t pods_free = 0;
  uint64_t gpu_state =
      0;  // sum of gpu_state_of(free) over the devices: equal multisets have equal sums
  std::array<int16_t, kGpusPerNodeMax> gpu_free{};  // 0 for an unhealthy device
  int32_t gpu_free_total = 0;
  uint32_t gpu_idle = 0;  // mask of devices with all 1000 free
  uint32_t classes = 0;   // bit 0: hosts shares; bit k: hosts pods of k GPUs (16 stands for more)
  ModelId model;
  ResourceId gpu_resource;
  int32_t gpu_memory_mib = 0;
  uint8_t gpus = 0;
  bool open = false;  // present, ready, not cordoned
  bool tainted = false;
};

// The part of one device in NodeLoad::gpu_state; 0 for nothing free.
constexpr uint64_t gpu_state_of(int free_milli) {
  if (free_milli == 0) return 0;
  uint64_t x = static_cast<uint64_t>(free_milli) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
  return x ^ (x >> 32);
}

// The bit of NodeLoad::classes for a request; 0 for none.
constexpr uint32_t class_of(const GpuAsk& gpu) {
  if (gpu.count == 0) return 0;
  if (!gpu.whole()) return 1;
  return uint32_t{1} << (gpu.count > kGpusPerNodeMax ? kGpusPerNodeMax : gpu.count);
}

// Thousandths of one of this node's devices that the request takes; above 1000 where a device
// cannot hold it.
inline int32_t milli_on(const NodeLoad& node, const GpuAsk& gpu) {
  if (gpu.memory_mib == 0) return gpu.milli;
  if (node.gpu_memory_mib <= 0 || gpu.memory_mib > node.gpu_memory_mib) return kMilliPerGpu + 1;
  return static_cast<int32_t>((gpu.memory_mib * kMilliPerGpu + node.gpu_memory_mib - 1) /
                              node.gpu_memory_mib);
}

// Where a pod goes: the node, which of its devices, and how much of each.
struct Placement {
  NodeId node;
  uint32_t devices = 0;
  int32_t milli = 0;
  bool operator==(const Placement&) const = default;
};

}  // namespace tessera::scheduler::core
