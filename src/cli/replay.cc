// tessera replay: a placement trace through the scheduler core, or through the whole embedded API.

#include "sim/replay.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "base/executor.h"
#include "base/file.h"
#include "cli/commands.h"
#include "sim/replay_api.h"
#include "sim/report.h"

namespace tessera::cli {
namespace {

struct ReplayArgs {
  std::string nodes;
  std::string pods;
  std::string arrivals;
  std::vector<std::string> policies = {"fgd"};
  std::vector<std::string> seeds;
  int64_t load = 130;
  std::string json;
  std::string html;
  bool through_api = false;
  std::string data_dir;
};

double peak_rss_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1000.0;
}

base::Result<sim::ReplayOptions> options_of(const ReplayArgs& args) {
  sim::ReplayOptions options;
  options.nodes_path = args.nodes;
  options.pods_path = args.pods;
  options.arrivals_path = args.arrivals;
  options.load_percent = static_cast<int>(args.load);
  options.policies.clear();
  for (const std::string& name : args.policies) {
    TS_TRY(const auto policy, scheduler::core::parse_policy(name));
    options.policies.push_back(policy);
  }
  for (const std::string& text : args.seeds) {
    char* end = nullptr;
    const unsigned long long seed = std::strtoull(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || text[0] == '-') {
      return base::error(base::Code::kBadRequest, "--seeds: \"{}\" is no whole number", text);
    }
    options.seeds.push_back(seed);
  }
  return options;
}

// One line that is drawn over, on a terminal only.
void show_progress(const std::string& what, size_t run, size_t runs, int percent) {
  if (::isatty(STDERR_FILENO) != 1) return;
  const int filled = percent * 30 / 100;
  std::string bar;
  for (int i = 0; i < 30; ++i) bar += i < filled ? "█" : "░";
  fmt::print(stderr, "\r{} {:>3}%  {} ({}/{})\x1b[K", bar, percent, what, run + 1, runs);
  if (run + 1 == runs && percent >= 100) fmt::print(stderr, "\r\x1b[K");
}

base::Result<sim::ReplayReport> through_api(const sim::ReplayOptions& options,
                                            const std::string& data_dir) {
  TS_TRY(const sim::TraceWorkload workload,
         sim::read_workload(options.nodes_path, options.pods_path, options.arrivals_path));
  TS_TRY(const auto planned, sim::plan_runs(workload, options));
  sim::ReplayReport report;
  report.nodes = static_cast<int64_t>(workload.nodes.size());
  report.gpus = sim::gpu_milli_total(workload.nodes) / scheduler::core::kMilliPerGpu;
  const base::SystemClock clock;
  for (size_t i = 0; i < planned.size(); ++i) {
    const base::TempDir own;
    base::LoopThread commits("api-commits");
    base::LoopThread scheduler("scheduler");
    base::LoopThread kubelets("kubelets");
    base::LoopThread driver("driver");
    sim::ApiReplayParts parts{
        data_dir.empty() ? own.path() : data_dir, &clock, &commits, &scheduler, &kubelets, &driver};
    const std::string what(scheduler::core::name_of(planned[i].policy));
    TS_TRY(
        sim::ApiReplayResult result,
        sim::run_through_api(workload, planned[i], options.load_percent, parts, [&](int percent) {
          show_progress(what + " through the API", i, planned.size(), percent);
        }));
    for (base::LoopThread* loop : {&driver, &kubelets, &scheduler, &commits}) loop->stop();
    result.run.peak_rss_mb = peak_rss_mb();
    fmt::print("{} pods through the API in {:.2f} s: {:.0f} pods/s, {} running, {} waiting\n",
               result.pods, result.run.seconds,
               static_cast<double>(result.pods) / result.run.seconds, result.running,
               result.waiting);
    report.runs.push_back(std::move(result.run));
  }
  return report;
}

int replay(const ReplayArgs& args) {
  auto options = options_of(args);
  if (!options) return fail(options.error());
  const base::SystemClock clock;
  sim::ReplayHooks hooks{&clock, peak_rss_mb, [](const sim::ReplayProgress& at) {
                           show_progress(fmt::format("{} seed {}", at.policy, at.seed), at.run,
                                         at.runs, at.percent);
                         }};
  auto report =
      args.through_api ? through_api(*options, args.data_dir) : sim::run_replay(*options, hooks);
  if (!report) return fail(report.error());
  fmt::print("{}", sim::report_table(*report));
  if (!args.json.empty()) {
    if (auto written = base::write_file(args.json, sim::report_json(*report).dump() + "\n");
        !written) {
      return fail(written.error());
    }
  }
  if (!args.html.empty()) {
    if (auto written = base::write_file(args.html, sim::report_html(*report)); !written) {
      return fail(written.error());
    }
  }
  return 0;
}

}  // namespace

void add_replay(CommandLine& line) {
  auto args = std::make_shared<ReplayArgs>();
  Command& command =
      line.command("replay", "Replay a placement trace and show allocation and fragmentation");
  command.text("--nodes", args->nodes, "Node file: sn,cpu_milli,memory_mib,gpu,model", true)
      .text("--pods", args->pods,
            "Pod file: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]", true)
      .text("--arrivals", args->arrivals,
            "Orders of arrival (.seq or .seq.gz); without it, drawn by seed")
      .texts("--policy", args->policies, "fgd, bestfit, packing, clustering, dotprod, random")
      .texts("--seeds", args->seeds, "Which seeds; without it, all of the arrivals file, or 42")
      .number("--load", args->load, 1, 1000, "Arrived load at the end, in percent of all GPUs")
      .text("--json", args->json, "Write the result here")
      .text("--html", args->html, "Write a report with curves here")
      .flag("--through-api", args->through_api, "Through the embedded API and simulated kubelets")
      .text("--data", args->data_dir, "Folder of the store for --through-api (a temporary one)");
  command.run([args] { return replay(*args); });
}

}  // namespace tessera::cli
