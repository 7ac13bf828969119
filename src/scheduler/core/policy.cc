#include "scheduler/core/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scheduler/core/search.h"

namespace tessera::scheduler::core {
namespace {

// The largest node of the published traces: what the vector policies scale by.
constexpr int64_t kCpuScale = 128'000;
constexpr int64_t kGpuScale = 8'000;
constexpr int64_t kPointsMax = 100;
constexpr int64_t kCpuMax = 1'000'000'000;  // keeps products within 64 bits

struct Named {
  std::string_view name;
  Policy policy;
};
constexpr std::array<Named, 6> kNames = {{{"random", Policy::kRandom},
                                          {"dotprod", Policy::kDotProd},
                                          {"clustering", Policy::kGpuClustering},
                                          {"packing", Policy::kGpuPacking},
                                          {"bestfit", Policy::kBestFit},
                                          {"fgd", Policy::kFgd}}};

constexpr int64_t floor_div(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

int64_t total_milli(const NodeLoad& node, const Shape& shape) {
  return shape.gpu.count * milli_on(node, shape.gpu);
}

// 100 (1 - (cpu_left cpu / scale^2 + gpu_left gpu / scale^2) / 2): the less aligned, the better.
int32_t dot_product(const NodeLoad& node, const Shape& shape) {
  constexpr int64_t kRatio = (kCpuScale / kGpuScale) * (kCpuScale / kGpuScale);
  constexpr int64_t kWhole = kCpuScale * kCpuScale;
  int64_t dot = std::min(node.cpu_free, kCpuMax) * std::min(shape.cpu_milli, kCpuMax) +
                kRatio * node.gpu_free_total * total_milli(node, shape);
  dot = std::min(dot, kAmountMax / kPointsMax);
  int64_t points = floor_div(2 * kPointsMax * kWhole - kPointsMax * dot, 2 * kWhole);
  return static_cast<int32_t>(std::max<int64_t>(points, -1'000'000'000));
}

// 100 (1 - (cpu_left_after / scale + gpu_left_after / scale) / 2): the fuller, the better.
// Stretching the scores of the candidates to 0..100, as published, changes no winner, so it is left
// out.
int32_t best_fit(const NodeLoad& node, const Shape& shape) {
  int64_t cpu_left = std::min(node.cpu_free - shape.cpu_milli, kCpuMax);
  int64_t gpu_left = node.gpu_free_total - total_milli(node, shape);
  int64_t left = cpu_left + gpu_left * (kCpuScale / kGpuScale);
  return static_cast<int32_t>(floor_div(kPointsMax * (2 * kCpuScale - left), 2 * kCpuScale));
}

// Nodes that host only this class of pod first, then mixed ones, then idle ones.
int32_t clustering(const NodeLoad& node, const Shape& shape) {
  uint32_t mine = class_of(shape.gpu);
  if (mine == 0) return 0;
  int64_t used = std::max<int64_t>(0, kGpuScale - node.gpu_free_total);
  int32_t base = static_cast<int32_t>(25 * used / kGpuScale);
  if ((node.classes & mine) != 0) return base + (node.classes == mine ? 75 : 50);
  return node.classes == 0 ? base + 25 : base;
}

// Devices already shared first, then idle devices of a used node, then an idle node.
int32_t packing(const NodeLoad& node, const Shape& shape, uint32_t devices) {
  if (shape.gpu.count == 0) return 0;
  int32_t idle = __builtin_popcount(node.gpu_idle);
  if (idle == node.gpus) return std::max(33 - idle, idle);
  int32_t idle_taken = __builtin_popcount(node.gpu_idle & devices);
  if (idle_taken > 0) return std::max(50 - idle_taken, 33);
  int32_t percent_free = 0;
  for (uint32_t rest = devices; rest != 0; rest &= rest - 1) {
    percent_free += node.gpu_free[static_cast<size_t>(__builtin_ctz(rest))] * 100 / kMilliPerGpu;
  }
  return std::max(100 - percent_free / 10, 50);
}

TypicalMix with_default(TypicalMix mix) {
  if (mix.weight_total > 0) return mix;
  return {{{.cpu_milli = 0, .gpu_milli = kMilliPerGpu, .gpus = 1, .models = {}, .weight = 1}}, 1};
}

int64_t points_at(int64_t saved, int64_t weight_total) {
  double gpus = static_cast<double>(saved) / static_cast<double>(weight_total) / 1000.0;
  return static_cast<int64_t>(100.0 * (1.0 / (1.0 + std::exp(-gpus))));
}

}  // namespace

base::Result<Policy> parse_policy(std::string_view name) {
  std::string known;
  for (const Named& named : kNames) {
    if (named.name == name) return named.policy;
    known += known.empty() ? "" : ", ";
    known += named.name;
  }
  return base::error(base::Code::kInvalid, "unknown policy \"{}\": choose from {}", name, known);
}

std::string_view name_of(Policy policy) {
  return kNames[static_cast<size_t>(policy)].name;
}

std::vector<Policy> all_policies() {
  std::vector<Policy> all;
  for (const Named& named : kNames) all.push_back(named.policy);
  return all;
}

uint32_t lowest_idle(const NodeLoad& node, int64_t count) {
  uint32_t chosen = 0;
  for (uint32_t rest = node.gpu_idle; rest != 0 && count > 0; rest &= rest - 1, --count) {
    chosen |= rest & (~rest + 1);
  }
  return chosen;
}

uint32_t tightest_fit(const NodeLoad& node, int64_t count, int32_t milli) {
  uint32_t chosen = 0;
  for (; count > 0; --count) {
    int best = -1;
    for (int g = 0; g < node.gpus; ++g) {
      int free = node.gpu_free[static_cast<size_t>(g)];
      if (free < milli || (chosen >> g & 1) != 0) continue;
      if (best < 0 || free < node.gpu_free[static_cast<size_t>(best)]) best = g;
    }
    if (best < 0) break;
    chosen |= uint32_t{1} << best;
  }
  return chosen;
}

Scorer::Scorer(Policy policy, TypicalMix mix)
    : policy_(policy), meter_(with_default(std::move(mix))) {
  // exp() is asked only here: at run time a saving is compared with integers.
  for (int64_t points = 1; points <= kPointsMax; ++points) {
    int64_t low = -64'000 * meter_.weight_total();
    int64_t high = -low;
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (points_at(middle, meter_.weight_total()) >= points) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    fgd_steps_.push_back(low);
  }
}

int32_t Scorer::fgd_points(int64_t saved) const {
  return static_cast<int32_t>(count_not_above(fgd_steps_, saved));
}

Scorer::Choice Scorer::fgd(const NodeLoad& node, const Shape& shape, int64_t before) const {
  int32_t milli = milli_on(node, shape.gpu);
  if (shape.gpu.count != 1 || milli == kMilliPerGpu) {
    uint32_t devices = milli == kMilliPerGpu ? lowest_idle(node, shape.gpu.count)
                                             : tightest_fit(node, shape.gpu.count, milli);
    return {fgd_points(before - meter_.after(node, shape.cpu_milli, devices, milli)), devices};
  }
  Choice best;
  std::array<int16_t, kGpusPerNodeMax> tried;
  size_t tries = 0;
  for (size_t g = 0; g < node.gpus; ++g) {
    int16_t free = node.gpu_free[g];
    if (free < milli) continue;
    // A device as idle as an earlier one scores the same and comes later.
    if (std::find(tried.begin(), tried.begin() + static_cast<std::ptrdiff_t>(tries), free) !=
        tried.begin() + static_cast<std::ptrdiff_t>(tries)) {
      continue;
    }
    tried[tries++] = free;
    uint32_t device = uint32_t{1} << g;
    int32_t points = fgd_points(before - meter_.after(node, shape.cpu_milli, device, milli));
    if (best.devices == 0 || points > best.score) best = {points, device};
  }
  return best;
}

int32_t Scorer::score(const NodeLoad& node, NodeId slot, const Shape& shape) const {
  switch (policy_) {
    case Policy::kRandom:
      return 0;
    case Policy::kDotProd:
      return dot_product(node, shape);
    case Policy::kGpuClustering:
      return clustering(node, shape);
    case Policy::kGpuPacking:
      return packing(node, shape, choose(node, shape));
    case Policy::kBestFit:
      return best_fit(node, shape);
    case Policy::kFgd:
      return fgd(node, shape, meter_.of(node, slot)).score;
  }
  return 0;
}

uint32_t Scorer::choose(const NodeLoad& node, const Shape& shape) const {
  if (shape.gpu.count == 0) return 0;
  if (policy_ == Policy::kFgd) return fgd(node, shape, meter_.of(node)).devices;
  int32_t milli = milli_on(node, shape.gpu);
  return milli == kMilliPerGpu ? lowest_idle(node, shape.gpu.count)
                               : tightest_fit(node, shape.gpu.count, milli);
}

uint32_t Scorer::choose_random(const NodeLoad& node, const Shape& shape,
                               base::Random& random) const {
  int32_t milli = milli_on(node, shape.gpu);
  if (shape.gpu.count != 1 || milli == kMilliPerGpu) return choose(node, shape);
  uint32_t chosen = 0;
  uint64_t seen = 0;
  for (size_t g = 0; g < node.gpus; ++g) {
    if (node.gpu_free[g] < milli) continue;
    if (random.below(++seen) == 0) chosen = uint32_t{1} << g;
  }
  return chosen;
}

}  // namespace tessera::scheduler::core
