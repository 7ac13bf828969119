// Queues as the API has them, in the engine's terms: our own, Volcano's and KAI's.
//
// Shape:   read_queue_object() translates one object. Ours (Queue tessera.dev/v1alpha1) says all that a QueueSpec has. Volcano's:
//          capability is the limit, deserved the quota, raised to what guarantee.resource reserves; priority 0 is our 100. KAI's:
//          quota and limit by resource, -1 unlimited; the weight is that of its GPUs.
//          A slice in a quota counts as its part of a GPU. In a limit it is limited by its own name, and raises the limit
//          of GPUs where there is one.
// Units:   as in queueing/amounts.h. Keys: gpu, cpu, memory, gpu/MODEL, or a resource's name; nvidia.com/gpu and
//          amd.com/gpu are gpu.
// Errors:  a queue with a `problem` is closed until it is mended; `notes` are for an event. Never fails.
// Threads: the scheduler's strand (Dims has one writer).
// Source:  config/crd/queue.yaml; scheduling.volcano.sh/v1beta1 of Volcano 1.15; scheduling.run.ai/v2 of KAI 0.20.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "scheduler/member_amounts.h"
#include "scheduler/queueing/amounts.h"
#include "scheduler/queueing/queue_tree.h"

namespace tessera::scheduler {

struct QueueReading {
  queueing::QueueSpec spec{};
  std::string problem{};
  std::vector<std::string> notes{};
};

// Nothing for what is no queue, and for Volcano's "root", which is the one over all of ours.
std::optional<QueueReading> read_queue_object(const kube::Object& object, queueing::Dims& dims,
                                              const ShareRules& rules);

// Amounts by resource, as in a queue's quota. What makes no sense is told in `problem`, with `field` as the place.
queueing::Amounts read_amounts(const json::Value& map, const char* field, queueing::Dims& dims,
                               const ShareRules& rules, std::string& problem);

}  // namespace tessera::scheduler
