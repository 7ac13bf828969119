// What Kubernetes demands of env and envFrom of a container.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

// `at` is the container.
void validate_env(const json::Value& container, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
