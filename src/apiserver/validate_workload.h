// What Kubernetes demands of Deployments, ReplicaSets and Jobs.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/apps/validation, pkg/apis/batch/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

void validate_deployment(const json::Value& object, FieldErrors& errors);
void validate_replica_set(const json::Value& object, FieldErrors& errors);
// Both: the selector never changes.
void validate_same_selector(const json::Value& object, const json::Value& before,
                            FieldErrors& errors);

void validate_job(const json::Value& object, FieldErrors& errors);
void validate_job_update(const json::Value& object, const json::Value& before, FieldErrors& errors);

// That the selector at `at`.selector selects the labels of the template at `at`.template.
void validate_selects_template(const json::Value& spec, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
