// The values that Kubernetes fills into limits, network policies, roles, addresses behind Services and autoscalers.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/{core,networking,rbac,discovery}/v1/defaults.go,
//          pkg/apis/autoscaling/v2/defaults.go.
#pragma once

#include "json/value.h"

namespace tessera::apiserver {

// For containers a max alone is the default, which alone is the default request.
void default_limit_range(json::Value& object);
void default_network_policy(json::Value& object);
void default_ingress_class(json::Value& object);
// Lists that a server writes as null where they are absent.
void default_role(json::Value& object);
void default_role_binding(json::Value& object);
void default_endpoint_slice(json::Value& object);
void default_endpoints(json::Value& object);
void default_autoscaler(json::Value& object);
void default_replication_controller(json::Value& object);
void default_pod_template_object(json::Value& object);

}  // namespace tessera::apiserver
