#include "scheduler/core/txn.h"

#include "base/check.h"

namespace tessera::scheduler::core {

PodId Txn::place(std::shared_ptr<const PodRequest> request, const Placement& placement) {
  PodId pod = cluster_.add_pod(std::move(request), placement);
  const PlacedPod& placed = cluster_.pod(pod);
  changes_.push_back({pod, true, placed.request, placed.placement});
  return pod;
}

void Txn::evict(PodId pod) {
  const PlacedPod& placed = cluster_.pod(pod);
  changes_.push_back({pod, false, placed.request, placed.placement});
  cluster_.remove_pod(pod);
}

void Txn::rollback_to(size_t mark) {
  TS_CHECK(mark <= changes_.size(), "mark {} lies ahead of {} changes", mark, changes_.size());
  while (changes_.size() > mark) {
    Change& change = changes_.back();
    if (change.placed) {
      cluster_.remove_pod(change.pod);
    } else {
      cluster_.restore_pod(change.pod, std::move(change.request), change.placement);
    }
    changes_.pop_back();
  }
}

}  // namespace tessera::scheduler::core
