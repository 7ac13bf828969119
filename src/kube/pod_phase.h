// What a pod's phase says, read from the object alone.
#pragma once

#include <string_view>

#include "kube/object.h"

namespace tessera::kube {

// It has ended, well or not: it holds nothing any more and will not run again.
inline bool has_ended(const Object& pod) {
  const std::string_view phase = pod.get("status", "phase").as_string();
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace tessera::kube
