// A stream of jobs of many tenants through a queueing policy, in virtual time: for comparing policies.
//
// Shape:   a discrete-event loop around scheduler/queueing's Engine: arrivals, ends, and every full hour. A job is a gang: one
//          pod up to a node's GPUs, else pods of whole nodes and a rest. All policies are settings of the same Engine, so they
//          share its placement and its loop: the baselines are ours, nobody else's product. Evicted jobs go at once, go back to
//          their place in line by arrival, and start again from their last checkpoint, one every `checkpoint_s` of each run.
// Units:   seconds.
// Errors:  none: jobs that no cluster of this size can hold must be left out before (shape_load).
// Threads: one. The same options and jobs give the same score, digest included.
// Source:  EASY: Lifka 1995. DRF: Ghodsi and others 2011 (one resource: max-min). Best-effort FIFO: what cannot start is
//          passed over.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "sim/queue_score.h"
#include "sim/queue_trace.h"

namespace tessera::sim {

enum class QueuePolicy : uint8_t {
  kTessera,         // a queue a tenant: fair share with history, reclaim, planned starts
  kStrictFifo,      // one queue; who cannot start holds back all behind
  kBestEffortFifo,  // one queue; who cannot start is passed over
  kEasy,  // one queue; the first that cannot start has a planned start, others go in between
  kDrf,   // a queue a tenant: the lowest share first, no history, no reclaim, no planned starts
};
inline constexpr QueuePolicy kQueuePolicies[] = {QueuePolicy::kTessera, QueuePolicy::kStrictFifo,
                                                 QueuePolicy::kBestEffortFifo, QueuePolicy::kEasy,
                                                 QueuePolicy::kDrf};
std::string_view name_of(QueuePolicy policy);
std::optional<QueuePolicy> parse_queue_policy(std::string_view name);

struct QueueReplayOptions {
  int32_t nodes = 72;
  int32_t gpus_per_node = 8;
  int64_t checkpoint_s = 3600;
  // A tenant's weight: what all its jobs ask for, in thousandths of all work; else all weigh the same.
  bool weights_by_use = false;
  // Of kTessera alone:
  int64_t half_life_s = int64_t{7} * 86'400;  // 0: no history
  int64_t runtime_min_s = 3600;               // nobody is evicted before
  int32_t reservations = 1;                   // of a queue
  int32_t reservations_max = 8;               // of all
  int64_t patience_s = int64_t{7} * 86'400;   // 0: none; EngineOptions::patience
  bool reclaim = true;
};

QueueScore replay_queues(QueuePolicy policy, const std::vector<QueueJob>& jobs,
                         const QueueReplayOptions& options);

}  // namespace tessera::sim
