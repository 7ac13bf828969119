// What Kubernetes demands of ResourceQuotas and LimitRanges.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/validation and helper (scopes, names of quota resources).
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

void validate_resource_quota(const json::Value& object, FieldErrors& errors);
void validate_resource_quota_update(const json::Value& object, const json::Value& before,
                                    FieldErrors& errors);
void validate_limit_range(const json::Value& object, FieldErrors& errors);

}  // namespace tessera::apiserver
