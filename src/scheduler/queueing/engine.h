// Quota and placement in one: which gang is next, where its members go, and who has to make room for it.
//
// Shape:   the engine owns the cluster's model. The caller tells it of queues, gangs, members and what became of decisions;
//          cycle() decides as much as it can and answers with binds and evictions, which the model shows as done already. A
//          place that is freed for a gang belongs to it from that moment: the model has it there, and its bind is given out
//          when the last of those who held the place has gone. An engine can be copied: a what-if is a copy.
// Units:   as in amounts.h.
// Errors:  none; what makes no sense becomes the Wait of the gang concerned.
// Threads: one (the scheduler's strand). The same calls give the same decisions.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "scheduler/core/scheduler.h"
#include "scheduler/core/txn.h"
#include "scheduler/queueing/gang.h"
#include "scheduler/queueing/kept.h"
#include "scheduler/queueing/queue_tree.h"
#include "scheduler/queueing/reservation.h"
#include "scheduler/queueing/usage.h"
#include "scheduler/queueing/wait.h"

namespace tessera::scheduler::queueing {

struct Bind {
  MemberId member{};
  core::Placement placement{};
};

enum class EvictReason : uint8_t {
  kPreempted,  // by a gang of higher priority in its queue
  kReclaimed,  // by a queue that is below its share
  kBroken,     // its gang stayed below its minimum
};
std::string_view name_of(EvictReason reason);

struct Evict {
  MemberId member{};
  GangId for_gang{};  // invalid for kBroken
  EvictReason reason = EvictReason::kPreempted;
};

struct Plan {
  std::vector<Bind> binds;
  std::vector<Evict> evicts;
};

struct EngineOptions {
  core::SchedulerOptions scheduler{};
  // A gang that lost members and found no place for others is released as a whole after this.
  base::Duration broken_after = base::seconds(60);
  // A place freed for a gang falls back when those who held it have not gone by then.
  base::Duration claim_timeout = base::seconds(300);
  // Waiting gangs, over all queues, that get a planned start in one cycle.
  int32_t reservations_max = 8;
  // Nothing: the past counts nothing.
  std::optional<base::Duration> half_life{};
  // The first in line of any queue that has waited so long since it was created is tried before all turns, the oldest alone,
  // and with a planned start that no other may delay; nothing: never.
  std::optional<base::Duration> patience{};
  // Planned starts by GangSpec::estimate too, marked as such, where that is earlier than by time limits alone.
  bool estimates = true;
  // Off: nobody is made to leave, neither for another nor because its gang stays below its minimum.
  bool evictions = true;
};

struct Gang {
  GangSpec spec{};
  QueueId leaf{};  // invalid where the queue does not exist
  uint64_t seq = 0;
  std::vector<MemberId> members{};
  int32_t placed = 0;  // kClaimed or kPlaced
  int32_t waiting = 0;
  std::vector<int32_t> placed_of{};  // by sub-group
  std::optional<base::Time> broken_since{};
  bool ever_started = false;
  std::vector<MemberId> awaits{};  // those who leave for it
  base::Time claim_until{};
  Wait wait{};
  bool present = false;
};

struct Member {
  GangId gang{};
  MemberSpec spec{};
  MemberState state = MemberState::kWaiting;
  core::PodId pod{};  // its place in the model, where it has one
  core::Placement placement{};
  Amounts charged{};     // spec.amounts and what the node's model adds
  base::Time started{};  // when it was placed
  base::Time saved{};    // its last checkpoint; not before started
  uint64_t shape = 0;    // hash of its request's shape
  bool going = false;    // it ends whatever is decided here
  bool present = false;
};

struct QueueUse {
  Totals used{};
  Totals wanted{};               // what waits
  std::vector<int64_t> share{};  // by Dim, from the last cycle
  int32_t waiting = 0;           // gangs
  DecayedUsage history{};
};

class Engine {
 public:
  explicit Engine(EngineOptions options);
  // From the next cycle on.
  void set_options(EngineOptions options);

  const EngineOptions& options() const { return options_; }
  core::Cluster& cluster() { return cluster_; }
  const core::Cluster& cluster() const { return cluster_; }
  Dims& dims() { return dims_; }
  const Dims& dims() const { return dims_; }

  // Replaces all queues; gangs keep their queue by name, history too.
  void set_queues(std::vector<QueueSpec> specs, base::Time now);
  // Past use of a queue as it stood at that time, from before a restart. Without a half-life nothing happens.
  void restore_history(QueueId id, double unit_seconds, base::Time at, base::Time now);
  const QueueTree& queues() const { return tree_; }
  const QueueUse& use(QueueId id) const { return uses_[static_cast<size_t>(id.value)]; }

  // Replaces all reservations; those of the same name go on holding what they hold.
  void set_reservations(std::vector<ReservationSpec> specs);
  const std::vector<Reservation>& reservations() const { return reservations_; }

  GangId add_gang(GangSpec spec);
  void update_gang(GangId id, GangSpec spec);
  // With all its members; those that had a place give it back.
  void remove_gang(GangId id, base::Time now);

