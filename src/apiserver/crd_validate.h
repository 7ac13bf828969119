// Whether an object is one of its schema.
//
// Shape:   validate_by_schema checks types, values, required fields and the combinations anyOf, oneOf, allOf and not;
//          validate_lists that sets and maps have every element once; validate_embedded the objects inside objects. What is
//          wrong is worded as kube-apiserver words it.
// Errors:  causes added to a FieldErrors; at most kSchemaErrorsMax of them, so that an answer has a bound.
// Threads: pure.
// Source:  k8s.io/kube-openapi pkg/validation/validate and errors; k8s.io/apiextensions-apiserver v0.36.3
//          pkg/apiserver/validation, pkg/apiserver/schema/listtype, pkg/apiserver/schema/objectmeta.
#pragma once

#include <string_view>

#include "apiserver/crd_schema.h"
#include "apiserver/kind.h"
#include "json/value.h"

namespace tessera::apiserver {

inline constexpr size_t kSchemaErrorsMax = 1000;

// `before` is what stood there (null for a new object): what did not change is not looked at again. `at` is where the value
// stands: "" for an object, "status" for its status alone.
void validate_by_schema(const CrdSchema& schema, const json::Value& value,
                        const json::Value* before, std::string_view at, FieldErrors& errors);
void validate_lists(const CrdSchema& schema, const json::Value& object, FieldErrors& errors);
void validate_embedded(const CrdSchema& schema, const json::Value& object, FieldErrors& errors);

}  // namespace tessera::apiserver
