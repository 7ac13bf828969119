// What Kubernetes demands of spec.affinity.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

void validate_affinity(const json::Value& affinity, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
