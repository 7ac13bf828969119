// The values that Kubernetes fills into Namespaces, Nodes and Secrets.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/v1 (defaults.go, conversion.go).
#pragma once

#include "json/value.h"

namespace tessera::apiserver {

// The label kubernetes.io/metadata.name, by which selectors choose namespaces; the phase.
void default_namespace(json::Value& object);
void prepare_new_namespace(json::Value& object);
// Allocatable is the capacity where only that is given.
void default_node(json::Value& object);
// The type Opaque, and stringData folded into data.
void default_secret(json::Value& object);

}  // namespace tessera::apiserver
