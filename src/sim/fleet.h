// A simulated fleet: racks of nodes with their GPUs, from a short YAML.
//
// Shape:   one group a line of hardware; nodes are numbered through the fleet by group ("h200-0", "h200-1", ...).
//            name: lab
//            racks:
//              - name: r1
//                zone: z1                      # optional
//                nodes:
//                  - name: h200                # prefix
//                    count: 4                  # default 1
//                    model: H200               # a product of the catalogue; leave out for a CPU node
//                    gpus: 8                   # default: the usual server's
//                    cpu: 192                  # default 16 a GPU, 32 without
//                    memory: 2Ti               # default 128Gi a GPU, 128Gi without
//                    pods: 110
//                    mig: {1g.18gb: 7}         # every GPU cut so; or {gpus: [0, 1], profiles: {...}} in a list
//                    replicas: 4               # time-slicing: nvidia.com/gpu.shared, 4 a GPU
//                    labels: {pool: train}
//                    taints: [{key: dedicated, value: train, effect: NoSchedule}]
// Units:   as Kubernetes quantities.
// Errors:  kBadRequest naming the path ("racks[0].nodes[1].gpus") and the mend; an unknown key is an error.
// Threads: pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "sim/devices.h"

namespace tessera::gpu {
struct Model;
}

namespace tessera::sim {

struct FleetNode {
  std::string name;
  std::string rack;
  const gpu::Model* model = nullptr;  // null: no GPU
  int gpus = 0;
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t pods_max = 110;
  std::map<std::string, std::string> labels;  // the user's, and topology
  json::Value taints;
  std::vector<Device> devices;
  int replicas = 1;
  // From a placement trace: the GPU model's name there, which is no product of the catalogue.
  std::string trace_model;
};

struct Fleet {
  std::string name;
  std::vector<FleetNode> nodes;
  int gpus() const;
};

inline constexpr int kFleetNodesMax = 20'000;

base::Result<Fleet> parse_fleet(std::string_view yaml);
// The fleet of `tessera up` without a file: racks of 8 nodes, H200, A100 with MIG, L40S with time-slicing, CPU nodes.
Fleet default_fleet(int nodes);

// The Node object with its labels (as GPU feature discovery writes them), capacity and conditions. The node is Ready.
json::Value node_object(const FleetNode& node, base::Time now);
// status.capacity and status.allocatable of a node whose devices are in that state.
json::Value node_resources(const FleetNode& node,
                           const std::map<std::string, int64_t, std::less<>>& devices);

}  // namespace tessera::sim
