// Production traces as text files: nodes, pods, and the order in which the pods arrive.
//
// Shape:   node rows "sn,cpu_milli,memory_mib,gpu,model"; pod rows
//          "name,cpu_milli,memory_mib,num_gpu,gpu_milli" and optionally "gpu_spec" (models joined
//          by '|'); columns are found by the header, others are passed over. An arrivals file
//          (plain or gzip) has three lines a seed: "S <seed>"; pods in order of arrival, as 0-based
//          indices into the name-sorted pods; the rank of each name-sorted node, by which ties
//          between nodes are broken.
// Units:   thousandths of a core, MiB, thousandths of a GPU per device.
// Errors:  kInvalid, "file:line: column: what is wrong: what it must be"; kTooLarge past the limits
//          below.
// Threads: plain values.
// Source:  the openb traces of github.com/alibaba/clusterdata (cluster-trace-gpu-v2023).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tessera::sim {

inline constexpr size_t kTraceBytesMax = size_t{256} << 20;
inline constexpr size_t kTraceRowsMax = 1'000'000;
inline constexpr size_t kTraceFieldMax = 256;
inline constexpr size_t kArrivalsMax = 10'000'000;

struct TraceNode {
  std::string name;
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;
  int32_t gpus = 0;
  std::string model;
};

struct TracePod {
  std::string name;
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;
  int32_t gpus = 0;
  int32_t gpu_milli = 0;  // of each device
  std::vector<std::string>
      models;  // sorted, as often as written (it tells groups of pods apart); empty: any
};

struct Arrivals {
  uint64_t seed = 0;
  std::vector<uint32_t> pods;
  std::vector<uint32_t> node_rank;
};

// One trace: nodes and pods sorted by name.
struct TraceWorkload {
  std::string name;
  std::vector<TraceNode> nodes;
  std::vector<TracePod> pods;
  std::vector<Arrivals> arrivals;  // empty: generate_arrivals() makes them
};

// `file` is what messages call the text.
base::Result<std::vector<TraceNode>> parse_trace_nodes(std::string_view text,
                                                       std::string_view file);
base::Result<std::vector<TracePod>> parse_trace_pods(std::string_view text, std::string_view file);
base::Result<std::vector<Arrivals>> parse_arrivals(std::string_view text, std::string_view file,
                                                   size_t pods, size_t nodes);
// Reads the files; `arrivals_path` may be empty. The workload is named after the pod file.
base::Result<TraceWorkload> read_workload(const std::string& nodes_path,
                                          const std::string& pods_path,
                                          const std::string& arrivals_path);

int64_t gpu_milli_total(const std::vector<TraceNode>& nodes);

// An order of arrival by our own generator: every pod once, shuffled; then pods drawn again at
// random until together they ask for `load_percent` of all GPUs, or pods dropped at random where
// they ask for more. Node ranks are shuffled too.
Arrivals generate_arrivals(const std::vector<TraceNode>& nodes, const std::vector<TracePod>& pods,
                           uint64_t seed, int load_percent);

}  // namespace tessera::sim
