// tessera replay-queues: jobs of many tenants through queueing policies, in virtual time.

#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "cli/commands.h"
#include "sim/queue_report.h"

namespace tessera::cli {
namespace {

constexpr int64_t kDay = 86'400;

struct ReplayQueuesArgs {
  std::string jobs_path;
  std::vector<std::string> policies;
  int64_t nodes = 72;
  int64_t load = 100;
  int64_t days = 50;
  int64_t jobs = 0;
  int64_t seed = 1;
  int64_t half_life_days = 7;
  int64_t runtime_min_s = 3600;
  int64_t patience_days = 7;
  bool weights_by_use = false;
  std::string json;
};

base::Result<std::vector<sim::QueuePolicy>> policies_of(const ReplayQueuesArgs& args) {
  std::vector<sim::QueuePolicy> policies;
  for (const std::string& name : args.policies) {
    auto policy = sim::parse_queue_policy(name);
    if (!policy) {
      return base::error(
          base::Code::kBadRequest,
          "--policy: \"{}\": must be tessera, strict-fifo, best-effort-fifo, easy or drf", name);
    }
    policies.push_back(*policy);
  }
  if (policies.empty())
    policies.assign(std::begin(sim::kQueuePolicies), std::end(sim::kQueuePolicies));
  return policies;
}

base::Status replay_queues(const ReplayQueuesArgs& args) {
  TS_TRY(const auto policies, policies_of(args));
  TS_TRY(const std::string text, base::read_file(args.jobs_path));
  TS_TRY(auto jobs, sim::parse_queue_jobs(text, args.jobs_path));
  sim::QueueReplayOptions options;
  options.nodes = static_cast<int32_t>(args.nodes);
  options.half_life_s = args.half_life_days * kDay;
  options.runtime_min_s = args.runtime_min_s;
  options.patience_s = args.patience_days * kDay;
  options.weights_by_use = args.weights_by_use;
  sim::QueueLoad load;
  load.days = args.days;
  load.load = static_cast<double>(args.load) / 100;
  load.jobs = args.jobs;
  load.seed = static_cast<uint64_t>(args.seed);
  const auto shaped =
      sim::shape_load(std::move(jobs), int64_t{options.nodes} * options.gpus_per_node, load);
  fmt::print(
      "{} jobs over {:.1f} days on {} nodes of {} GPUs; all policies are settings of one "
      "engine\n\n",
      shaped.size(), shaped.empty() ? 0.0 : static_cast<double>(shaped.back().arrival_s) / kDay,
      options.nodes, options.gpus_per_node);
  const base::SystemClock clock;
  std::vector<sim::QueueRun> runs;
  for (sim::QueuePolicy policy : policies) {
    const auto started = clock.monotonic();
    sim::QueueRun run{policy, sim::replay_queues(policy, shaped, options), 0};
    run.seconds = (clock.monotonic() - started).seconds();
    runs.push_back(std::move(run));
  }
  fmt::print("{}", sim::queue_table(runs));
  if (args.json.empty()) return {};
  return base::write_file(args.json, sim::queue_json(runs).dump() + "\n");
}

}  // namespace

void add_replay_queues(CommandLine& line) {
  auto args = std::make_shared<ReplayQueuesArgs>();
  Command& command = line.command(
      "replay-queues", "Replay jobs of many tenants through queueing policies and compare them");
  command.text("--jobs-file", args->jobs_path, "Jobs: vc,arrival_s,num_gpu,duration_s", true)
      .texts("--policy", args->policies,
             "tessera, strict-fifo, best-effort-fifo, easy, drf; without it, all")
      .number("--nodes", args->nodes, 1, 10'000, "Nodes of 8 GPUs")
      .number("--load", args->load, 0, 1000,
              "What arrives, in percent of all GPUs; arrivals are stretched to it (0: as they are)")
      .number("--days", args->days, 0, 36'500, "Days of the trace to keep (0: all)")
      .number("--jobs", args->jobs, 0, 1'000'000, "At most so many jobs (0: all)")
      .number("--seed", args->seed, 0, INT64_MAX / 2, "Of the limits that users ask for")
      .number("--half-life", args->half_life_days, 0, 36'500,
              "Days in which past use halves, for tessera (0: no history)")
      .number("--runtime-min", args->runtime_min_s, 0, 100 * 365 * kDay,
              "Seconds before a job may be evicted")
      .number("--patience", args->patience_days, 0, 36'500,
              "Days after which the oldest is tried before all turns, for tessera (0: never)")
      .flag("--weights-by-use", args->weights_by_use,
            "Weigh tenants by what their jobs ask for, not all the same")
      .text("--json", args->json, "Write the result here");
  command.run([args] {
    auto done = replay_queues(*args);
    return done ? 0 : fail(done.error());
  });
}

}  // namespace tessera::cli
