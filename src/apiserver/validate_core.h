// What Kubernetes demands of Services, ConfigMaps, Secrets, Nodes, Namespaces, Events, PriorityClasses and Leases.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/{core,scheduling,coordination}/validation.
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

void validate_service(const json::Value& object, FieldErrors& errors);
void validate_service_update(const json::Value& object, const json::Value& before,
                             FieldErrors& errors);
void validate_config_map(const json::Value& object, FieldErrors& errors);
void validate_config_map_update(const json::Value& object, const json::Value& before,
                                FieldErrors& errors);
void validate_secret(const json::Value& object, FieldErrors& errors);
void validate_secret_update(const json::Value& object, const json::Value& before,
                            FieldErrors& errors);
void validate_node(const json::Value& object, FieldErrors& errors);
void validate_node_update(const json::Value& object, const json::Value& before,
                          FieldErrors& errors);
void validate_event(const json::Value& object, FieldErrors& errors);
void validate_priority_class(const json::Value& object, FieldErrors& errors);
void validate_priority_class_update(const json::Value& object, const json::Value& before,
                                    FieldErrors& errors);
void validate_lease(const json::Value& object, FieldErrors& errors);

}  // namespace tessera::apiserver
