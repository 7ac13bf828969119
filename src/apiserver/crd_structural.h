// Whether the schema of a CustomResourceDefinition is a structural one that the API server can serve by.
//
// Shape:   validate_schema applies the rules of structural schemas, those of OpenAPI v3 as Kubernetes takes it, and checks
//          that every default is one of its schema and has no unknown fields. Rules of x-kubernetes-validations must have
//          their form; what they say is not evaluated.
// Errors:  causes added to a FieldErrors, worded as kube-apiserver words them.
// Threads: pure.
// Source:  k8s.io/apiextensions-apiserver v0.36.3 pkg/apiserver/schema/validation.go, complete.go, defaulting,
//          pkg/apis/apiextensions/validation.
#pragma once

#include <functional>
#include <string>

#include "apiserver/kind.h"
#include "json/value.h"

namespace tessera::apiserver {

// Whether `is` holds of the schema or of one inside it, in the order of Kubernetes' own walk.
bool any_schema(const json::Value& schema, const std::function<bool(const json::Value&)>& is);

// `path` is where openAPIV3Schema stands; `status`: the version has the status subresource.
void validate_schema(const json::Value& schema, const std::string& path, bool status,
                     FieldErrors& errors);

// A field that objects may be selected by.
void validate_selectable_field(const json::Value& schema, const json::Value& field,
                               const std::string& path, FieldErrors& errors);

}  // namespace tessera::apiserver
