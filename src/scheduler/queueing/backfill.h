// Planned starts: when a gang that cannot start now can start at the latest, if all that run keep their limits.
//
// Shape:   EASY backfill for the first gang of a queue, conservative for as many as the queue says. A plan makes a Future: the
//          cluster at that time with the gang in it. Whoever would still run then must fit into the Future as well.
// Units:   times handed in. A job without a limit never ends; a gang that needs its place has no planned start.
// Source:  Lifka 1995 (EASY), Mu'alem and Feitelson 2001 (conservative).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "scheduler/queueing/trial.h"

namespace tessera::scheduler::queueing {

class Backfill {
 public:
  Backfill(Engine& engine, base::Time now) : engine_(engine), now_(now) {}

  // Plans the start of `chosen`, all of one gang, and writes it into `wait`; false where there is none. A start that holds if
  // all keep their limits stays kept free even where others' estimates promise an earlier one: then both are Futures.
  bool plan(GangId gang, const std::vector<MemberId>& chosen, const Amounts& need, Wait& wait);
  // A Future at each start of a reservation that is to come.
  void foresee();
  std::vector<std::unique_ptr<Future>>& futures() { return futures_; }
  // Gangs planned so far.
  int32_t planned() const { return static_cast<int32_t>(planned_.size()); }

 private:
  struct End {
    base::Time at{};
    MemberId member{};
    auto operator<=>(const End&) const = default;
  };
  // With `estimates` those too that have no limit and are expected to end.
  const std::vector<End>& ends(bool estimates);
  bool plan_by(bool estimates, GangId gang, const std::vector<MemberId>& chosen,
               const Amounts& need, Wait& wait);
  bool starts_in(core::Cluster& cluster, core::Scheduler& scheduler,
                 const std::vector<MemberId>& chosen, Wait& wait) const;
  bool starts_at(Future& future, core::Scheduler& scheduler, const std::vector<MemberId>& chosen,
                 Wait& wait) const;
  bool within_limits(GangId gang, const Amounts& need, const std::vector<Totals>& used) const;

  Engine& engine_;
  base::Time now_;
  std::optional<std::vector<End>> ends_[2];
  std::vector<std::unique_ptr<Future>> futures_;
  struct Planned {
    base::Time end{};
    bool ends = false;
    std::vector<std::pair<std::shared_ptr<const core::PodRequest>, core::Placement>> places;
  };
  std::vector<Planned> planned_;
};

}  // namespace tessera::scheduler::queueing
