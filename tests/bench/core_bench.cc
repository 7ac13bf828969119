// The cost of one decision on 10 000 nodes of 8 GPUs, and of a whole replay, on the core alone.
//
// BM_decision_cached      a one-GPU pod of a shape seen before; the node it went to last time has changed since
// BM_decision_uncached    the first of its shape: every node is scored
// The median over single decisions is in `median_us`, their mean is the benchmark's time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "scheduler/core/scheduler.h"
#include "sim/replay.h"
#include "sim/trace_synthetic.h"

namespace tessera {
namespace {

namespace core = scheduler::core;

constexpr int kNodes = 10'000;

std::shared_ptr<const core::PodRequest> request(int64_t cpu, int64_t gpus, int32_t milli) {
  auto pod = std::make_shared<core::PodRequest>();
  pod->shape.cpu_milli = cpu;
  pod->shape.memory_bytes = cpu << 21;
  pod->shape.gpu.count = gpus;
  pod->shape.gpu.milli = milli;
  return pod;
}

core::TypicalMix published_mix() {
  core::ArrivalCounts counts;
  for (const sim::PublishedShape& shape : sim::published_shapes()) {
    core::Shape asked;
    asked.cpu_milli = shape.cpu_milli;
    asked.gpu.count = shape.gpus;
    if (shape.gpus > 0) asked.gpu.milli = shape.gpu_milli;
    for (int i = 0; i < shape.pods; ++i) counts.add(asked);
  }
  return counts.mix();
}

// 10 000 nodes x 8 GPUs, half full of pods of the published shapes.
struct Fleet {
  core::Cluster cluster;
  base::Random random{7};
  Fleet() {
    for (int n = 0; n < kNodes; ++n) {
      core::NodeSpec spec;
      spec.name = cluster.names().string("node-" + std::to_string(n));
      spec.cpu_milli = 96'000;
      spec.memory_bytes = int64_t{768} << 30;
      spec.gpus = 8;
      spec.model = cluster.names().model("H100");
      cluster.add_node(std::move(spec));
    }
    std::vector<std::shared_ptr<const core::PodRequest>> shapes;
    for (const sim::PublishedShape& s : sim::published_shapes()) {
      shapes.push_back(request(s.cpu_milli, s.gpus, s.gpus > 0 ? s.gpu_milli : 1000));
    }
    for (int i = 0; i < 45'000; ++i) {
      const auto& pod = shapes[random.below(shapes.size())];
      if (pod->shape.gpu.count > 1) continue;
      core::NodeId node(static_cast<int32_t>(random.below(kNodes)));
      if (core::fits(cluster, node, pod->shape)) cluster.add_pod(pod, {node, 0, 0});
    }
  }
};

Fleet& fleet() {
  static Fleet made;
  return made;
}

class Median {
 public:
  explicit Median(benchmark::State& state) : state_(state) {}

  template <class Work>
  void time(Work work) {
    base::Duration start = clock_.monotonic();
    work();
    base::Duration took = clock_.monotonic() - start;
    us_.push_back(static_cast<double>(took.ns) / 1e3);
    state_.SetIterationTime(took.seconds());
  }
  void report() {
    std::nth_element(us_.begin(), us_.begin() + static_cast<std::ptrdiff_t>(us_.size() / 2),
                     us_.end());
    state_.counters["median_us"] = us_[us_.size() / 2];
  }

 private:
  benchmark::State& state_;
  base::SystemClock clock_;
  std::vector<double> us_;
};

void decision_cached(benchmark::State& state, core::Policy policy) {
  core::Cluster& cluster = fleet().cluster;
  core::Scheduler scheduler({.policy = policy, .mix = published_mix()});
  auto pod = request(8'000, 1, 1000);
  Median median(state);
  (void)scheduler.place(cluster, *pod);
  std::vector<core::PodId> placed;
  for (auto _ : state) {
    std::optional<core::Placement> placement;
    median.time([&] {
      placement = scheduler.place(cluster, *pod);
      benchmark::DoNotOptimize(placement);
    });
    if (placement) placed.push_back(cluster.add_pod(pod, *placement));
    if (placed.size() > 1000 || !placement) {
      for (core::PodId id : placed) cluster.remove_pod(id);
      placed.clear();
      (void)scheduler.place(cluster, *pod);
    }
  }
  for (core::PodId id : placed) cluster.remove_pod(id);
  median.report();
}

void decision_first(benchmark::State& state, core::Policy policy) {
  core::Cluster& cluster = fleet().cluster;
  core::Scheduler scheduler({.policy = policy, .mix = published_mix()});
  Median median(state);
  int64_t cpu = 4'000;
  for (auto _ : state) {
    scheduler.forget();
    auto pod = request(cpu, 1, 1000);
    cpu = 4'000 + (cpu + 500) % 8'000;  // another shape each time
    median.time([&] { benchmark::DoNotOptimize(scheduler.place(cluster, *pod)); });
  }
  median.report();
}

void verdict(benchmark::State& state) {
  core::Cluster& cluster = fleet().cluster;
  auto pod = request(8'000, 9, 1000);
  Median median(state);
  for (auto _ : state) {
    median.time([&] { benchmark::DoNotOptimize(core::explain(cluster, *pod)); });
  }
  median.report();
}

void replay_synthetic(benchmark::State& state) {
  sim::TraceWorkload workload = sim::synthetic_workload(400, 7);
  sim::PlannedRun run{core::Policy::kFgd,
                      sim::generate_arrivals(workload.nodes, workload.pods, 42, 130)};
  for (auto _ : state) benchmark::DoNotOptimize(sim::run_one(workload, run, 130));
  state.counters["arrivals"] = static_cast<double>(run.arrivals.pods.size());
}

// Times are those of the decision alone, not of placing the pod and clearing up.
BENCHMARK_CAPTURE(decision_cached, fgd, core::Policy::kFgd)
    ->Name("BM_decision_cached")
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(decision_first, fgd, core::Policy::kFgd)
    ->Name("BM_decision_uncached")
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(decision_first, bestfit, core::Policy::kBestFit)
    ->Name("BM_bestfit_uncached")
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(verdict)->Name("BM_verdict")->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(replay_synthetic)->Name("BM_replay_synthetic")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tessera
