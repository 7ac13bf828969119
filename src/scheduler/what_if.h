// What would become of a cluster if: more nodes, fewer, other quotas, pods gone, new jobs. Decided by the Model, on a copy.
//
// Shape:   what_if() lets the cluster of a Snapshot come to rest twice, once as it is and once with the changes, and tells
//          the difference. At rest: nobody can be placed and nobody is to leave. What is bound counts as running, what is
//          evicted or is being deleted as gone; where a controller would make another pod in the place of one evicted, that
//          one waits. Time stands still at `now`: nothing ends while it is looked at.
// Errors:  kInvalid or kNotFound, naming the option or manifest and the mend.
// Threads: pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/snapshot.h"
#include "scheduler/verdict.h"

namespace tessera::scheduler {

struct AddNodes {
  int64_t count = 0;
  std::string
      from{};  // a node like which they are; empty: as below, else as the one with the most GPUs
  std::string model{};  // "H200"
  int64_t gpus = 8;
};
// "2", "2:gpu-7", "2:model=H200,gpus=8".
base::Result<AddNodes> parse_add_nodes(std::string_view text);

struct SetAmounts {
  std::string queue{};
  std::vector<std::pair<std::string, std::string>> amounts{};  // {"gpu", "8"}
};
// "research=gpu:8,cpu:64".
base::Result<SetAmounts> parse_set_amounts(std::string_view text);

struct Changes {
  std::string ns = "default";            // of what is named without one
  std::vector<json::Value> manifests{};  // to be created
  std::vector<AddNodes> add_nodes{};
  std::vector<SetAmounts> quotas{};
  std::vector<std::string> evict{};  // pods, groups, owners: "name" or "namespace/name"
  std::vector<std::string> drain{};  // nodes
};

struct PlannedPod {
  std::string pod{};
  std::string node{};
  std::string gpus{};  // "0,3"
  bool operator==(const PlannedPod&) const = default;
};

struct PlannedJob {
  std::string title{};
  std::vector<PlannedPod> placed{};
  std::vector<std::string> waiting{};   // pods
  std::vector<Verdict> verdicts{};      // of those that wait, each sentence once
  std::vector<std::string> problems{};  // why no verdict can be given
};

struct PlannedEviction {
  std::string pod{};
  std::string node{};
  std::string reason{};  // "Preempted", "Reclaimed", "GangBroken"; "Asked" for what the changes say
  std::string why{};
  std::string
      then{};  // the node of the pod that comes in its place; empty: it waits, or none comes
  bool comes_back = false;
};

struct PlannedEffect {
  std::string pod{};
  std::string node{};  // where it starts, or where it would be without the changes
  std::string why{};   // why it waits
};

struct WhatIfAnswer {
  std::vector<PlannedJob> jobs{};
  std::vector<PlannedEviction> evictions{};
  std::vector<PlannedEffect> start{};  // others that start only with the changes
  std::vector<PlannedEffect> wait{};   // others that wait only with the changes
  std::vector<std::string> notes{};
};

struct WhatIfOptions {
  ModelOptions model{};
  base::Time now{};
  bool evictions = true;  // off: the scheduler evicts nobody
};

base::Result<WhatIfAnswer> what_if(const Snapshot& snapshot, const Changes& changes,
                                   const WhatIfOptions& options);

json::Value to_json(const WhatIfAnswer& answer);
std::string to_text(const WhatIfAnswer& answer);

}  // namespace tessera::scheduler
