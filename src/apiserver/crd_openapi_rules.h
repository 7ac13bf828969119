// What Kubernetes takes of OpenAPI v3 in the schema of a CustomResourceDefinition, and the rules of its own extensions.
//
// Errors:  causes added to a FieldErrors, worded as kube-apiserver words them.
// Threads: pure.
// Source:  k8s.io/apiextensions-apiserver v0.36.3 pkg/apis/apiextensions/validation/validation.go.
#pragma once

#include <string>

#include "apiserver/kind.h"
#include "json/value.h"

namespace tessera::apiserver {

// `path` is where openAPIV3Schema stands; `status`: the version has the status subresource.
void check_root_rules(const json::Value& schema, const std::string& path, bool status,
                      FieldErrors& errors);
void check_openapi_rules(const json::Value& schema, const std::string& path, FieldErrors& errors);

}  // namespace tessera::apiserver
