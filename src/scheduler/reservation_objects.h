// A Reservation (tessera.dev/v1alpha1) in the engine's terms.
//
// Units:   as in queueing/amounts.h. Keys of resources: as in queue_objects.h.
// Errors:  what makes no sense is the spec's `problem`: the reservation is refused until it is mended. Never fails.
// Threads: the scheduler's strand (Dims has one writer).
// Source:  config/crd/reservation.yaml.
#pragma once

#include <optional>

#include "kube/object.h"
#include "scheduler/member_amounts.h"
#include "scheduler/queueing/reservation.h"

namespace tessera::scheduler {

// Nothing for what is no Reservation.
std::optional<queueing::ReservationSpec> read_reservation(const kube::Object& object,
                                                          queueing::Dims& dims,
                                                          const ShareRules& rules);

}  // namespace tessera::scheduler
