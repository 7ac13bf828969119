#include "apiserver/api_token.h"

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "apiserver/api_errors.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using base::Code;

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr size_t kTokenMax = 4096;

std::string to_base64url(std::string_view bytes) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) out += kDigits[(bits >> (count - 6)) & 63];
  }
  if (count > 0) out += kDigits[(bits << (6 - count)) & 63];
  return out;
}

std::optional<std::string> from_base64url(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>((bits >> count) & 255);
    }
  }
  return out;
}

// The text as a whole number, or what Go's strconv says of it.
template <class Number>
base::Result<Number> parse_number(std::string_view text) {
  constexpr const char* kParser = std::is_signed_v<Number> ? "ParseInt" : "ParseUint";
  Number value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size();
  if (ec == std::errc() && whole) return value;
  const bool large = ec == std::errc::result_out_of_range && whole;
  return base::error(Code::kBadRequest, "strconv.{}: parsing {}: {}", kParser,
                     json::Value(text.substr(0, 64)).dump(),
                     large ? "value out of range" : "invalid syntax");
}

// Where Go's decoder of base64 without padding stops.
size_t bad_byte_of(std::string_view text) {
  const size_t bad = text.find_first_not_of(kDigits);
  return bad == std::string_view::npos ? text.size() - text.size() % 4 : bad;
}

}  // namespace

base::Result<std::optional<int64_t>> read_integer(const kube::Request& request,
                                                  std::string_view option) {
  const std::string_view text = request.option(option);
  if (text.empty()) return std::optional<int64_t>();
  TS_TRY(const int64_t value, parse_number<int64_t>(text));
  return std::optional<int64_t>(value);
}

base::Result<std::optional<uint64_t>> read_number(const kube::Request& request,
                                                  std::string_view option) {
  TS_TRY(const auto value, read_integer(request, option));
  if (!value) return std::optional<uint64_t>();
  return std::optional<uint64_t>(static_cast<uint64_t>(std::max<int64_t>(*value, 0)));
}

base::Result<std::optional<uint64_t>> read_version(const kube::Request& request) {
  const std::string_view text = request.option("resourceVersion");
  if (text.empty()) return std::optional<uint64_t>();
  auto value = parse_number<uint64_t>(text);
  if (value && *value > INT64_MAX) {
    value = base::error(Code::kBadRequest, "strconv.ParseUint: parsing \"{}\": value out of range",
                        text);
  }
  if (value) return std::optional<uint64_t>(*value);
  return base::error(
      plain_error(fmt::format("resourceVersion: Invalid value: {}: {}",
                              json::Value(text.substr(0, 64)).dump(), value.error().message)));
}

bool read_flag(const kube::Request& request, std::string_view option) {
  for (const auto& [key, value] : request.query) {
    if (key == option) return value != "false" && value != "0";
  }
  return false;
}

std::string ContinueToken::text() const {
  const json::Value token =
      json::Value::object({{"rest", rest},
                           {"rv", moment_lost ? -1 : static_cast<int64_t>(revision)},
                           {"start", last_key},
                           {"v", "meta.k8s.io/v1"}});
  return to_base64url(token.dump());
}

base::Result<ContinueToken> ContinueToken::parse(std::string_view text) {
  const auto bad = [](std::string_view why) {
    return base::error(
        bad_request(fmt::format("invalid continue token: continue key is not valid: {}", why)));
  };
  if (text.size() > kTokenMax) return bad("it is too long");
  const auto bytes = from_base64url(text);
  if (!bytes || text.size() % 4 == 1) {
    return bad(fmt::format("illegal base64 data at input byte {}", bad_byte_of(text)));
  }
  const auto token = json::parse(*bytes);
  if (!token) return bad(token.error().message);
  if ((*token)["v"].as_string() != "meta.k8s.io/v1") {
    return bad("server does not recognize this encoded version");
  }
  const int64_t revision = (*token)["rv"].as_int();
  if (revision <= 0 && revision != -1) {
    return bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  }
  if ((*token)["start"].as_string().empty()) {
    return bad("encoded start key empty (version meta.k8s.io/v1)");
  }
  return ContinueToken{static_cast<uint64_t>(std::max<int64_t>(revision, 0)),
                       (*token)["start"].str(), std::max<int64_t>((*token)["rest"].as_int(), 0),
                       revision < 0};
}

base::Status check_list_options(const kube::Request& request) {
  constexpr const char* kField = "resourceVersionMatch";
  const std::string_view match = request.option(kField);
  FieldErrors errors;
  if (!match.empty()) {
    const std::string_view version = request.option("resourceVersion");
    if (version.empty()) {
      errors.forbidden(kField,
                       "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (!request.option("continue").empty()) {
      errors.forbidden(kField, "resourceVersionMatch is forbidden when continue is provided");
    }
    if (match != "Exact" && match != "NotOlderThan") {
      errors.not_supported(kField, match.substr(0, 64), {"Exact", "NotOlderThan", ""});
    }
    if (match == "Exact" && version == "0") {
      errors.forbidden(kField,
                       "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
  }
  if (!request.option("sendInitialEvents").empty()) {
    errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
  }
  if (errors.empty()) return {};
  return base::error(invalid_options("ListOptions", errors.causes()));
}

namespace {

// A watch that names no version starts with what is there, unless it says how it wants to start.
bool starts_with_all_by_default(const kube::Request& request) {
  const std::string_view version = request.option("resourceVersion");
  return request.option("sendInitialEvents").empty() &&
         request.option("resourceVersionMatch").empty() && (version.empty() || version == "0");
}

}  // namespace

bool asks_initial_events(const kube::Request& request) {
  return starts_with_all_by_default(request) || read_flag(request, "sendInitialEvents");
}

base::Status check_watch_options(const kube::Request& request) {
  constexpr const char* kField = "resourceVersionMatch";
  const bool by_default = starts_with_all_by_default(request);
  const std::string_view match = by_default ? "NotOlderThan" : request.option(kField);
  const bool initial = by_default || !request.option("sendInitialEvents").empty();
  FieldErrors errors;
  if (initial && match != "NotOlderThan") {
    errors.forbidden(kField,
                     "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  }
  if (!match.empty()) {
    if (!initial) {
      errors.forbidden(
          kField,
          "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if (match != "NotOlderThan") {
      errors.not_supported(kField, match.substr(0, 64), {"NotOlderThan"});
    }
    if (!request.option("continue").empty()) {
      errors.forbidden(kField, "resourceVersionMatch is forbidden when continue is provided");
    }
  }
  if (errors.empty()) return {};
  return base::error(invalid_options("ListOptions", errors.causes()));
}

base::Result<ListVersion> ListVersion::parse(const kube::Request& request) {
  TS_TRY_STATUS(check_list_options(request));
  const auto version = read_version(request);
  if (!version) {
    return base::error(bad_request("invalid resource version: " + version.error().message));
  }
  ListVersion out;
  if (!*version) return out;
  const std::string_view match = request.option("resourceVersionMatch");
  const auto limit = read_number(request, "limit");
  const bool paged = limit && limit->value_or(0) != 0;
  (match == "Exact" || (match.empty() && paged) ? out.exact : out.at_least) = **version;
  return out;
}

base::Status check_not_ahead(uint64_t wanted, uint64_t current) {
  if (wanted <= current) return {};
  base::Error error{Code::kTimeout,
                    fmt::format("Too large resource version: {}, current: {}", wanted, current),
                    {}};
  error.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  return base::error(std::move(error));
}

}  // namespace tessera::apiserver
