// The schema of a custom kind as the OpenAPI documents show it.
//
// Shape:   the schema of the definition, with apiVersion, kind and metadata of every object. Version 2 cannot tell as much:
//          combinations, nulls and fields that are kept unknown leave less of it, so that old clients refuse nothing.
// Threads: pure.
// Source:  k8s.io/apiextensions-apiserver v0.36.3 pkg/controller/openapi (builder, v2).
#pragma once

#include <string>

#include "apiserver/kind.h"
#include "json/value.h"

namespace tessera::apiserver {

// "com.example.stable.v1.CronTab".
std::string custom_model_name(const Kind& kind, std::string_view name);
json::Value custom_openapi(const Kind& kind, bool v3);

}  // namespace tessera::apiserver
