// The placement policies: which of the nodes that can hold a pod is best, and which of its devices.
//
// Shape:   six policies by name: random, dotprod, clustering, packing, bestfit, fgd. A score is a
//          small integer, higher is better; among equal scores the first node wins. Whole GPUs are
//          taken lowest index first, shares by the policy (fgd: where fragmentation grows least;
//          the others: the fullest device that still fits).
// Units:   scores are points; FGD's are floor(100 / (1 + exp(-dF))) with dF the idle GPUs saved
//          from fragmentation.
// Errors:  parse_policy: kInvalid with the known names.
// Source:  Weng et al., USENIX ATC 2023, section 6 and its simulator: coarse integer scores with a
//          fixed order of nodes do better than exact ones.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "scheduler/core/frag.h"

namespace tessera::scheduler::core {

enum class Policy : uint8_t { kRandom, kDotProd, kGpuClustering, kGpuPacking, kBestFit, kFgd };

base::Result<Policy> parse_policy(std::string_view name);
std::string_view name_of(Policy policy);
std::vector<Policy> all_policies();

inline constexpr int32_t kInfeasible = std::numeric_limits<int32_t>::min();

// The devices that a request gets on a node which can hold it, by the policy-free rule.
uint32_t lowest_idle(const NodeLoad& node, int64_t count);
uint32_t tightest_fit(const NodeLoad& node, int64_t count, int32_t milli);

class Scorer {
 public:
  // For kFgd the mix must hold at least one pod; an empty one is taken as "one whole GPU".
  Scorer(Policy policy, TypicalMix mix);

  Policy policy() const { return policy_; }
  // Points of a node that can hold the request.
  int32_t score(const NodeLoad& node, NodeId slot, const Shape& shape) const;
  uint32_t choose(const NodeLoad& node, const Shape& shape) const;
  // kRandom picks the device of a share by chance.
  uint32_t choose_random(const NodeLoad& node, const Shape& shape, base::Random& random) const;
  const FragMeter& meter() const { return meter_; }

 private:
  struct Choice {
    int32_t score = 0;
    uint32_t devices = 0;
  };
  Choice fgd(const NodeLoad& node, const Shape& shape, int64_t before) const;
  int32_t fgd_points(int64_t saved) const;

  Policy policy_;
  FragMeter meter_;
  std::vector<int64_t> fgd_steps_;  // the least saving that earns 1, 2, ... 100 points
};

}  // namespace tessera::scheduler::core
