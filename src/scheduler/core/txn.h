// Tentative changes to a cluster: placements and evictions that are kept together or undone
// together.
//
// Shape:   place() and evict() take effect at once, so that decisions in between see them;
//          rollback_to() undoes all since a mark in O(changes) and leaves the cluster exactly as it
//          was, ids included. Going out of scope undoes what was not committed. A gang, a
//          preemption and a what-if are one Txn each.
// Errors:  nodes must not be added, changed or removed while a Txn is open; a second Txn may nest
//          inside the first.
// Threads: the scheduler's strand.
#pragma once

#include <vector>

#include "scheduler/core/cluster.h"

namespace tessera::scheduler::core {

class Txn {
 public:
  explicit Txn(Cluster& cluster) : cluster_(cluster) {}
  ~Txn() { rollback(); }
  Txn(const Txn&) = delete;
  Txn& operator=(const Txn&) = delete;

  PodId place(std::shared_ptr<const PodRequest> request, const Placement& placement);
  void evict(PodId pod);

  size_t mark() const { return changes_.size(); }
  void rollback_to(size_t mark);
  void rollback() { rollback_to(0); }
  void commit() { changes_.clear(); }

  struct Change {
    PodId pod;
    bool placed = false;  // false: evicted
    std::shared_ptr<const PodRequest> request;
    Placement placement;
  };
  const std::vector<Change>& changes() const { return changes_; }

 private:
  Cluster& cluster_;
  std::vector<Change> changes_;
};

}  // namespace tessera::scheduler::core
