// Whose turn it is: down the tree to the leaf that is furthest below what it is due.
//
// Shape:   at each level first those below a quota, lowest part of it first; then by queue priority, lowest part of the share
//          first; among equals the first in the tree. A leaf leaves when it has nothing left to try.
// Errors:  none.
#pragma once

#include <set>
#include <vector>

#include "scheduler/queueing/engine.h"

namespace tessera::scheduler::queueing {

class Turns {
 public:
  Turns(const QueueTree& tree, const std::vector<QueueUse>& uses);
  QueueId next() const;        // invalid where all are done
  void changed(QueueId leaf);  // what it uses or wants has changed
  void done(QueueId leaf);

 private:
  struct Standing {
    bool above_quota = false;
    int32_t priority_negative = 0;
    int64_t ratio = 0;  // of quota or share, in 2^-20
    int32_t queue = 0;
    auto operator<=>(const Standing&) const = default;
  };
  Standing standing_of(QueueId id) const;

  const QueueTree& tree_;
  const std::vector<QueueUse>& uses_;
  std::vector<std::set<Standing>> live_;  // by parent
  std::vector<Standing> known_;           // by queue
};

}  // namespace tessera::scheduler::queueing
