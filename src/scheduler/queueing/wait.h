// Why a gang waits: the first thing that binds it, and what would have to change.
//
// Shape:   one Wait a gang, written by each cycle that looked at it; engine.h makes the sentence.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "scheduler/queueing/gang.h"

namespace tessera::scheduler::queueing {

enum class WaitReason : uint8_t {
  kNone,      // not looked at yet, or it does not wait
  kHeld,      // GangSpec::hold says what is wrong with the gang itself
  kNoQueue,   // the queue does not exist
  kClosed,    // the queue is closed, or its definition makes no sense
  kNotLeaf,   // the queue has queues under it
  kMembers,   // fewer pods exist than must start together
  kLimit,     // a queue's limit
  kBehind,    // strict first in, first out: another goes first
  kReserved,  // it would delay one that has a planned start, or take what a reservation holds
  kCapacity,  // no room; Engine::why tells whether an empty cluster would have some
  kClaim,     // others are leaving for it
};
std::string_view name_of(WaitReason reason);

struct Wait {
  WaitReason reason = WaitReason::kNone;
  QueueId queue{};   // kLimit: whose limit; kBehind: which queue
  GangId gang{};     // kBehind, kReserved: which gang goes first
  Dim dim = 0;       // kLimit: of what
  int64_t need = 0;  // kLimit: asked; kMembers: minimum
  int64_t have =
      0;  // kLimit: room; kMembers: members that exist; kCapacity: members that would fit
  MemberId member{};          // kCapacity: the first that found no place
  std::string reservation{};  // kReserved: whose capacity it would take, where not a gang's
  std::optional<base::Time> planned_start{};
  bool estimated = false;  // planned_start holds only if others end when they are expected to
  std::vector<core::NodeId> planned_nodes{};  // sorted
  bool operator==(const Wait&) const = default;
};

}  // namespace tessera::scheduler::queueing
