// What Kubernetes demands of roles and of what binds them.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/rbac/validation.
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

void validate_role(const json::Value& object, FieldErrors& errors);
void validate_cluster_role(const json::Value& object, FieldErrors& errors);
void validate_role_binding(const json::Value& object, FieldErrors& errors);
void validate_cluster_role_binding(const json::Value& object, FieldErrors& errors);
// Both bindings: the role stays.
void validate_same_role(const json::Value& object, const json::Value& before, FieldErrors& errors);

}  // namespace tessera::apiserver
