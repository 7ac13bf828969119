// A job as the queues see it: pods that start together or not at all. A pod of its own is a gang of one.
//
// Shape:   members belong to a sub-group (0 where there are none). A gang starts when min_members of it, and of each sub-group
//          its own minimum, have a place at the same time; what it has beyond that comes and goes one by one.
// Units:   as in amounts.h; times are handed in.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "scheduler/core/node.h"
#include "scheduler/core/request.h"
#include "scheduler/queueing/amounts.h"
#include "scheduler/queueing/queue_tree.h"

namespace tessera::scheduler::queueing {

using GangId = base::Id<struct GangTag>;
using MemberId = base::Id<struct MemberTag>;
using BudgetId = base::Id<struct BudgetTag>;

struct GangSpec {
  std::string name{};   // "namespace/name", for messages
  std::string queue{};  // by name
  int32_t priority = 0;
  base::Time created{};  // first come, first served among equals
  int32_t min_members = 1;
  std::vector<int32_t> subgroup_mins{};  // empty: one sub-group without a minimum of its own
  // Counted from the start of each member; nothing: the queue's default, or for ever.
  std::optional<base::Duration> runtime{};
  // How long it is likely to run, where nobody says how long it may: good for plans, not for promises.
  std::optional<base::Duration> estimate{};
  bool preempts = true;      // may evict others
  bool preemptible = true;   // may be evicted
  bool evict_whole = false;  // even its members beyond the minimum never go alone
  std::string
      hold{};  // not to start before this is mended: a sentence; empty where nothing is wrong
  bool operator==(const GangSpec&) const = default;
};

struct MemberSpec {
  std::shared_ptr<const core::PodRequest> request{};
  // What it takes from its queue. GPUs of the node's model are added when it has a place.
  Amounts amounts{};
  int32_t subgroup = 0;
  std::vector<BudgetId> budgets{};  // disruption budgets that cover it
};

enum class MemberState : uint8_t {
  kWaiting,
  kClaimed,  // its place is decided, but those who hold it have not gone yet
  kPlaced,   // bound, or told to be
  kLeaving,  // evicted, still there
};

}  // namespace tessera::scheduler::queueing
