// Whether a write fits in a ResourceQuota.
//
// Errors:  the text of a refusal, in Kubernetes' words.
// Threads: pure.
// Source:  k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go (order of the checks, wording).
#pragma once

#include <string>

#include "apiserver/quota_usage.h"

namespace tessera::apiserver {

// What a write adds to (or takes from) the usage. `before` is null for a new object.
kube::ResourceList quota_delta(const QuotaItem& item, const QuotaItem* before);

struct QuotaVerdict {
  std::string refusal;      // empty: it fits
  kube::ResourceList used;  // then
  bool changes = false;     // the quota's usage is another one then
};
QuotaVerdict judge_quota(const json::Value& quota, const kube::ResourceList& used,
                         const kube::ResourceList& delta);

// status.used speaks of the resources of spec.hard, so that it can be counted on.
bool quota_status_is_current(const json::Value& quota, const Kinds& kinds);
json::Value quota_status(const json::Value& quota, const kube::ResourceList& used);

}  // namespace tessera::apiserver
