// Replays a trace on the scheduler core alone: pods arrive one by one, are placed or fail, and
// never leave. What comes out is how much of the GPUs is allocated and how much of the idle rest is
// fragmented, at each percent of arrived load.
//
// Shape:   run_one(workload, arrivals, policy, ...) is pure and may run on any thread; run_replay
//          reads the files and does all runs one after the other. Each arrival is one row; rows
//          fall into bins of one percent of arrived load (rounded half to even), a bin's value is
//          the mean of its rows, each rounded to 0.01.
// Units:   percent of all GPUs of the cluster; seconds; MB (10^6 bytes).
// Errors:  kInvalid for options and files; messages name the option or the file's place.
// Source:  the protocol of Weng et al., USENIX ATC 2023 (experiments/README of its simulator).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scheduler/core/node.h"
#include "scheduler/core/policy.h"
#include "sim/trace.h"

namespace tessera::sim {

struct ReplayOptions {
  std::string nodes_path;
  std::string pods_path;
  std::string arrivals_path;  // empty: our own generator
  std::vector<scheduler::core::Policy> policies = {scheduler::core::Policy::kFgd};
  std::vector<uint64_t> seeds;  // empty: all of the arrivals file, or 42
  int load_percent = 130;
};

struct ReplayRun {
  std::string workload;
  std::string policy;
  uint64_t seed = 0;
  double seconds = 0;
  double peak_rss_mb = 0;
  std::vector<int> load;
  std::vector<double> allocation;
  std::vector<double> fragmentation;
  int64_t arrived = 0;
  int64_t failed = 0;

  // The value at a percent of load, or at the last one before it; 0 where there is none.
  double allocation_at(int percent) const;
  double fragmentation_at(int percent) const;
};

struct ReplayReport {
  int64_t nodes = 0;
  int64_t gpus = 0;
  std::vector<ReplayRun> runs;
};

struct ReplayProgress {
  size_t run = 0;  // from 0
  size_t runs = 0;
  std::string policy;
  uint64_t seed = 0;
  int percent = 0;  // of this run's arrivals
};

// What the caller measures and shows.
struct ReplayHooks {
  const base::Clock* clock = nullptr;   // null: seconds stay 0
  std::function<double()> peak_rss_mb;  // empty: 0
  std::function<void(const ReplayProgress&)> progress;
};

struct PlannedRun {
  scheduler::core::Policy policy;
  Arrivals arrivals;
};

// All (policy, seed) pairs of the options, with their arrivals.
base::Result<std::vector<PlannedRun>> plan_runs(const TraceWorkload& workload,
                                                const ReplayOptions& options);

ReplayRun run_one(const TraceWorkload& workload, const PlannedRun& planned, int load_percent,
                  const std::function<void(int percent)>& progress = {});

// What was decided elsewhere for the n-th arrival: nothing where it found no place. Nodes are numbered by rank.
using Decide = std::function<std::optional<scheduler::core::Placement>(size_t arrival)>;
// run_one with the decisions given: the curves of a run through the API.
ReplayRun run_rows(const TraceWorkload& workload, const PlannedRun& planned, int load_percent,
                   const Decide& recorded, const std::function<void(int percent)>& progress = {});
// How many of the arrivals come before the load is over `load_percent`.
size_t arrivals_within(const TraceWorkload& workload, const PlannedRun& planned, int load_percent);
// The mix of the workload's own pods, that FGD measures against.
scheduler::core::TypicalMix typical_mix(const TraceWorkload& workload,
                                        scheduler::core::Interner& names);

base::Result<ReplayReport> run_replay(const ReplayOptions& options, const ReplayHooks& hooks);

}  // namespace tessera::sim
