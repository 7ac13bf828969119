// From Kubernetes objects to the core's terms: names interned, quantities as integers, the dialects of GPU shares as one.
//
// Shape:   Node -> NodeSpec; Pod -> PodRequest. A share is asked for by tessera.dev/gpu-milli (with tessera.dev/gpu-count),
//          KAI's gpu-fraction or gpu-memory (with gpu-fraction-num-devices), or as a time-slice replica
//          (nvidia.com/gpu.shared, an extended resource like MIG slices). tessera.dev/gpu-model narrows the products.
// Units:   thousandths, bytes, MiB.
// Errors:  kInvalid names the annotation or field and the mend; such a pod waits with that text as its reason.
// Threads: the scheduler's strand (the interner has one writer).
// Source:  KAI-Scheduler's pod annotations; GPU feature discovery labels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/node.h"
#include "kube/pod.h"
#include "scheduler/core/cluster.h"

namespace tessera::scheduler {

// What the bridge knows of a node beyond the core's spec: which physical GPU each device of the core is.
struct NodeView {
  core::NodeSpec spec;
  std::vector<int> gpu_index;    // of device 0, 1, ...
  int64_t replicas_per_gpu = 0;  // of time-slicing, as its label says; 0: it does not
};

NodeView translate_node(const kube::Node& node, core::Interner& names);
base::Result<core::PodRequest> translate_pod(const kube::Pod& pod, core::Interner& names);
// What a bound pod takes, whoever bound it: never fails. What cannot be read in its wishes has lost its say; its amounts
// count all the same.
core::PodRequest translate_bound_pod(const kube::Pod& pod, core::Interner& names);

// Where a bound pod sits, from the annotations that binding wrote; without them the core charges devices itself.
core::Placement placement_of(const kube::Object& pod, const NodeView& node, core::NodeId id,
                             const core::PodRequest& request);

// The annotations that binding writes: the GPUs, and for shares what is taken of how many.
inline constexpr std::string_view kPlacementAnnotations[] = {
    "tessera.dev/gpus", "tessera.dev/share-milli", "tessera.dev/share-gpus"};
std::vector<std::pair<std::string, std::string>> binding_annotations(
    const core::Placement& placement, const NodeView& node, const core::PodRequest& request);

}  // namespace tessera::scheduler
