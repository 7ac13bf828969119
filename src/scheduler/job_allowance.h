// Evictions are not a Job's fault: what the Job controller would count as failures of its pods is added to the Job's backoffLimit
// before they are evicted, so that no job fails for having made room.
//
// Shape:   allowance_patch() answers with the merge patch of the Job; nothing where its podFailurePolicy ignores disruptions
//          anyway. How much was added so far stands in annotation tessera.dev/evictions-allowed.
// Errors:  none: a nonsensical annotation counts as 0.
// Threads: pure.
// Source:  k8s.io/kubernetes v1.36.3 pkg/controller/job (a deleted pod counts as failed), pkg/apis/batch/validation (backoffLimit
//          may change).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kube/object.h"

namespace tessera::scheduler {

inline constexpr std::string_view kEvictionsAllowed = "tessera.dev/evictions-allowed";

// Evictions that the Job has been allowed so far.
int64_t evictions_allowed(const kube::Object& job);
// `allowed`: as evictions_allowed, or more where the object is older than what was written; `more`: pods about to go.
std::optional<json::Value> allowance_patch(const kube::Object& job, int64_t allowed, int64_t more);

}  // namespace tessera::scheduler
