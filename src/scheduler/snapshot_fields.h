// Which fields of an object the Model, groups.h, queue_objects.h, translate.h and pod_volumes.h read: all that a Snapshot keeps.
//
// Shape:   a list of what is kept, not of what is left out, so that what nobody thought of never gets into a file. Where a
//          list, a map or a value of a known shape is expected, anything else is dropped. A field that the readers begin to
//          read is to be added here; snapshot_test.cc compares what they read of whole and of kept objects.
// Threads: plain functions.
#pragma once

#include "kube/object.h"

namespace tessera::scheduler {

// Whether a Snapshot has objects of this kind at all.
bool is_kept(std::string_view group, std::string_view kind);
// An empty object where the kind is not kept.
kube::Object keep_read_fields(const kube::Object& object);

}  // namespace tessera::scheduler
