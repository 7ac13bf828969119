// What a pod takes from its queue: its request in the queues' units, slices and shares as parts of a GPU.
//
// Shape:   a slice or a time-slice replica counts twice: as its part of a GPU, and as a resource by its own name, so that a
//          queue can limit either. A 1g slice is a seventh of an H100 and a quarter of an A30, whatever memory goes with it, so
//          that the slices of one device never count more than the device.
// Units:   as in queueing/amounts.h; parts of a GPU, MiB and shares are rounded up.
// Errors:  none: sums saturate, what is negative counts nothing. Beyond kNamesMax names a resource that no queue names is
//          not counted by its name.
// Threads: the scheduler's strand (Dims has one writer).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "scheduler/core/interner.h"
#include "scheduler/core/request.h"
#include "scheduler/queueing/amounts.h"

namespace tessera::scheduler {

// What only the cluster knows. Where it is not known, a replica or a share by memory counts as a whole GPU.
struct ShareRules {
  int64_t replicas_per_gpu = 1;  // of time-slicing: the least that a node has
  int64_t gpu_memory_mib = 0;    // usable, of a device: the least that a node has
};

inline constexpr size_t kNamesMax = 256;

// How many kUnitsPerGpu-ths one of this resource is: of a GPU, a MIG slice, a replica; nothing where it is none of a GPU.
// Where models differ in what a name means, the largest part counts.
std::optional<int64_t> gpu_units_of(std::string_view resource, const ShareRules& rules);

queueing::Amounts member_amounts(const core::PodRequest& request, const core::Interner& names,
                                 queueing::Dims& dims, const ShareRules& rules);

}  // namespace tessera::scheduler
