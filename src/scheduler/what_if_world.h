// Inside of what_if.h: a cluster that is nowhere, with its Model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/what_if.h"

namespace tessera::scheduler {

// A cluster that has decided nothing new after so many cycles is not expected to.
inline constexpr int kRoundsMax = 1000;

class WhatIfWorld {
 public:
  WhatIfWorld(const Snapshot& snapshot, const WhatIfOptions& options);

  void put(const kube::Object& object);
  kube::Object find(std::string_view group, std::string_view kind, std::string_view ns,
                    std::string_view name) const;
  // Gone, and another in its place where it has a controller that makes one.
  void evict(const std::string& pod, std::string_view reason, std::string why);
  // Gone for good.
  void remove(const std::string& pod);
  // Until nothing more happens. False: it does not come to rest.
  bool settle();

  // By "namespace/name"; no finished ones.
  const Objects& pods() const { return pods_; }
  const Objects& nodes() const { return volumes_.nodes; }
  std::string node_of(const std::string& pod) const;
  const Model& model() const { return model_; }
  const std::vector<PlannedEviction>& evictions() const { return evictions_; }
  base::Time now() const { return options_.now; }
  std::vector<kube::Object> priority_classes() const;

 private:
  void bind(const BindDecision& decision);

  WhatIfOptions options_;
  VolumeObjects volumes_{};
  Model model_;
  Objects pods_{};
  std::vector<PlannedEviction> evictions_{};
  int64_t made_ = 0;
};

// Nodes that come, queues that change, pods that leave.
base::Status apply(const Changes& changes, WhatIfWorld& world, std::vector<std::string>& notes);

}  // namespace tessera::scheduler
