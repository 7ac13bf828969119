// What Kubernetes demands of pods and pod templates, and what of a pod may change.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/core/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

void validate_pod(const json::Value& pod, FieldErrors& errors);
// After creation only images, activeDeadlineSeconds (downwards), added tolerations and removed gates change; node
// selectors of gated pods may grow tighter.
void validate_pod_update(const json::Value& pod, const json::Value& before, FieldErrors& errors);
// metadata and spec of a template; `at` is the template.
void validate_pod_template(const json::Value& pod_template, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
