// What the kubelet of a node may do: user system:node:NAME in group system:nodes touches its own node and lease, the pods
// bound to it, and what those refer to.
//
// Shape:   node_decide() before a request is looked at, beside RBAC; admit_node_caller() once the objects are known.
// Errors:  kForbidden, worded as Kubernetes.
// Threads: any; reads the durable state of the store.
// Source:  k8s.io/kubernetes plugin/pkg/auth/authorizer/node, plugin/pkg/admission/noderestriction. Not followed: from
//          volumes to the secrets that they name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/api_core.h"
#include "apiserver/rbac_rules.h"

namespace tessera::apiserver {

// The node of a caller that is a kubelet: empty for a kubelet of no node, nothing for all others.
std::optional<std::string> node_of(const Caller& caller);

struct NodeDecision {
  bool allowed = false;
  std::string reason{};  // why not
};
NodeDecision node_decide(const Access& access, const std::string& node, const Attributes& wanted);

// Whether an object of the pod's namespace is one that its node needs: "secrets", "configmaps",
// "persistentvolumeclaims", "serviceaccounts".
bool pod_refers_to(const json::Value& pod, std::string_view resource, std::string_view name);

// The resource of an object that the pod refers to; empty where there is none.
std::string_view pod_reference(const json::Value& pod);

// A write of a kubelet; `before` null: a create, `after` null: a delete. Others are let through.
base::Status admit_node_caller(const Core& core, const Call& call, const json::Value& before,
                               const json::Value& after);
base::Status admit_node_eviction(const Core& core, const Call& call, const json::Value& pod);
base::Status admit_node_token(const Core& core, const Call& call);

}  // namespace tessera::apiserver
