// The values that Kubernetes fills into pods and pod templates.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/v1/defaults.go.
#pragma once

#include "json/value.h"

namespace tessera::apiserver {

void default_pod(json::Value& pod);
// A template gets less than a pod: requests follow limits only when the pod is made.
void default_pod_template(json::Value& pod_template);

// Pending, the quality-of-service class, and the condition of gated pods.
void prepare_new_pod(json::Value& pod);

// Amounts finer than a thousandth are rounded up.
void round_resource_list(json::Value& list);

}  // namespace tessera::apiserver
