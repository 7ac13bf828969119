// tessera world: the whole stack by seed on a virtual clock, for finding bugs and for replaying one.

#include "sim/world.h"

#include <cstdio>
#include <memory>

#include "cli/commands.h"

namespace tessera::cli {
namespace {

struct WorldArgs {
  int64_t seed = 1;
  int64_t seeds = 1;
  std::string log_path;
  bool no_faults = false;
  bool queues = false;
};

int world(const WorldArgs& args) {
  std::FILE* log = args.log_path.empty() ? nullptr : std::fopen(args.log_path.c_str(), "w");
  if (!args.log_path.empty() && log == nullptr) {
    return fail({base::Code::kInternal, "cannot write " + args.log_path, {}});
  }
  int failed = 0;
  for (int64_t seed = args.seed; seed < args.seed + args.seeds; ++seed) {
    sim::WorldOptions options;
    options.seed = static_cast<uint64_t>(seed);
    options.faults = !args.no_faults;
    options.queues = args.queues;
    if (log != nullptr)
      options.log = [log](const std::string& text) { fmt::print(log, "{}\n", text); };
    auto report = sim::run_world(std::move(options));
    if (!report) {
      ++failed;
      fmt::print("FAILED {}\n  run it again: tessera world --seed {}{}{} --log world.log\n",
                 report.error().message, seed, args.queues ? " --queues" : "",
                 args.no_faults ? " --no-faults" : "");
      continue;
    }
    fmt::print("seed {} ok: {} changes, {} faults, {} pods bound, {} finished, ", seed,
               report->events, report->faults, report->pods_bound, report->pods_finished);
    if (args.queues)
      fmt::print("{} evicted, {} gangs started, {} restarts, ", report->evictions,
                 report->gangs_started, report->restarts);
    fmt::print("digest {:016x}\n", report->log_digest);
  }
  if (log != nullptr) std::fclose(log);
  return failed == 0 ? 0 : 1;
}

}  // namespace

void add_world(CommandLine& line) {
  auto args = std::make_shared<WorldArgs>();
  Command& command =
      line.command("world", "Run the whole stack by seed on a virtual clock, with faults");
  command.number("--seed", args->seed, 0, INT64_MAX / 2, "First seed")
      .number("--seeds", args->seeds, 1, 1'000'000, "How many seeds, one after the other")
      .text("--log", args->log_path, "Write every change of every object here")
      .flag("--queues", args->queues, "Gangs, queues, budgets and evictions too")
      .flag("--no-faults", args->no_faults, "Workload alone");
  command.run([args] { return world(*args); });
}

}  // namespace tessera::cli
