// The text of data/kubernetes.schema, compiled in (module.cmake makes the source file from it).
#pragma once

#include <string_view>

namespace tessera::kube {

extern const std::string_view kSchemaText;

}  // namespace tessera::kube