  MemberId add_member(GangId gang, MemberSpec spec);
  // Found running, for instance after a restart.
  MemberId add_running(GangId gang, MemberSpec spec, const core::Placement& placement,
                       base::Time started);
  void set_saved(MemberId id, base::Time saved);
  // Somebody has deleted it, or evicted it before: as a victim it costs nothing, and no budget.
  void set_going(MemberId id) { member_of(id).going = true; }
  // Another request, amounts, sub-group or budgets of one that waits; of one that has a place only budgets count.
  void update_member(MemberId id, MemberSpec spec);
  // The devices that a placed member really has, once they are known.
  void update_devices(MemberId id, uint32_t devices);
  // After all that is there has been told of: gangs with less than their minimum placed, and members enough for it, lost the
  // others while nobody looked. How long nobody did counts for no broken gang.
  void settle_found(base::Time now);
  // Somebody else decides for now: places that were promised and not given out yet fall back.
  void drop_claims(base::Time now);
  // Time goes on without a cycle.
  void look_on(base::Time now) { advance_history(now); }
  // Its eviction was refused for good: it keeps its place, and those who awaited it wait again.
  void stays(MemberId id, base::Time now);
  // Finished, failed, deleted or evicted and gone: gives back what it had.
  void remove_member(MemberId id, base::Time now);
  // Its bind was refused: it waits again.
  void bind_failed(MemberId id, base::Time now);
  // Evictions that a disruption budget allows now.
  void set_budget(BudgetId id, int64_t allowed);

  Plan cycle(base::Time now);
  // Something waits that time alone may change: a claim, a broken gang, a planned start, a reservation.
  bool restless() const {
    return !claims_.empty() || !broken_.empty() || waiting() > 0 || reservations_live();
  }
  int32_t waiting() const { return uses_[0].waiting + static_cast<int32_t>(stray_.size()); }

  const Gang& gang(GangId id) const { return gangs_[static_cast<size_t>(id.value)]; }
  const Member& member(MemberId id) const { return members_[static_cast<size_t>(id.value)]; }
  // One sentence for a gang that waits; empty where it does not.
  std::string why(GangId id) const;
  // Gangs of its queue that would be tried before it.
  size_t position(GangId id) const;
  // Whether all sums agree with the members; the reason where they do not. For tests.
  std::string audit() const;

 private:
  friend class Cycle;
  friend class Trial;
  friend class Victims;
  friend class Backfill;
  friend class ChooseNodes;
  friend class Kept;

  struct Turn {  // the line of one queue: priority, then first come
    int64_t priority_negative = 0;
    base::Time created{};
    uint64_t seq = 0;
    GangId gang{};
    auto operator<=>(const Turn&) const = default;
  };

  Gang& gang_of(GangId id) { return gangs_[static_cast<size_t>(id.value)]; }
  Member& member_of(MemberId id) { return members_[static_cast<size_t>(id.value)]; }
  QueueUse& use_of(QueueId id) { return uses_[static_cast<size_t>(id.value)]; }
  static bool counts_as_placed(const Member& member);
  static int32_t subgroup_in(const Gang& gang, int32_t subgroup);
  Turn turn_of(const Gang& gang, GangId id) const;
  void enlist(GangId id);  // into the lines of its queue, as its members say
  void withdraw(GangId id);
  void relist(GangId id);
  void charge(const Gang& gang, const Amounts& amounts, int sign);
  void want(const Gang& gang, const Amounts& amounts, int sign);
  Dim model_dim(core::ModelId model);
  Amounts wanted_by(const MemberSpec& spec);
  Amounts charged_at(const MemberSpec& spec, core::NodeId node);
  MemberId make_member(GangId gang, MemberSpec spec);
  // The member has this place in the model already.
  void place(MemberId id, core::PodId pod, base::Time now, MemberState state);
  void gain(MemberId id);
  void lose(MemberId id, base::Time now);
  void vacate(MemberId id);
  void wait_again(MemberId id, base::Time now);
  void settle_claims(MemberId gone, base::Time now);
  void drop_claim(GangId id, base::Time now);
  bool awaited_by_other(MemberId id) const;
  void advance_history(base::Time now);
  void seat(MemberId id);  // notes who has the place
  MemberId member_on(core::PodId pod) const;
  bool reservations_live() const;
  // Out of the model already; still there in the cluster.
  void evicted(MemberId id, base::Time now);
  // Those who have been evicted and stand, until they have gone, where a new placement is.
  void await_departing(const core::Placement& place, std::vector<MemberId>& awaits) const;
  // Those who have been evicted and without whose end `more` would bring a queue from `leaf` up beyond its limit.
  void await_limits(QueueId leaf, const Totals& more, std::vector<MemberId>& awaits) const;
  void departed(MemberId id);

  EngineOptions options_;
  core::Cluster cluster_;
  core::Scheduler scheduler_;
  Dims dims_;
  QueueTree tree_ = QueueTree::build({});
  std::vector<QueueUse> uses_;
  std::vector<Gang> gangs_;
  std::vector<GangId> gangs_free_;
  std::vector<Member> members_;
  std::vector<MemberId> members_free_;
  // By leaf: gangs with waiting members in their turn, and gangs with members placed.
  std::vector<std::set<Turn>> lines_;
  std::vector<std::set<GangId>> running_;
  std::set<GangId> stray_;   // without a queue
  std::set<GangId> broken_;  // below their minimum, with members placed
  std::set<GangId> claims_;  // awaiting others
  std::map<core::NodeId, std::vector<MemberId>> departing_;  // evicted, still there
  std::vector<int64_t> budgets_;
  std::vector<MemberId> on_pod_;  // by PodId
  std::vector<Dim> model_dims_;   // by ModelId; kGpu: not asked for yet
  std::vector<Reservation> reservations_;
  Kept kept_;  // during a cycle: what is held for others is not free
  uint64_t seq_ = 0;
  std::vector<int64_t> capacity_;  // healthy, by Dim, as of capacity_version_
  uint64_t capacity_version_ = 0;
  std::vector<Bind> ready_;            // claims that came true since the last cycle
  std::unordered_set<int32_t> fresh_;  // members whose binds this cycle gives out: nobody's victims
};

}  // namespace tessera::scheduler::queueing
