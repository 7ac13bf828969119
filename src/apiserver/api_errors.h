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
// "ListOptions.meta.k8s.io "" is invalid: a": what is wrong with the options of a request.
base::Error invalid_options(std::string_view options, std::vector<base::Cause> causes);
// The field of a cause that says: this is the real server's plain error, of 500 without a reason and details.
inline constexpr std::string_view kPlainField = "status.reason";
base::Error plain_error(std::string message);
// The client means another object of that name.
base::Error other_uid(const Kind& kind, const json::Value& object, std::string_view uid);
base::Error bad_request(std::string message);
base::Error method_not_allowed();

}  // namespace tessera::apiserver
