// The typical pods: the mix of shapes that the next pods are expected to have, against which
// fragmentation is measured.
//
// Shape:   groups of (cpu, milli per GPU, GPUs, models) with a weight; memory is not part of it.
//          The set keeps the most frequent groups until they cover 95 % of the pods; ties go to the
//          larger tuple.
// Units:   weights are counts of pods, so that every sum over the mix is an exact integer.
// Source:  Weng et al., "Beware of Fragmentation", USENIX ATC 2023, section 4, and its simulator's
//          defaults.
#pragma once

#include <compare>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "scheduler/core/request.h"

namespace tessera::scheduler::core {

struct TypicalPod {
  int64_t cpu_milli = 0;
  int32_t gpu_milli = 0;
  int32_t gpus = 0;
  std::vector<ModelId> models;  // sorted; empty: any
  int64_t weight = 0;
  auto operator<=>(const TypicalPod&) const = default;
};

struct TypicalMix {
  std::vector<TypicalPod> pods;
  int64_t weight_total = 0;
};

// Counts arrivals by group and draws the mix from them.
class ArrivalCounts {
 public:
  void add(const Shape& shape);
  int64_t arrivals() const { return arrivals_; }
  TypicalMix mix(int coverage_percent = 95) const;
  // Halves every count, so that a change of the workload shows within a few refreshes.
  void decay();

 private:
  struct Hash {
    size_t operator()(const TypicalPod& pod) const noexcept;
  };
  std::unordered_map<TypicalPod, int64_t, Hash> counts_;  // keys have weight 0
  int64_t arrivals_ = 0;
};

}  // namespace tessera::scheduler::core
