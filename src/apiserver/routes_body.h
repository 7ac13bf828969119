// Reading request bodies: JSON, YAML, protobuf and the four kinds of patch.
//
// Shape:   read_body fills request.body (and patch_type) for an operation; DeleteOptions given as
//          query parameters are put into the body, so that the core reads one form.
// Errors:  kUnsupportedMediaType, kTooLarge (over 3 MiB, as Kubernetes), kBadRequest: malformed,
//          too deep, or with fieldValidation=Strict a key that stands twice. With Warn (the
//          default) such keys become warnings.
// Threads: pure.
// Source:  k8s.io/apiserver/pkg/endpoints/handlers (create.go, patch.go, delete.go).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/routes.h"

namespace tessera::apiserver {

constexpr size_t kBodyBytesMax = size_t{3} << 20;
base::Error too_large_body();

struct RawBody {
  std::string_view content_type;
  std::string_view bytes;
};

base::Status read_body(const RawBody& raw, const Kind& kind, kube::Request& request,
                       std::vector<std::string>* warnings);

}  // namespace tessera::apiserver
