// What happens to a node that is lost, and to the pods on it: pure.
//
// Source:  Kubernetes 1.36 pkg/controller/nodelifecycle, tainteviction (behaviour); well-known taints.
#pragma once

#include <optional>
#include <vector>

#include "apiserver/controllers_pods.h"

namespace tessera::apiserver::controller {

// The node's status when its kubelet no longer speaks: the conditions that it posted become Unknown.
json::Value lost_node_status(const json::Value& status, base::Time now);
// The node's taints as its conditions and spec.unschedulable ask for; those of others stay.
json::Value node_taints(const kube::Object& node, base::Time now);
// The pod's status on a lost node: not ready. The same as before where nothing changes: a pod that became ready after the
// node was given up shows that its kubelet is back.
json::Value lost_pod_status(const json::Value& status, const json::Value& node_status,
                            base::Time now);

// When the NoExecute taints drive the pod away; nothing: never.
std::optional<base::Time> eviction_time(const json::Value& taints, const json::Value& tolerations,
                                        base::Time now);

}  // namespace tessera::apiserver::controller
