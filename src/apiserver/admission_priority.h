// What the class of a new Pod or PodGroup makes of its priority.
//
// Shape:   the class that is named, else the lowest of the global defaults, else 0 and PreemptLowerPriority.
// Errors:  kForbidden in Kubernetes' words: no such class, or numbers that are not the class's.
// Threads: any.
// Source:  Kubernetes' admission plugin Priority, v1.36.3; of PodGroups v1.37.0.
#pragma once

#include <string_view>

#include "apiserver/api_core.h"
#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

base::Status admit_pod_priority(const Core& core, std::string_view pod, json::Value& spec);
base::Status admit_pod_group_priority(const Core& core, const Kind& kind, std::string_view name,
                                      json::Value& spec);

}  // namespace tessera::apiserver
