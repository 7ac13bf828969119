// The formats of strings in custom objects.
//
// Threads: pure.
// Source:  k8s.io/kube-openapi pkg/validation/strfmt (which formats, and what passes).
#pragma once

#include <string_view>

namespace tessera::apiserver {

// True for a text of the format, and for a format that is not known (crd_schema.h: is_known_format).
bool has_format(std::string_view format, std::string_view text);

}  // namespace tessera::apiserver
