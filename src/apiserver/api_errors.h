// The errors of the API in Kubernetes' words.
//
// Threads: pure.
// Source:  k8s.io/apimachinery/pkg/api/errors (wording).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kind.h"
#include "base/result.h"

namespace tessera::apiserver {

base::Error not_found(const Kind& kind, std::string_view name);
base::Error already_exists(const Kind& kind, std::string_view name);
// "Operation cannot be fulfilled on pods "x": <why>".
base::Error conflict(const Kind& kind, std::string_view name, std::string_view why);
base::Error modified(const Kind& kind, std::string_view name);
// "pods "x" is forbidden: <why>".
base::Error forbidden(const Kind& kind, std::string_view name, std::string_view why);
// "Pod "x" is invalid: [a, b]".
base::Error invalid(const Kind& kind, std::string_view name, std::vector<base::Cause> causes);
base::Error bad_request(std::string message);
base::Error method_not_allowed();

}  // namespace tessera::apiserver
