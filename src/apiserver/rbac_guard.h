// Nobody hands out rights that they do not hold: the check on writes of roles and bindings.
//
// Errors:  kForbidden naming the rules that are missing.
// Source:  k8s.io/kubernetes pkg/registry/rbac (escalation_check, policybased storage): verbs "escalate" and "bind".
#pragma once

#include "apiserver/api_core.h"

namespace tessera::apiserver {

// `before` null: a create.
base::Status admit_rights(Core& core, const Call& call, const json::Value& object,
                          const json::Value& before);

// For a patch or update that makes the object: the caller must hold "create" as well.
base::Status may_create(Core& core, const Call& call);

}  // namespace tessera::apiserver
