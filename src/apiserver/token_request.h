// serviceaccounts/NAME/token: a new token for a service account, bound to a pod, a secret or a node where asked.
//
// Source:  k8s.io/kubernetes pkg/registry/core/serviceaccount/storage (TokenREST), authentication/v1 TokenRequest.
#pragma once

#include "apiserver/api_core.h"

namespace tessera::apiserver {

void do_token(Core& core, const CallPtr& call);

}  // namespace tessera::apiserver
