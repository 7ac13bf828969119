// What every queue is due of what is healthy, down the tree.
//
// Shape:   a level is divided by fair_share.h, one resource at a time: GPUs always, others where a sibling names them in a
//          quota or a limit. With history, a queue's weight counts times its level fairness (fair_tree.h), within 1/16 to 16.
// Units:   as in amounts.h.
#pragma once

#include <vector>

#include "scheduler/queueing/engine.h"

namespace tessera::scheduler::queueing {

// What healthy, open nodes hold, by Dim.
std::vector<int64_t> healthy_capacity(const core::Cluster& cluster, Dims& dims);

// Shares of all queues, by queue and Dim; an empty list for a Dim that is not divided at that level.
std::vector<std::vector<int64_t>> shares_of(const QueueTree& tree,
                                            const std::vector<QueueUse>& uses,
                                            const std::vector<int64_t>& capacity, bool history);

inline constexpr int64_t kUndivided = -1;  // in a list of shares

}  // namespace tessera::scheduler::queueing
