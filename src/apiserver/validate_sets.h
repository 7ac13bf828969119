// What Kubernetes demands of StatefulSets, DaemonSets and ControllerRevisions.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/apps/validation.
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

void validate_stateful_set(const json::Value& object, FieldErrors& errors);
void validate_stateful_set_update(const json::Value& object, const json::Value& before,
                                  FieldErrors& errors);
void validate_daemon_set(const json::Value& object, FieldErrors& errors);
void validate_controller_revision(const json::Value& object, FieldErrors& errors);
void validate_controller_revision_update(const json::Value& object, const json::Value& before,
                                         FieldErrors& errors);

}  // namespace tessera::apiserver
