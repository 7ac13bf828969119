#include "base/result.h"

#include <array>

namespace tessera::base {
namespace {

struct Row {
  Code code;
  std::string_view reason;
  int status;
};

constexpr std::array<Row, 18> kRows = {{
    {Code::kBadRequest, "BadRequest", 400},
    {Code::kUnauthorized, "Unauthorized", 401},
    {Code::kForbidden, "Forbidden", 403},
    {Code::kNotFound, "NotFound", 404},
    {Code::kMethodNotAllowed, "MethodNotAllowed", 405},
    {Code::kNotAcceptable, "NotAcceptable", 406},
    {Code::kAlreadyExists, "AlreadyExists", 409},
    {Code::kConflict, "Conflict", 409},
    {Code::kExpired, "Expired", 410},
    {Code::kTooLarge, "RequestEntityTooLarge", 413},
    {Code::kUnsupportedMediaType, "UnsupportedMediaType", 415},
    {Code::kInvalid, "Invalid", 422},
    {Code::kTooManyRequests, "TooManyRequests", 429},
    {Code::kInternal, "InternalError", 500},
    {Code::kUnavailable, "ServiceUnavailable", 503},
    {Code::kTimeout, "Timeout", 504},
    {Code::kBusy, "ServiceUnavailable", 503},
    {Code::kNever, "Invalid", 422},
}};

const Row& row_of(Code code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  return kRows[13];
}

}  // namespace

Error Error::in(std::string_view context) const& {
  return Error{code, fmt::format("{}: {}", context, message), causes};
}

std::string_view reason_of(Code code) {
  return row_of(code).reason;
}

int http_status_of(Code code) {
  return row_of(code).status;
}

Code code_of_http_status(int status) {
  if (status == 409) return Code::kConflict;
  for (const Row& row : kRows) {
    if (row.status == status) return row.code;
  }
  return status >= 500 ? Code::kInternal : Code::kBadRequest;
}

}  // namespace tessera::base
