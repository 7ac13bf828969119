// The OpenAPI v2 document in protobuf, which client-go's discovery asks for and takes in no other form.
//
// Shape:   the messages of the gnostic models (package openapi.v2); what openapi_v2() makes and what a schema of a
//          custom kind may hold. Values of any type (extensions, defaults, enum words) are YAML text, as there.
// Errors:  none: a member that the messages do not know is left out.
// Threads: pure.
// Source:  github.com/google/gnostic-models v0.7.0, openapiv2/OpenAPIv2.proto.
#pragma once

#include <string>
#include <string_view>

#include "json/value.h"

namespace tessera::apiserver {

inline constexpr std::string_view kOpenapiProtobuf =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
// How clients write it that are older than media types without '@'.
inline constexpr std::string_view kOpenapiProtobufOld =
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

std::string openapi_v2_protobuf(const json::Value& document);

}  // namespace tessera::apiserver
