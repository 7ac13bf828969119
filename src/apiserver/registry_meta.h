// Server-owned metadata.
//
// Source:  k8s.io/apiserver/pkg/registry/rest/update.go, meta.go (semantics).
#pragma once

#include "json/value.h"

namespace tessera::apiserver {

// Carries what the server owns over from the stored object into the one that replaces it.
void carry_meta(json::Value& object, const json::Value& before);

}  // namespace tessera::apiserver
