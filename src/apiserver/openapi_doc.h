// The OpenAPI documents: an index and one v3 document a group version, and one v2 document for all.
//
// Shape:   paths carry x-kubernetes-action and x-kubernetes-group-version-kind and the query
//          parameters that clients look for (kubectl reads fieldValidation off PATCH to learn
//          whether the server validates); components are the types that the kinds reach, from
//          kube::openapi_schema. JSON only.
// Errors:  null for a group version that no kind has.
// Threads: pure.
// Source:  OpenAPI 3.0.0 and 2.0; k8s.io/kube-openapi (extensions).
#pragma once

#include <string>
#include <string_view>

#include "apiserver/kind.h"
#include "json/value.h"

namespace tessera::apiserver {

// "api/v1" or "apis/apps/v1".
std::string openapi_path(std::string_view group, std::string_view version);

json::Value openapi_v3(const Kinds& kinds, std::string_view group, std::string_view version);
json::Value openapi_v2(const Kinds& kinds);

// What changes when the text does: 16 hexadecimal digits, for ETag and the index's ?hash=.
std::string text_hash(std::string_view text);

}  // namespace tessera::apiserver
