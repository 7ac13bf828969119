#include "scheduler/core/typical.h"

#include <algorithm>

namespace tessera::scheduler::core {
namespace {

// The mix stays integer-exact while weight x milli of 16 GPUs x 1000 fits 64 bits with room to
// spare.
constexpr int64_t kArrivalsMax = int64_t{1} << 32;

}  // namespace

size_t ArrivalCounts::Hash::operator()(const TypicalPod& pod) const noexcept {
  uint64_t h =
      core::mix(static_cast<uint64_t>(pod.cpu_milli),
                static_cast<uint64_t>(pod.gpu_milli) * 64 + static_cast<uint64_t>(pod.gpus));
  for (ModelId model : pod.models) h = core::mix(h, static_cast<uint64_t>(model.value));
  return h;
}

void ArrivalCounts::add(const Shape& shape) {
  if (arrivals_ >= kArrivalsMax) decay();
  TypicalPod key;
  key.cpu_milli = shape.cpu_milli;
  key.gpus = static_cast<int32_t>(std::min<int64_t>(shape.gpu.count, kGpusPerNodeMax + 1));
  key.gpu_milli = key.gpus > 0 ? shape.gpu.milli : 0;
  key.models = shape.models;
  ++counts_[std::move(key)];
  ++arrivals_;
}

void ArrivalCounts::decay() {
  arrivals_ = 0;
  for (auto at = counts_.begin(); at != counts_.end();) {
    at->second /= 2;
    arrivals_ += at->second;
    at = at->second == 0 ? counts_.erase(at) : std::next(at);
  }
}

TypicalMix ArrivalCounts::mix(int coverage_percent) const {
  std::vector<TypicalPod> groups;
  groups.reserve(counts_.size());
  for (const auto& [key, count] : counts_) {
    groups.push_back(key);
    groups.back().weight = count;
  }
  std::sort(groups.begin(), groups.end(), [](const TypicalPod& a, const TypicalPod& b) {
    return a.weight != b.weight ? a.weight > b.weight : a > b;
  });
  TypicalMix mix;
  for (TypicalPod& group : groups) {
    if (mix.weight_total * 100 >= arrivals_ * coverage_percent) break;
    mix.weight_total += group.weight;
    mix.pods.push_back(std::move(group));
  }
  return mix;
}

}  // namespace tessera::scheduler::core
