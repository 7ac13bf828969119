// What Kubernetes demands of the fields that say where pods may run: tolerations and taints, affinity, topology spread,
// scheduling gates.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

// All of them in a pod's spec.
void validate_scheduling(const json::Value& spec, const Path& at, FieldErrors& errors);
void validate_tolerations(const json::Value& tolerations, const Path& at, FieldErrors& errors);
// spec.taints of a node.
void validate_taints(const json::Value& taints, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
