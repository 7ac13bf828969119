#include "apiserver/api_token.h"

#include <algorithm>
#include <charconv>

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

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

tl::unexpected<base::Error> bad_options(std::string field, std::string why) {
  base::Error error{Code::kInvalid,
                    fmt::format("ListOptions.meta.k8s.io \"\" is invalid: {}: {}", field, why),
                    {}};
  error.causes.push_back({"FieldValueForbidden", std::move(why), std::move(field)});
  return base::error(std::move(error));
}

}  // namespace

base::Result<std::optional<uint64_t>> read_number(const kube::Request& request,
                                                  std::string_view option) {
  const std::string_view text = request.option(option);
  if (text.empty()) return std::optional<uint64_t>();
  const auto value = parse_number(text);
  if (!value || *value > INT64_MAX) {
    return base::error(Code::kBadRequest,
                       "invalid {} \"{}\": give a whole number from 0 to 9223372036854775807",
                       option, text.substr(0, 64));
  }
  return value;
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
  const auto bad = [] {
    return base::error(bad_request("continue key is not valid: start a new list without it"));
  };
  if (text.size() > kTokenMax) return bad();
  const auto bytes = from_base64url(text);
  if (!bytes) return bad();
  const auto token = json::parse(*bytes);
  const int64_t revision = token ? (*token)["rv"].as_int() : 0;
  if ((revision <= 0 && revision != -1) || (*token)["start"].as_string().empty() ||
      (*token)["v"].as_string() != "meta.k8s.io/v1") {
    return bad();
  }
  return ContinueToken{static_cast<uint64_t>(std::max<int64_t>(revision, 0)),
                       (*token)["start"].str(), std::max<int64_t>((*token)["rest"].as_int(), 0),
                       revision < 0};
}

base::Result<ListVersion> ListVersion::parse(const kube::Request& request) {
  TS_TRY(const auto version, read_number(request, "resourceVersion"));
  const std::string_view match = request.option("resourceVersionMatch");
  ListVersion out;
  if (match.empty()) {
    if (!version) return out;
    const auto limit = read_number(request, "limit");
    const bool paged = limit && limit->value_or(0) != 0;
    (paged ? out.exact : out.at_least) = *version;
    return out;
  }
  constexpr const char* kField = "resourceVersionMatch";
  if (!version) {
    return bad_options(kField,
                       "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is "
                       "provided");
  }
  if (!request.option("continue").empty()) {
    return bad_options(kField,
                       "Forbidden: resourceVersionMatch is forbidden when continue is provided");
  }
  if (match == "Exact") {
    if (*version == 0) {
      return bad_options(
          kField,
          "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    out.exact = *version;
  } else if (match == "NotOlderThan") {
    out.at_least = *version;
  } else {
    return bad_options(kField, fmt::format("Unsupported value: \"{}\": supported values: \"Exact\","
                                           " \"NotOlderThan\"",
                                           match.substr(0, 64)));
  }
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
