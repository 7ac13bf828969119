// Trace files from anyone: never a crash; what is accepted is within the limits and can be replayed.
// Input: the first byte picks the reader (nodes, pods, arrivals); the rest is the file.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "sim/replay.h"
#include "sim/trace.h"

namespace {

using namespace tessera;

void check_nodes(std::string_view text) {
  auto nodes = sim::parse_trace_nodes(text, "nodes.csv");
  if (!nodes) {
    TS_CHECK(nodes.error().message.starts_with("nodes.csv"), "{}", nodes.error().message);
    return;
  }
  TS_CHECK(sim::gpu_milli_total(*nodes) >= 0);
}

void check_pods(std::string_view text) {
  auto pods = sim::parse_trace_pods(text, "pods.csv");
  if (!pods) {
    TS_CHECK(pods.error().message.starts_with("pods.csv"), "{}", pods.error().message);
    return;
  }
  if (pods->size() > 50) return;
  sim::TraceWorkload workload;
  workload.nodes = {{"a", 8'000, 64'000, 2, "X"}, {"b", 4'000, 64'000, 1, "Y"}};
  workload.pods = std::move(*pods);
  sim::PlannedRun planned{scheduler::core::Policy::kFgd,
                          sim::generate_arrivals(workload.nodes, workload.pods, 1, 130)};
  sim::ReplayRun run = sim::run_one(workload, planned, 130);
  TS_CHECK(run.failed <= run.arrived);
  for (double allocation : run.allocation) TS_CHECK(allocation >= 0 && allocation <= 100);
}

void check_arrivals(std::string_view text) {
  auto arrivals = sim::parse_arrivals(text, "arrivals", 5, 3);
  if (!arrivals) {
    TS_CHECK(arrivals.error().message.starts_with("arrivals:"), "{}", arrivals.error().message);
    return;
  }
  for (const sim::Arrivals& one : *arrivals) {
    TS_CHECK(one.node_rank.size() == 3);
    for (uint32_t pod : one.pods) TS_CHECK(pod < 5);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      check_nodes(text);
      break;
    case 1:
      check_pods(text);
      break;
    default:
      check_arrivals(text);
      break;
  }
  return 0;
}
