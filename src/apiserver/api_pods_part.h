// pods/ephemeralcontainers and pods/resize: updates of one part of a pod.
//
// Errors:  validate_pod_part adds causes in Kubernetes' words.
// Threads: pure.
// Source:  k8s.io/kubernetes v1.36.3 pkg/registry/core/pod/strategy.go, pkg/apis/core/validation (ValidatePodResize,
//          ValidatePodEphemeralContainersUpdate).
#pragma once

#include <string_view>

#include "apiserver/kind.h"

namespace tessera::apiserver {

bool is_pod_part(std::string_view subresource);
// The stored pod with nothing but the part taken from `object`.
json::Value with_pod_part(const json::Value& object, const json::Value& before,
                          std::string_view subresource);
void validate_pod_part(const json::Value& object, const json::Value& before,
                       std::string_view subresource, FieldErrors& errors);

}  // namespace tessera::apiserver
