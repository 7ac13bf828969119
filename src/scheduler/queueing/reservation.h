// Capacity that is kept for one queue, and those under it, during a span of time.
//
// Shape:   until `start` a reservation is a Future that nobody else's job may run into; from then on, for `duration`, what it
//          holds of its nodes is open to its own queue's jobs only. Each cycle chooses the nodes anew and comes to the same
//          choice unless one fails or a busy one can be left for a free one. Nobody is evicted for it.
// Units:   amounts as in amounts.h; a Room in thousandths of GPUs and cores, and bytes.
// Errors:  what cannot be kept is Refused or Pending, with the reason.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/core/node.h"
#include "scheduler/queueing/amounts.h"
#include "scheduler/queueing/queue_tree.h"

namespace tessera::scheduler::queueing {

struct ReservationSpec {
  std::string name{};
  std::string queue{};  // by name
  Amounts amounts{};
  base::Time start{};
  base::Duration duration{};
  std::vector<std::string> nodes{};  // where it was kept before, as its status says
  std::string problem{};             // found by whoever read it; refused where not empty
  base::Time end() const { return start + duration; }
  bool operator==(const ReservationSpec&) const = default;
};

// A part of one node.
struct Room {
  int64_t gpu_milli = 0;
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  std::map<core::ResourceId, int64_t> extended{};

  void add(const Room& other, int sign);
  // Takes from both what is in both.
  void cancel(Room& other);
  bool empty() const;
  bool holds(const Room& other) const;
};
// What a pod of that shape takes of a node.
Room room_of(const core::Shape& shape, const core::NodeLoad& load);

enum class ReservationPhase : uint8_t {
  kPending,  // no place is found, or not all of it
  kPlanned,
  kActive,
  kEnded,
  kRefused,  // the cluster can never give so much
};
std::string_view name_of(ReservationPhase phase);

struct Reservation {
  ReservationSpec spec{};
  QueueId queue{};  // invalid where it does not exist
  ReservationPhase phase = ReservationPhase::kPending;
  std::string reason{};   // one word
  std::string message{};  // one sentence
  std::map<core::NodeId, Room> held{};

  bool in_force(base::Time at) const { return spec.start <= at && at < spec.end(); }
  bool touches(base::Time from, base::Time to) const {
    return spec.start < to && from < spec.end();
  }
};

}  // namespace tessera::scheduler::queueing
