#include "sim/trace_synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/random.h"

namespace tessera::sim {
namespace {

// cpu, memory, GPUs, milli of each, how often
constexpr PublishedShape kShapes[] = {
    {3152, 5600, 1, 810, 1047},   {11300, 49152, 1, 1000, 874}, {11400, 48128, 1, 1000, 599},
    {3152, 5600, 1, 1000, 470},   {11908, 47104, 1, 470, 388},  {12500, 57344, 0, 0, 366},
    {8000, 30517, 1, 470, 360},   {12000, 24576, 1, 1000, 326}, {32000, 49152, 0, 0, 290},
    {18708, 64512, 1, 1000, 255}, {11908, 47104, 1, 650, 237},  {4000, 22888, 1, 320, 232},
    {9810, 41560, 1, 1000, 195},  {8000, 30517, 0, 0, 185},     {8000, 16384, 1, 1000, 164},
    {4000, 24576, 1, 1000, 159},  {15700, 58368, 1, 1000, 158}, {11908, 47104, 1, 1000, 153},
    {16000, 32768, 1, 1000, 150}, {4000, 30517, 1, 230, 122},   {6000, 8192, 1, 460, 120},
    {15400, 51200, 0, 0, 120},    {16500, 51200, 0, 0, 95},     {14200, 58368, 1, 1000, 93},
    {24200, 93184, 1, 1000, 84},  {3152, 5600, 1, 590, 75},     {4152, 10600, 1, 550, 72},
    {8000, 30517, 1, 320, 72},    {11900, 77824, 1, 1000, 55},  {4000, 15258, 1, 160, 54},
    {4152, 10600, 1, 370, 45},    {4000, 15258, 1, 220, 43},    {8200, 33792, 1, 1000, 41},
    {15200, 80896, 1, 1000, 36},  {4152, 10600, 1, 810, 31},    {16400, 125952, 1, 1000, 29},
    {1000, 2048, 1, 320, 22},     {6000, 22888, 1, 160, 20},    {8000, 30517, 1, 220, 19},
    {4000, 22888, 1, 110, 18},    {4000, 22888, 1, 480, 18},    {8000, 30517, 1, 230, 18},
    {64200, 263168, 8, 1000, 18}, {88000, 327680, 8, 1000, 18}, {1000, 6144, 1, 1000, 15},
    {16000, 31250, 0, 0, 14},     {8000, 30517, 1, 650, 12},    {7000, 30000, 1, 1000, 11},
    {11400, 57344, 0, 0, 11},     {15400, 90112, 1, 1000, 9},   {32200, 132096, 4, 1000, 9},
    {2000, 16384, 1, 1000, 8},    {6000, 32768, 1, 1000, 8},    {14900, 73728, 1, 1000, 8},
    {4000, 22888, 1, 330, 7},     {16200, 66560, 2, 1000, 7},   {4000, 22888, 1, 350, 6},
    {9400, 52224, 1, 1000, 6},    {12000, 18432, 1, 460, 6},    {4152, 10600, 1, 270, 4},
    {6000, 22888, 1, 50, 4},      {6000, 22888, 1, 110, 4},     {12000, 24576, 0, 0, 4},
    {4000, 15258, 1, 50, 3},      {6000, 65536, 2, 1000, 3},    {30200, 160768, 2, 1000, 3},
    {32000, 131072, 4, 1000, 3},  {60200, 320512, 4, 1000, 3},  {64000, 262144, 8, 1000, 3},
    {120000, 737280, 8, 1000, 3}, {1000, 2048, 1, 650, 2},      {2000, 8192, 1, 370, 2},
    {4000, 15258, 1, 470, 2},     {4000, 15258, 1, 650, 2},     {6000, 30517, 1, 320, 2},
    {8000, 30517, 1, 110, 2},     {8000, 30517, 1, 440, 2},     {8000, 16000, 1, 460, 2},
    {17400, 43008, 2, 1000, 2},   {20000, 65536, 0, 0, 2},      {120200, 640000, 8, 1000, 2},
    {1000, 2048, 1, 140, 1},      {1000, 2048, 1, 290, 1},      {5000, 10240, 1, 1000, 1},
    {8000, 30517, 1, 480, 1},     {8710, 41560, 1, 1000, 1},    {10000, 48828, 0, 0, 1},
    {11800, 78848, 1, 1000, 1},   {14000, 0, 1, 1000, 1},       {14000, 60000, 2, 1000, 1},
    {15900, 90112, 1, 1000, 1},
};

struct NodeShape {
  std::string_view model;
  int32_t gpus;
  int64_t cpu_milli;
  int64_t memory_mib;
  int32_t nodes;
};
constexpr std::array<NodeShape, 14> kNodeShapes = {{{"G2", 8, 96'000, 393'216, 549},
                                                    {"T4", 2, 104'000, 524'288, 387},
                                                    {"T4", 4, 96'000, 393'216, 17},
                                                    {"G3", 8, 128'000, 786'432, 39},
                                                    {"P100", 1, 8'000, 61'440, 3},
                                                    {"P100", 2, 8'000, 61'440, 2},
                                                    {"P100", 2, 16'000, 122'880, 107},
                                                    {"P100", 2, 64'000, 262'144, 22},
                                                    {"V100M32", 4, 48'000, 376'832, 9},
                                                    {"V100M32", 8, 96'000, 786'432, 21},
                                                    {"V100M16", 1, 8'000, 32'768, 19},
                                                    {"V100M16", 4, 32'000, 131'072, 28},
                                                    {"V100M16", 8, 64'000, 262'144, 8},
                                                    {"A10", 1, 128'000, 1'048'576, 2}}};

// An index drawn in proportion to the weights.
template <class Items, class Weight>
size_t draw(const Items& items, Weight weight, base::Random& random) {
  uint64_t total = 0;
  for (const auto& item : items) total += static_cast<uint64_t>(weight(item));
  uint64_t left = random.below(total);
  for (size_t i = 0;; ++i) {
    uint64_t w = static_cast<uint64_t>(weight(items[i]));
    if (left < w) return i;
    left -= w;
  }
}

}  // namespace

std::span<const PublishedShape> published_shapes() {
  return kShapes;
}

TraceWorkload synthetic_workload(int node_count, uint64_t seed) {
  base::Random random(seed);
  TraceWorkload workload;
  workload.name = "synthetic";
  for (int n = 0; n < node_count; ++n) {
    // The commonest kind first, so that a handful of nodes has the 8-GPU ones.
    const NodeShape& shape =
        kNodeShapes[n == 0 ? 0
                           : draw(kNodeShapes, [](const NodeShape& s) { return s.nodes; }, random)];
    workload.nodes.push_back({fmt::format("node-{:05}", n), shape.cpu_milli, shape.memory_mib,
                              shape.gpus, std::string(shape.model)});
  }
  int64_t target = gpu_milli_total(workload.nodes);
  int64_t asked = 0;
  while (asked < target) {
    const PublishedShape& shape =
        kShapes[draw(kShapes, [](const PublishedShape& s) { return s.pods; }, random)];
    workload.pods.push_back({fmt::format("pod-{:06}", workload.pods.size()),
                             shape.cpu_milli,
                             shape.memory_mib,
                             shape.gpus,
                             shape.gpu_milli,
                             {}});
    asked += int64_t{shape.gpus} * shape.gpu_milli;
  }
  return workload;
}

}  // namespace tessera::sim
