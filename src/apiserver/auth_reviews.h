// The kinds that are asked and never stored: who am I, what may I, whose token is this.
//
// Shape:   each is a Kind with virtual_create; add_review_kinds puts them into the table.
// Source:  k8s.io/kubernetes pkg/registry/{authentication,authorization}; the groups authentication.k8s.io/v1 and
//          authorization.k8s.io/v1.
#pragma once

#include "apiserver/api_core.h"

namespace tessera::apiserver {

// A create of a virtual kind.
void do_virtual_create(Core& core, const CallPtr& call);

}  // namespace tessera::apiserver
