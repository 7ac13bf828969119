// The same replay through the embedded Kubernetes API: pods are created by a client, admitted, placed by the scheduler
// component, bound, and run by simulated kubelets.
//
// Shape:   the nodes and pods of a trace become Node and Pod objects; nodes are named in the order in which ties between
//          them are broken. A run ends once every pod runs or was told that no node can take it. The curves come from the
//          decisions seen in the API, computed as in replay.h.
// Units:   wall time from the first create to the last pod running.
// Errors:  as replay.h; kInternal where the store cannot be opened.
// Threads: one executor each for the API's commits, the scheduler, the kubelets and the driver, given by the caller; the
//          calling thread waits.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "sim/fleet.h"
#include "sim/replay.h"

namespace tessera::sim {

struct ApiReplayParts {
  std::string data_dir;  // of the store; empty: memory only
  const base::Clock* clock = nullptr;
  base::Executor* commits = nullptr;
  base::Executor* scheduler = nullptr;
  base::Executor* kubelets = nullptr;
  base::Executor* driver = nullptr;
};

struct ApiReplayResult {
  ReplayRun run;  // seconds set; peak_rss_mb is the caller's
  size_t pods = 0;
  size_t running = 0;
  size_t waiting = 0;
};

base::Result<ApiReplayResult> run_through_api(const TraceWorkload& workload,
                                              const PlannedRun& planned, int load_percent,
                                              const ApiReplayParts& parts,
                                              std::function<void(int percent)> progress = {});

// The trace's nodes as a fleet, named by rank.
Fleet fleet_of(const TraceWorkload& workload, const std::vector<uint32_t>& ranks);
// One arrival as a Pod object named "p<n>".
json::Value pod_of(const TracePod& pod, size_t arrival);

}  // namespace tessera::sim
