#include "sim/queue_score.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tessera::sim {
namespace {

constexpr int64_t kHour = 3600;

size_t size_class(int32_t gpus) {
  if (gpus >= 16) return 4;
  if (gpus >= 8) return 3;
  return gpus >= 2 ? 2 : 1;
}

WaitScore wait_score(std::vector<double>& waits) {
  WaitScore score;
  score.jobs = static_cast<int64_t>(waits.size());
  if (waits.empty()) return score;
  std::sort(waits.begin(), waits.end());
  score.mean_s =
      std::accumulate(waits.begin(), waits.end(), 0.0) / static_cast<double>(waits.size());
  score.p50_s = quantile(waits, 0.5);
  score.p99_s = quantile(waits, 0.99);
  score.max_s = waits.back();
  return score;
}

}  // namespace

std::vector<double> max_min_shares(double pot, const std::vector<double>& wanted,
                                   const std::vector<int64_t>& weights) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto weight = [&](size_t i) { return static_cast<double>(weights[i]); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return wanted[a] / weight(a) < wanted[b] / weight(b);
  });
  double weights_left = 0;
  for (size_t i : order) weights_left += weight(i);
  std::vector<double> shares(wanted.size(), 0);
  for (size_t i : order) {
    shares[i] = std::min(pot * weight(i) / weights_left, wanted[i]);
    pot -= shares[i];
    weights_left -= weight(i);
  }
  return shares;
}

double jain_index(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (double value : values) {
    sum += value;
    squares += value * value;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(values.size()) * squares) : 1;
}

double quantile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

void QueueMeter::stretch(int64_t until_s, const std::vector<int64_t>& running,
                         const std::vector<int64_t>& waiting) {
  const auto seconds = static_cast<double>(until_s - at_s_);
  if (seconds <= 0) return;
  const auto counted =
      static_cast<double>(std::max<int64_t>(0, std::min(until_s, window_s_) - at_s_));
  for (size_t t = 0; t < running.size(); ++t) {
    received_[t] += static_cast<double>(running[t]) * seconds;
    wanted_[t] += static_cast<double>(running[t] + waiting[t]) * seconds;
    used_ += static_cast<double>(running[t]) * counted;
  }
  at_s_ = until_s;
  if (until_s % kHour == 0) close_hour();
}

void QueueMeter::close_hour() {
  const double pot = static_cast<double>(gpus_) * kHour;
  if (at_s_ <= window_s_) {
    const std::vector<double> entitled = max_min_shares(pot, wanted_, weights_);
    std::vector<double> ratios;
    for (size_t t = 0; t < wanted_.size(); ++t) {
      if (wanted_[t] > 0) ratios.push_back(received_[t] / entitled[t]);
    }
    if (ratios.size() >= 2) {
      jain_.push_back(jain_index(ratios));
      if (std::accumulate(wanted_.begin(), wanted_.end(), 0.0) > pot)
        jain_full_.push_back(jain_.back());
    }
  }
  std::fill(received_.begin(), received_.end(), 0);
  std::fill(wanted_.begin(), wanted_.end(), 0);
}

void QueueMeter::lost(int64_t at_s, int64_t gpu_seconds) {
  ++score_.evictions;
  lost_ += static_cast<double>(gpu_seconds);
  if (at_s <= window_s_) lost_in_window_ += static_cast<double>(gpu_seconds);
}

void QueueMeter::finished(int32_t gpus, int64_t waited_s) {
  ++score_.jobs;
  waits_[0].push_back(static_cast<double>(waited_s));
  waits_[size_class(gpus)].push_back(static_cast<double>(waited_s));
}

void QueueMeter::note(uint64_t what, uint64_t job, int64_t at_s) {
  for (uint64_t word : {what, job, static_cast<uint64_t>(at_s)}) {
    uint64_t x = (score_.digest ^ word) * 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
    score_.digest = x ^ (x >> 32);
  }
}

QueueScore QueueMeter::finish() {
  const double all = static_cast<double>(gpus_) * static_cast<double>(window_s_);
  if (all > 0) {
    score_.occupied = used_ / all;
    score_.utilisation = (used_ - lost_in_window_) / all;
  }
  for (size_t c = 0; c < waits_.size(); ++c) score_.waits[c] = wait_score(waits_[c]);
  std::sort(jain_.begin(), jain_.end());
  std::sort(jain_full_.begin(), jain_full_.end());
  score_.hours = static_cast<int64_t>(jain_.size());
  score_.full_hours = static_cast<int64_t>(jain_full_.size());
  if (!jain_.empty()) {
    score_.jain_mean =
        std::accumulate(jain_.begin(), jain_.end(), 0.0) / static_cast<double>(jain_.size());
  }
  score_.jain_p50 = quantile(jain_, 0.5);
  score_.jain_p5 = quantile(jain_, 0.05);
  score_.jain_full_p50 = quantile(jain_full_, 0.5);
  score_.jain_full_p5 = quantile(jain_full_, 0.05);
  score_.lost_gpu_hours = lost_ / kHour;
  score_.makespan_s = static_cast<double>(at_s_);
  return score_;
}

}  // namespace tessera::sim
