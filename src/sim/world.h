// The whole stack in one thread on a virtual clock: embedded API, controllers, scheduler, kubelets, faults. One seed, one
// run, byte for byte.
//
// Shape:   a World is a fleet, a seed and fault rates. It draws a workload (jobs, deployments, single pods; whole GPUs,
//          shares, MIG slices, CPU), injects faults, watches every object, and checks the invariants after every change.
//          After `duration` the faults end and the world must come to rest in a good state.
// Units:   virtual time.
// Errors:  the first broken invariant, with the time, the objects and the command that runs the same seed again.
// Threads: single-threaded by construction.
// Source:  FoundationDB's and TigerBeetle's way of testing: the whole system by seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "sim/faulty_client.h"
#include "sim/fleet.h"

namespace tessera::sim {

struct WorldOptions {
  uint64_t seed = 1;
  Fleet fleet;  // empty: drawn from the seed, 3 to 12 nodes
  base::Duration duration = base::seconds(600);
  base::Duration settle = base::seconds(1200);  // after the faults, until all must be well
  int workloads = 40;
  bool faults = true;
  bool queues =
      false;  // gangs, queues and budgets too, changes of them, and a scheduler that is started anew
  // Every change of every object, as lines.
  std::function<void(const std::string& line)> log;
};

struct WorldReport {
  uint64_t events = 0;  // changes seen
  uint64_t faults = 0;  // refusals, lost replies, broken watches, node and device failures
  uint64_t pods_created = 0;
  uint64_t pods_bound = 0;
  uint64_t pods_finished = 0;
  uint64_t evictions = 0;      // by the scheduler; where there are queues
  uint64_t gangs_started = 0;  // of more than one
  uint64_t restarts = 0;       // of the scheduler
  uint64_t log_digest = 0;     // of all lines
  base::Duration virtual_time;
};

base::Result<WorldReport> run_world(WorldOptions options);

}  // namespace tessera::sim
