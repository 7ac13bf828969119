// What Kubernetes demands of podFailurePolicy and successPolicy of a Job.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/batch/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

// `at` is the job's spec.
void validate_job_policies(const json::Value& spec, const Path& at, FieldErrors& errors);

}  // namespace tessera::apiserver
