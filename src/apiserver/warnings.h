// What Kubernetes warns of in an object that it takes: deprecated fields and labels, names given twice, what cannot work.
//
// Errors:  none; the texts go to the client as Warning headers.
// Threads: pure.
// Source:  k8s.io/kubernetes v1.36.3 pkg/api/pod/warnings.go, pkg/api/service/warnings.go, pkg/api/persistentvolume, the
//          WarningsOnCreate and WarningsOnUpdate of pkg/registry.
#pragma once

#include <string>
#include <vector>

#include "apiserver/kind.h"

namespace tessera::apiserver {

// `before` null: a create.
std::vector<std::string> warnings_of(const Kind& kind, const json::Value& object,
                                     const json::Value& before);

// Of a pod's spec and of the metadata beside it. `at` is where both stand: "" or "spec.template".
void warn_of_pod(const json::Value& pod, std::string_view at, std::vector<std::string>& out);

}  // namespace tessera::apiserver
