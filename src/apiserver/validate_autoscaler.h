// What Kubernetes demands of HorizontalPodAutoscalers (autoscaling/v2).
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/autoscaling/validation.
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

void validate_autoscaler(const json::Value& object, FieldErrors& errors);

}  // namespace tessera::apiserver
