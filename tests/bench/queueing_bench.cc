// What the queues cost: filling a cluster, saying no, reclaiming, and a cycle over very many that wait.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "scheduler/queueing/engine_testing.h"

namespace tessera::scheduler::queueing {
namespace {

using testing::Lab;
using testing::queue;

// 500 nodes of 8 GPUs, 4000 pods of one GPU.
void BM_queueing_fill_4000(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    Lab lab;
    lab.nodes(500, 8).queues({queue("a", 0), queue("b", 0)});
    lab.singles("a", 2000);
    lab.singles("b", 2000);
    state.ResumeTiming();
    Plan plan = lab.engine.cycle(lab.now);
    if (plan.binds.size() != 4000) state.SkipWithError("not all were placed");
    state.PauseTiming();
    lab = Lab();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_queueing_fill_4000)->Unit(benchmark::kMillisecond);

Lab full(int64_t quota_a = 0, int64_t quota_b = 0) {
  Lab lab;
  lab.nodes(500, 8).queues(
      {queue("a", static_cast<int>(quota_a)), queue("b", static_cast<int>(quota_b))});
  lab.singles("a", 4000);
  lab.engine.cycle(lab.now);
  lab.pass(base::seconds(60));
  return lab;
}

// A gang of 10 x 8 GPUs on a full cluster whose owner is within its share: nothing may be reclaimed.
void BM_queueing_say_no_to_a_gang(benchmark::State& state) {
  Lab lab = full(4000);
  GangId gang = lab.gang("big", "b", 10, 10, 8);
  for (auto _ : state) {
    Plan plan = lab.engine.cycle(lab.now);
    if (!plan.binds.empty() || lab.engine.gang(gang).wait.reason != WaitReason::kCapacity)
      state.SkipWithError("it was not refused");
  }
}
BENCHMARK(BM_queueing_say_no_to_a_gang)->Unit(benchmark::kMillisecond);

// 2000 GPUs for one gang of 250 x 8 out of 4000 victims of one GPU.
void BM_queueing_reclaim_2000_gpus(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    Lab lab = full(2000, 2000);
    lab.gang("big", "b", 250, 250, 8);
    state.ResumeTiming();
    Plan plan = lab.engine.cycle(lab.now);
    if (plan.evicts.size() != 2000) state.SkipWithError("not 2000 evictions");
    state.PauseTiming();
    lab = Lab();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_queueing_reclaim_2000_gpus)->Unit(benchmark::kMillisecond);

// 4000 running, 4000 pending of a queue that is due half: one cycle that reclaims 2000 GPUs one by one.
void BM_queueing_cycle_4000_running_4000_pending(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    Lab lab = full(2000, 2000);
    lab.singles("b", 4000);
    state.ResumeTiming();
    Plan plan = lab.engine.cycle(lab.now);
    if (plan.evicts.size() != 2000) state.SkipWithError("not 2000 evictions");
    state.PauseTiming();
    lab = Lab();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_queueing_cycle_4000_running_4000_pending)->Unit(benchmark::kMillisecond);

// 100 000 pods of eight sizes wait in 1000 queues of a full cluster.
void BM_queueing_cycle_100k_pending_1000_queues(benchmark::State& state) {
  Lab lab;
  std::vector<QueueSpec> queues;
  for (int q = 0; q < 1000; ++q) {
    std::string parent = "p" + std::to_string(q / 50);
    if (q % 50 == 0) queues.push_back(queue(parent, 0));
    queues.push_back(queue("q" + std::to_string(q), 0, 1 + q % 3, 100, parent));
  }
  lab.nodes(500, 8).queues(std::move(queues));
  for (int i = 0; i < 104'000; ++i)
    lab.gang("j" + std::to_string(i), "q" + std::to_string(i % 1000), 1, 1, 1 << (i / 1000 % 4),
             i / 4000 % 2);
  lab.settle();
  size_t waiting = static_cast<size_t>(lab.engine.use(lab.engine.queues().root()).waiting);
  for (auto _ : state) benchmark::DoNotOptimize(lab.engine.cycle(lab.now));
  state.counters["waiting"] = static_cast<double>(waiting);
}
BENCHMARK(BM_queueing_cycle_100k_pending_1000_queues)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tessera::scheduler::queueing
