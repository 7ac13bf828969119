// Who has to go so that a gang can start: as few and as cheap as can be, and never a part of a gang that cannot do without.
//
// Shape:   inside a queue by priority; between queues only for one that stays within its share, from those beyond theirs. A
//          gang gives members beyond its minimum one by one, below it as a whole. Nodes are cleared cheapest first; when all
//          members have a place, whoever turns out not to be in the way is put back, and up to 64 victims are tried one
//          by one for whether the gang could start without them: then no smaller part of what is evicted would do.
// Units:   cost is GPU-units times seconds since the last checkpoint (or the start); queues that would fall below their share
//          and higher priorities cost more than any loss. Who is going anyway costs nothing.
// Errors:  make_room() false: the trial is as before.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "scheduler/queueing/trial.h"

namespace tessera::scheduler::queueing {

class Victims {
 public:
  Victims(Engine& engine, base::Time now) : engine_(engine), now_(now) {}

  struct Cost {
    bool below_share = false;
    int32_t priority = INT32_MIN;
    int64_t loss = 0;
    auto operator<=>(const Cost&) const = default;
    void add(const Cost& other);
  };
  struct Unit {
    GangId gang{};
    std::vector<MemberId> members{};
    Cost cost{};
    EvictReason reason = EvictReason::kPreempted;
  };

  bool make_room(Trial& trial, const std::vector<MemberId>& chosen, const Amounts& need);
  // Of the gang that room was made for last; end() when that has been acted on.
  GangId of() const { return made_for_; }
  void end() { made_for_ = GangId(); }
  const std::vector<Unit>& units() const { return units_; }
  // Members put back under another PodId.
  const std::vector<std::pair<MemberId, core::PodId>>& moved() const { return moved_; }

 private:
  struct Candidate {
    Cost cost{};
    core::NodeId node{};
    auto operator<=>(const Candidate&) const = default;
  };
  struct Key {
    QueueId leaf{};
    int32_t priority = 0;
    uint64_t shape = 0;
    auto operator<=>(const Key&) const = default;
  };

  void begin(Trial& trial, const Amounts& need);
  bool anyone() const;
  std::optional<EvictReason> eligible(GangId victim) const;
  std::optional<Unit> unit_of(MemberId member) const;
  bool may_go(MemberId member) const;
  Cost cost_of(const Unit& unit) const;
  void evict(Unit unit, core::NodeId only_on);
  void undo(size_t units_mark, size_t txn_mark);
  std::optional<Cost> clear(core::NodeId node, const core::Shape& shape, bool for_real);
  bool clear_cheapest(MemberId member);
  std::vector<Candidate>& candidates(MemberId member);
  bool make_limit_room(const Amounts& need);
  std::optional<Unit> cheapest_under(QueueId queue) const;
  bool place_all(const std::vector<MemberId>& chosen, const Amounts& need);
  void merge_wholes();
  void put_back(const Amounts& need);
  bool restore(const Unit& unit);
  bool replay(const std::vector<Unit>& units, const std::vector<MemberId>& chosen,
              const Amounts& need);
  bool slim(const std::vector<MemberId>& chosen, const Amounts& need);
  void forget();
  bool give_up(const Wait& wait);

  Engine& engine_;
  base::Time now_;
  std::map<Key, std::vector<Candidate>> heaps_;  // least first; costs may have grown since
  // Of the gang being tried:
  Trial* trial_ = nullptr;
  GangId for_{};
  GangId made_for_{};
  Amounts need_{};
  QueueId reach_{};  // the highest queue on its way up that stays within its share
  std::vector<Unit> units_;
  std::unordered_map<int32_t, std::vector<int32_t>> gone_of_;  // by gang: evicted by sub-group
  std::unordered_set<int32_t> gone_;                           // members
  std::unordered_map<int32_t, int64_t> budget_spent_;
  std::vector<std::pair<MemberId, core::PodId>> moved_;
};

}  // namespace tessera::scheduler::queueing
