// What the scheduler writes into the status of a queue: ours, Volcano's and KAI's.
//
// Shape:   queue_status() answers with the merge patch of the status subresource, or nothing where the object says it already.
//          Ours: used, wanted and share by resource, jobs, past use (once a minute), observedGeneration, condition Ready. Volcano's: state (only from
//          nothing or Unknown to Open and back, and from Closing to Closed once it is empty: to close one is its user's),
//          allocated, PodGroups by phase. KAI's: childQueues, allocated, requested, and allocatedNonPreemptible where it is given;
//          where KAI's own queue controller runs it writes the same fields, so do not write there.
//          What is used and wanted moves with every start: the caller limits how often it writes.
// Units:   GPUs and cores in thousandths at most (rounded down), memory in MiB. Volcano and KAI know GPUs by resource name:
//          nvidia.com/gpu, unless the queue's own definition says amd.com/gpu.
// Errors:  none.
// Threads: pure.
// Source:  config/crd/queue.yaml; scheduling.volcano.sh/v1beta1 of Volcano 1.15; scheduling.run.ai/v2 of KAI 0.20.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "kube/object.h"
#include "scheduler/queueing/engine.h"

namespace tessera::scheduler {

// What the engine does not count by queue.
struct QueueJobs {
  int32_t running = 0;  // gangs with at least their minimum placed
  // Volcano's PodGroups by phase.
  int32_t pending = 0;
  int32_t inqueue = 0;
  int32_t running_groups = 0;
  int32_t unknown = 0;
  int32_t completed = 0;
  // KAI's: what jobs have that are never evicted.
  std::optional<queueing::Amounts> kept{};
};
// One more PodGroup of that phase; "" is Pending.
void count_phase(QueueJobs& jobs, std::string_view phase);

// `problem`: why the queue's definition makes no sense, from read_queue_object(). An invalid id is a queue that the engine does
// not have: it has nothing and is not ready.
struct PastUse {
  double unit_seconds = 0;  // GPUs in kUnitsPerGpu-ths of a device, times seconds
  base::Time at{};
};
// What the status of a queue of ours says of its past, so that a restart forgets nothing; nothing where it does not.
std::optional<PastUse> past_use(const kube::Object& object);

std::optional<json::Value> queue_status(const kube::Object& object, const queueing::Engine& engine,
                                        queueing::QueueId id, std::string_view problem,
                                        const QueueJobs& jobs, base::Time now);

}  // namespace tessera::scheduler
