#include "sim/queue_report.h"

#include <fmt/format.h>

#include <iterator>

namespace tessera::sim {
namespace {

constexpr double kHour = 3600;

json::Value waits_json(const QueueScore& score) {
  json::Value waits = json::Value::object();
  for (size_t c = 0; c < kSizeNames.size(); ++c) {
    const WaitScore& wait = score.waits[c];
    waits.set(kSizeNames[c], json::Value::object({{"jobs", wait.jobs},
                                                  {"mean_s", wait.mean_s},
                                                  {"p50_s", wait.p50_s},
                                                  {"p99_s", wait.p99_s},
                                                  {"max_s", wait.max_s}}));
  }
  return waits;
}

}  // namespace

std::string queue_table(const std::vector<QueueRun>& runs) {
  std::string out =
      fmt::format("{:<17} {:>6} {:>10} {:>10} {:>10} {:>10} {:>7} {:>9} {:>7}\n", "policy", "use %",
                  "jain p50", "jain p5", "full p50", "full p5", "evicted", "GPU-h lost", "s");
  for (const QueueRun& run : runs) {
    const QueueScore& score = run.score;
    fmt::format_to(std::back_inserter(out),
                   "{:<17} {:>6.2f} {:>10.3f} {:>10.3f} {:>10.3f} {:>10.3f} {:>7} {:>10.1f} "
                   "{:>6.1f}\n",
                   name_of(run.policy), 100 * score.utilisation, score.jain_p50, score.jain_p5,
                   score.jain_full_p50, score.jain_full_p5, score.evictions, score.lost_gpu_hours,
                   run.seconds);
  }
  fmt::format_to(std::back_inserter(out), "\n{:<17} {:<5} {:>6} {:>9} {:>9} {:>9} {:>9}\n",
                 "hours in line", "GPUs", "jobs", "mean", "p50", "p99", "most");
  for (const QueueRun& run : runs) {
    for (size_t c = 0; c < kSizeNames.size(); ++c) {
      const WaitScore& wait = run.score.waits[c];
      fmt::format_to(
          std::back_inserter(out), "{:<17} {:<5} {:>6} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}\n",
          c == 0 ? name_of(run.policy) : "", kSizeNames[c], wait.jobs, wait.mean_s / kHour,
          wait.p50_s / kHour, wait.p99_s / kHour, wait.max_s / kHour);
    }
  }
  return out;
}

json::Value queue_json(const std::vector<QueueRun>& runs) {
  json::Value list = json::Value::array();
  for (const QueueRun& run : runs) {
    const QueueScore& score = run.score;
    list.push_back(json::Value::object({{"policy", name_of(run.policy)},
                                        {"jobs", score.jobs},
                                        {"utilisation", score.utilisation},
                                        {"occupied", score.occupied},
                                        {"waits", waits_json(score)},
                                        {"jain_mean", score.jain_mean},
                                        {"jain_p50", score.jain_p50},
                                        {"jain_p5", score.jain_p5},
                                        {"hours", score.hours},
                                        {"jain_full_p50", score.jain_full_p50},
                                        {"jain_full_p5", score.jain_full_p5},
                                        {"full_hours", score.full_hours},
                                        {"evictions", score.evictions},
                                        {"lost_gpu_hours", score.lost_gpu_hours},
                                        {"makespan_s", score.makespan_s},
                                        {"cycles", static_cast<int64_t>(score.cycles)},
                                        {"digest", fmt::format("{:016x}", score.digest)},
                                        {"seconds", run.seconds}}));
  }
  return json::Value::object({{"runs", list}});
}

}  // namespace tessera::sim
