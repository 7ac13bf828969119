// One gang being placed: tentative places in the model and in every planned future that it could delay, kept or undone
// together.
//
// Shape:   place() one member after the other; keep() or let go. Charges of the gang's own queues count while it is tried.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "scheduler/queueing/engine.h"

namespace tessera::scheduler::queueing {

// The cluster at the planned start of a gang, with that gang in it; or at the start of reservations, without a gang.
struct Future {
  base::Time at{};
  GangId gang{};
  core::Cluster cluster;
  Kept kept;
};

class Trial {
 public:
  Trial(Engine& engine, std::vector<std::unique_ptr<Future>>& futures, GangId gang, base::Time now);

  // Finds a place for the member and takes it. Where there is none the reason is in wait().
  bool place(MemberId member);
  // The limits of the gang's queues with `amounts` more; the first that does not hold is in wait().
  bool within_limits(const Amounts& amounts);
  const Totals& charged() const { return charged_; }
  // What a queue would use if those evicted in this trial were gone.
  int64_t used(QueueId queue, Dim dim) const;
  void freed(const Gang& gang, const Amounts& amounts, int sign);
  core::Txn& txn() { return txn_; }
  Wait& wait() { return wait_; }
  GangId gang() const { return gang_; }
  const std::vector<std::pair<MemberId, core::PodId>>& placed() const { return placed_; }
  // Undoes all.
  void restart();
  void keep();

 private:
  void lift();
  Wait misfit(MemberId member, const core::PodRequest& request);
  std::shared_ptr<const core::PodRequest> within_models(const MemberSpec& spec);
  std::optional<core::Placement> find(const core::PodRequest& request);
  // Beside the reservations that begin while it runs, and beside the gangs planned to.
  bool fits_reservations(core::NodeId node, const core::Shape& shape) const;
  bool fits_gangs(core::NodeId node, const core::Shape& shape) const;
  bool fits_futures(core::NodeId node, const core::Shape& shape) const {
    return fits_reservations(node, shape) && fits_gangs(node, shape);
  }
  bool within_held(core::NodeId node, const core::Shape& shape) const;

  Engine& engine_;
  GangId gang_;
  QueueId leaf_;
  core::Txn txn_;
  std::vector<Future*> futures_;  // those the gang would still run in
  std::vector<std::unique_ptr<core::Txn>> future_txns_;
  std::vector<std::pair<MemberId, core::PodId>> placed_;
  Totals charged_;
  std::unordered_map<int32_t, Totals> freed_;  // by queue
  Wait wait_;
};

// How long the gang may run; nothing: for ever.
std::optional<base::Duration> runtime_of(const Engine& engine, const Gang& gang);
// How long one that has run for so long is likely to run in all, where it has no time limit: who runs over its estimate is
// expected to take twice as long.
std::optional<base::Duration> estimate_of(const Engine& engine, const Gang& gang,
                                          base::Duration elapsed);

}  // namespace tessera::scheduler::queueing
