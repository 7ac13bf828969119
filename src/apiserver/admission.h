// What the server adds to objects or forbids, beyond defaults and validation.
//
// Shape:   namespace life cycle for everything; LimitRanges, service account, default tolerations and priority for Pods;
//          addresses for Services (admission_service.h); quotas when the write is committed (admission_quota.h).
// Errors:  kNotFound (no such namespace), kForbidden in Kubernetes' words.
// Threads: any; reads the newest state of the store.
// Source:  Kubernetes' admission plugins NamespaceLifecycle, LimitRanger, ServiceAccount, DefaultTolerationSeconds, Priority.
#pragma once

#include <string_view>

#include "apiserver/api_core.h"
#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

// A new object may be made in the namespace.
base::Status admit_namespace(Core& core, const Kind& kind, std::string_view ns,
                             std::string_view name);
// Namespaces that are never deleted.
bool is_protected_namespace(std::string_view name);
base::Status admit_pod(Core& core, const Call& call, json::Value& pod);
base::Status admit_pod_group(const Core& core, const Kind& kind, json::Value& group);
// A pod about to be changed: it tolerates lost nodes for a while, as at first.
void admit_pod_update(json::Value& pod);
// LimitRanges, against the finished object: of a new Pod, a Pod resized, a PersistentVolumeClaim.
base::Status check_limits(const Core& core, const Kind& kind, const json::Value& object);

// What a new cluster has: namespaces, priority classes, the API's own Service.
std::vector<std::pair<const Kind*, json::Value>> initial_objects(const Core& core);

}  // namespace tessera::apiserver
