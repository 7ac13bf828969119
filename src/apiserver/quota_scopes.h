// The scopes of ResourceQuotas, and what they demand of a pod's containers.
//
// Threads: pure.
// Source:  k8s.io/kubernetes v1.36.3 pkg/quota/v1/evaluator/core/pods.go.
#pragma once

#include <string>

#include "apiserver/quota_usage.h"

namespace tessera::apiserver {

// All of spec.scopes and spec.scopeSelector hold. Scopes select pods; nothing else matches one.
bool scopes_match(const json::Value& quota_spec, const QuotaItem& item);

// A quota on cpu or memory wants every container to name its share: "must specify limits.cpu for: main". Empty: it does.
std::string missing_resources(const json::Value& quota_spec, const kube::Pod& pod);

// The usage of requests and limits under the names of quotas.
kube::ResourceList compute_quota_usage(const kube::ResourceList& requests,
                                       const kube::ResourceList& limits);

}  // namespace tessera::apiserver
