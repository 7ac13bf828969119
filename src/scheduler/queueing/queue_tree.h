// The tree of queues: who may have how much, and who shares with whom.
//
// Shape:   a root without a name over all queues; jobs wait in leaves. A queue whose definition makes no sense (a parent that
//          is not there, a loop, a negative weight) is closed: it keeps its place in the list with the reason, its jobs wait
//          with that reason, and every other queue works on.
// Units:   as in amounts.h. Weights are 0 to kWeightMax; 0 takes nothing beyond the quota while anyone else wants it.
// Errors:  Queue::problem, one sentence that names the field and the mend.
// Threads: immutable after build().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "scheduler/queueing/amounts.h"

namespace tessera::scheduler::queueing {

using QueueId = base::Id<struct QueueTag>;

inline constexpr int64_t kWeightMax = 1'000'000;

struct QueueSpec {
  std::string name{};
  std::string parent{};  // empty: the root
  // Guaranteed; what a queue does not name is not guaranteed at all.
  Amounts quota{};
  // Never exceeded; what a queue does not name has no limit of its own.
  Amounts limit{};
  int32_t priority = 100;  // who among siblings gets what nobody is guaranteed
  int64_t weight = 1;      // and in which proportion among equals
  // A job that cannot start holds back all behind it.
  bool strict_fifo = false;
  // Others may take back what it has beyond its share.
  bool reclaimable = true;
  // How long a job may run that does not say so itself; nothing: for ever.
  std::optional<base::Duration> runtime_default{};
  // A job is not evicted before it has run this long.
  base::Duration runtime_min{};
  // So many waiting gangs, first in line first, get a planned start that nothing behind them may delay.
  int32_t reservations = 1;
  bool open = true;       // false: takes no new jobs
  std::string problem{};  // found by whoever read the definition; closed where not empty
};

struct Queue {
  QueueSpec spec{};
  QueueId parent{};
  std::vector<QueueId> children{};
  int32_t depth = 0;
  std::string problem{};  // closed where not empty
};

class QueueTree {
 public:
  static QueueTree build(std::vector<QueueSpec> specs);

  QueueId find(std::string_view name) const;  // invalid where there is none
  const Queue& at(QueueId id) const { return queues_[static_cast<size_t>(id.value)]; }
  QueueId root() const { return QueueId(0); }
  size_t size() const { return queues_.size(); }
  // From the queue up to and with the root.
  template <class Visit>
  void each_up(QueueId id, Visit visit) const {
    for (; id.valid(); id = at(id).parent) visit(id);
  }
  // The two children of the nearest common ancestor on the ways to a and b; equal where one is above the other.
  std::pair<QueueId, QueueId> fork(QueueId a, QueueId b) const;

 private:
  void link();
  void close_loops();

  std::vector<Queue> queues_;
  std::unordered_map<std::string, QueueId> by_name_;
};

}  // namespace tessera::scheduler::queueing
