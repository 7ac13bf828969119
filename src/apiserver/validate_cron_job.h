// What Kubernetes demands of CronJobs.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/batch/validation.
#pragma once

#include "apiserver/kind.h"

namespace tessera::apiserver {

void validate_cron_job(const json::Value& object, FieldErrors& errors);

}  // namespace tessera::apiserver
