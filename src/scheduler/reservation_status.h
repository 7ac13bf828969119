// What the scheduler writes into the status of a Reservation.
//
// Shape:   reservation_status() answers with the merge patch of the status subresource, or nothing where the object says it
//          already: phase, nodes, observedGeneration, and the condition Held, which is True where all that is asked for is
//          there for its queue. The nodes are read back after a restart (reservation_objects.h).
// Errors:  none.
// Threads: pure.
// Source:  config/crd/reservation.yaml.
#pragma once

#include <optional>

#include "base/time.h"
#include "kube/object.h"
#include "scheduler/queueing/engine.h"

namespace tessera::scheduler {

std::optional<json::Value> reservation_status(const kube::Object& object,
                                              const queueing::Engine& engine, base::Time now);

}  // namespace tessera::scheduler
