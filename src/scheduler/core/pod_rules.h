// The rules between pods, for one decision: required affinity and anti-affinity (its own and that
// of pods already placed), topology spread.
//
// Shape:   built once for a request from the counts that the cluster keeps, then asked for each
//          node that fits.
// Source:  kube-scheduler 1.36, InterPodAffinity and PodTopologySpread (node affinity honoured,
//          taints ignored).
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "scheduler/core/filter.h"

namespace tessera::scheduler::core {

class PodRules {
 public:
  PodRules(const Cluster& cluster, const PodRequest& request);

  bool none() const { return none_; }
  Reason check(NodeId node) const;
  // Up to 200 points for the least crowded domain of ScheduleAnyway spreads, 0 where there are
  // none.
  int32_t points(NodeId node) const;

 private:
  using Counts = std::shared_ptr<const TermCounts>;
  struct Spread {
    Counts counts;
    int32_t max_skew = 1;
    int32_t self = 0;
    int32_t least = 0;  // pods in the emptiest domain the pod could use
    int32_t most = 0;
  };

  Spread make_spread(const SpreadRule& rule, const PodRequest& request) const;
  bool skewed(const Spread& spread, StringId domain) const;

  const Cluster& cluster_;
  bool none_ = true;
  std::vector<Counts> forbidden_by_others_;
  std::vector<Counts> anti_affinity_;
  std::vector<Counts> affinity_;
  bool first_of_its_kind_ = false;
  std::vector<Spread> required_spread_;
  std::vector<Spread> wanted_spread_;
};

}  // namespace tessera::scheduler::core
