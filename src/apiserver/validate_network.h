// What Kubernetes demands of NetworkPolicies, Ingresses, their classes, and of the addresses behind Services.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/{networking,discovery,core}/validation.
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

void validate_network_policy(const json::Value& object, FieldErrors& errors);
void validate_ingress(const json::Value& object, FieldErrors& errors);
void validate_ingress_class(const json::Value& object, FieldErrors& errors);
void validate_ingress_class_update(const json::Value& object, const json::Value& before,
                                   FieldErrors& errors);
void validate_endpoint_slice(const json::Value& object, FieldErrors& errors);
void validate_endpoint_slice_update(const json::Value& object, const json::Value& before,
                                    FieldErrors& errors);
void validate_endpoints(const json::Value& object, FieldErrors& errors);

}  // namespace tessera::apiserver
