// Errors as values: Result<T> is a T or an Error, and ignoring one is a warning (hence an error).
//
// Shape:   Error{code, message, causes}; the codes follow Kubernetes' metav1.Status reasons one to one, so that the API
//          server maps them without exceptions, plus two of the scheduler's: kBusy (not now) and kNever (no node could).
// Errors:  messages are lower case, without a full stop, and name the object, the limit and the mend.
// Threads: plain values.
// Source:  k8s.io/apimachinery/pkg/apis/meta/v1/types.go (reasons and HTTP codes).
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace tessera::base {

enum class Code {
  kBadRequest,
  kUnauthorized,
  kForbidden,
  kNotFound,
  kMethodNotAllowed,
  kNotAcceptable,
  kAlreadyExists,
  kConflict,
  kExpired,
  kTooLarge,
  kUnsupportedMediaType,
  kInvalid,
  kTooManyRequests,
  kInternal,
  kUnavailable,
  kTimeout,
  kBusy,
  kNever,
};

// One reason inside an error, as metav1.StatusCause: `field` is a path such as "spec.containers[0].image", `reason` is
// Kubernetes' cause type ("FieldValueInvalid").
struct Cause {
  std::string reason;
  std::string message;
  std::string field;
};

struct Error {
  Code code = Code::kInternal;
  std::string message;
  std::vector<Cause> causes;

  // The same error seen from one level up: "while reading fleet.yaml: <message>".
  [[nodiscard]] Error in(std::string_view context) const&;
};

// Kubernetes' reason word ("NotFound") and HTTP status (404) of a code. kBusy and kNever are 503 and 422 there.
std::string_view reason_of(Code code);
int http_status_of(Code code);
// The code that an HTTP status from a server stands for, when it sent no Status object.
Code code_of_http_status(int status);

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

using Status = Result<void>;

// Makes an error; the arguments are fmt's.
template <class... Args>
tl::unexpected<Error> error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...), {}});
}
inline tl::unexpected<Error> error(Error e) {
  return tl::unexpected<Error>(std::move(e));
}

}  // namespace tessera::base

// TS_TRY(auto x, f()) binds x to the value or returns the error; TS_TRY_STATUS(f()) only returns the error.
#define TS_CONCAT_(a, b) a##b
#define TS_CONCAT(a, b) TS_CONCAT_(a, b)
#define TS_TRY(decl, expr) TS_TRY_(decl, expr, TS_CONCAT(ts_try_, __LINE__))
#define TS_TRY_(decl, expr, tmp)                                                     \
  auto tmp = (expr);                                                                 \
  if (!tmp) return ::tl::unexpected<::tessera::base::Error>(std::move(tmp).error()); \
  decl = std::move(*tmp)
#define TS_TRY_STATUS(expr)                                                           \
  do {                                                                                \
    auto ts_status_ = (expr);                                                         \
    if (!ts_status_)                                                                  \
      return ::tl::unexpected<::tessera::base::Error>(std::move(ts_status_).error()); \
  } while (false)
