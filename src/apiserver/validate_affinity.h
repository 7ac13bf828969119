// What Kubernetes demands of spec.affinity and other selectors of nodes.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

// A NodeSelector with its terms.
void validate_node_selector(const json::Value& selector, const Path& at, FieldErrors& errors);
void validate_affinity(const json::Value& affinity, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
