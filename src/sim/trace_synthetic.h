// A workload without a trace: pods drawn from the published distribution of shapes, nodes like
// those of the published cluster. For the demo, benchmarks and tests.
//
// Units:   thousandths of a core, MiB, thousandths of a GPU per device; `pods` counts how often the
//          shape was seen.
// Source:  the pod list of github.com/alibaba/clusterdata, cluster-trace-gpu-v2023 (8152 pods),
//          counted by (cpu, GPUs, share); memory is the median of each group. Node shapes and their
//          numbers: the same trace, node list.
#pragma once

#include <cstdint>
#include <span>

#include "sim/trace.h"

namespace tessera::sim {

struct PublishedShape {
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;
  int32_t gpus = 0;
  int32_t gpu_milli = 0;
  int32_t pods = 0;
};
std::span<const PublishedShape> published_shapes();

// `node_count` nodes in the published proportions and pods that together ask for about all of their
// GPUs. The same seed gives the same workload.
TraceWorkload synthetic_workload(int node_count, uint64_t seed);

}  // namespace tessera::sim
