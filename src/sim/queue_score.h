// What a replay of the queues is judged by: use of the GPUs, waits by size, fairness by the hour, work lost.
//
// Shape:   the replay tells of every stretch of time in which nothing changes, hours being boundaries; finish() sums up.
//          Waits: all the time a job stood in line, after evictions too. Use is counted until the last arrival, and without the
//          work that was lost. Fairness: Jain's index, hour by hour, of what each tenant that wanted anything received over
//          what it was entitled to: its max-min share of all GPUs by weight, by what it wanted in that hour.
// Units:   seconds, GPUs, GPU-hours.
// Source:  Jain, Chiu and Hawe 1984.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::sim {

inline constexpr std::array<std::string_view, 5> kSizeNames = {"all", "1", "2-7", "8", "16+"};

struct WaitScore {
  int64_t jobs = 0;
  double mean_s = 0;
  double p50_s = 0;
  double p99_s = 0;
  double max_s = 0;
};

struct QueueScore {
  int64_t jobs = 0;
  double utilisation = 0;  // kept work over all GPUs until the last arrival
  double occupied = 0;     // the same with what was lost
  std::array<WaitScore, kSizeNames.size()> waits{};
  double jain_mean = 0;
  double jain_p50 = 0;
  double jain_p5 = 0;
  int64_t hours = 0;         // with at least two tenants that wanted something
  double jain_full_p50 = 0;  // over hours in which more was wanted than there is
  double jain_full_p5 = 0;
  int64_t full_hours = 0;
  int64_t evictions = 0;
  double lost_gpu_hours = 0;
  double makespan_s = 0;
  uint64_t cycles = 0;
  uint64_t digest = 0;  // of every start, end and eviction
};

// The max-min fair division of `pot` by weight.
std::vector<double> max_min_shares(double pot, const std::vector<double>& wanted,
                                   const std::vector<int64_t>& weights);
// 1 where all are equal (or none is there), 1/n where one has it all.
double jain_index(const std::vector<double>& values);
// The value below which a part of the sorted values lies (nearest rank); 0 where there are none.
double quantile(const std::vector<double>& sorted, double part);

class QueueMeter {
 public:
  // Weights by tenant, positive; use is counted until `window_s`.
  QueueMeter(int64_t gpus, std::vector<int64_t> weights, int64_t window_s)
      : gpus_(gpus),
        window_s_(window_s),
        weights_(std::move(weights)),
        received_(weights_.size(), 0),
        wanted_(weights_.size(), 0) {}

  // From then until `until_s`, which is not past the next full hour, each tenant ran and waited for so many GPUs.
  void stretch(int64_t until_s, const std::vector<int64_t>& running,
               const std::vector<int64_t>& waiting);
  void lost(int64_t at_s, int64_t gpu_seconds);
  void finished(int32_t gpus, int64_t waited_s);
  void note(uint64_t what, uint64_t job, int64_t at_s);
  QueueScore finish();

 private:
  void close_hour();

  int64_t gpus_;
  int64_t window_s_;
  std::vector<int64_t> weights_;
  int64_t at_s_ = 0;
  std::vector<double> received_;
  std::vector<double> wanted_;
  double used_ = 0;
  double lost_in_window_ = 0;
  double lost_ = 0;
  std::vector<double> jain_;
  std::vector<double> jain_full_;
  std::array<std::vector<double>, kSizeNames.size()> waits_{};
  QueueScore score_{};
};

}  // namespace tessera::sim
