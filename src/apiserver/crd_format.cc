#include "apiserver/crd_format.h"

#include <re2/re2.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "apiserver/ip_address.h"
#include "base/time.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

bool matches(const re2::RE2& pattern, std::string_view text) {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

struct Pattern {
  std::string_view format;
  const re2::RE2 pattern;
};

const Pattern* find_pattern(std::string_view format) {
  static const Pattern kPatterns[] = {
      {"bsonobjectid", re2::RE2("^[0-9a-fA-F]{24}$")},
      {"email", re2::RE2(R"(^[^\s@<>]+@[^\s@<>]+$)")},
      {"uuid", re2::RE2("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")},
      {"uuid3",
       re2::RE2("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$")},
      {"uuid4",
       re2::RE2("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$")},
      {"uuid5",
       re2::RE2("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$")},
      {"mac", re2::RE2("^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}([:-][0-9a-fA-F]{2}){0,14}|"
                       R"(([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4})$)")},
      {"ssn", re2::RE2(R"(^\d{3}[- ]?\d{2}[- ]?\d{4}$)")},
      {"hexcolor", re2::RE2("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$")},
      {"rgbcolor", re2::RE2(R"(^rgb\(\s*(\d{1,2}|1\d\d|2[0-4]\d|25[0-5])\s*,\s*)"
                            R"((\d{1,2}|1\d\d|2[0-4]\d|25[0-5])\s*,\s*)"
                            R"((\d{1,2}|1\d\d|2[0-4]\d|25[0-5])\s*\)$)")},
      {"byte", re2::RE2("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|"
                        "[A-Za-z0-9+/]{4})$")},
      {"uri", re2::RE2(R"(^([a-zA-Z][a-zA-Z0-9+.-]*:[^\s\x00-\x1f\x7f]+|/[^\x00-\x1f\x7f]*)$)")},
      {"scaladuration",
       re2::RE2(
           R"(^\s*\d+(\.\d+)?\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|)"
           R"(milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)\s*$)")},
  };
  const auto* at = std::ranges::find(kPatterns, format, &Pattern::format);
  return at == std::end(kPatterns) ? nullptr : at;
}

// A day that there is.
bool is_date(std::string_view text) {
  const auto time = base::parse_rfc3339(std::string(text) + "T00:00:00Z");
  return text.size() == 10 && time && base::to_rfc3339(*time).starts_with(text);
}

bool is_time(std::string_view text) {
  return base::parse_rfc3339(text).has_value() && is_date(text.substr(0, 10));
}

std::string digits_of(std::string_view text, std::string_view ignored) {
  std::string out;
  for (const char c : text) {
    if (ignored.find(c) == std::string_view::npos) out += c;
  }
  return out;
}

bool is_isbn10(std::string_view text) {
  const std::string digits = digits_of(text, "- ");
  if (digits.size() != 10) return false;
  int sum = 0;
  for (size_t i = 0; i < 10; ++i) {
    const bool ten = i == 9 && digits[i] == 'X';
    if (!ten && (digits[i] < '0' || digits[i] > '9')) return false;
    sum += static_cast<int>(i + 1) * (ten ? 10 : digits[i] - '0');
  }
  return sum % 11 == 0;
}

bool is_isbn13(std::string_view text) {
  const std::string digits = digits_of(text, "- ");
  if (digits.size() != 13) return false;
  int sum = 0;
  for (size_t i = 0; i < 13; ++i) {
    if (digits[i] < '0' || digits[i] > '9') return false;
    sum += (i % 2 == 0 ? 1 : 3) * (digits[i] - '0');
  }
  return sum % 10 == 0;
}

// Luhn's check over 12 to 19 digits.
bool is_credit_card(std::string_view text) {
  std::string digits;
  std::ranges::copy_if(text, std::back_inserter(digits),
                       [](char c) { return c >= '0' && c <= '9'; });
  if (digits.size() < 12 || digits.size() > 19) return false;
  int sum = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    int digit = digits[digits.size() - 1 - i] - '0';
    if (i % 2 == 1) digit = digit * 2 > 9 ? digit * 2 - 9 : digit * 2;
    sum += digit;
  }
  return sum % 10 == 0;
}

size_t letters_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool is_hostname(std::string_view text) {
  static const re2::RE2 kOneLabel(R"(^[a-zA-Z0-9\p{S}\p{L}](-?[a-zA-Z0-9\p{S}\p{L}]*)?$)");
  static const re2::RE2 kLabel(
      R"(^[a-zA-Z0-9\p{S}\p{L}]([a-zA-Z0-9\-\p{S}\p{L}]*[a-zA-Z0-9\p{S}\p{L}])?$)");
  static const re2::RE2 kTop(R"(^[a-zA-Z\p{L}]+$)");
  constexpr size_t kLabelMax = 63;
  if (text.size() > 255) return false;
  size_t dot = text.find('.');
  if (dot == std::string_view::npos) return text.size() <= kLabelMax && matches(kOneLabel, text);
  while (dot != std::string_view::npos) {
    if (dot > kLabelMax || !matches(kLabel, text.substr(0, dot))) return false;
    text.remove_prefix(dot + 1);
    dot = text.find('.');
  }
  return text.size() <= kLabelMax && letters_of(text) >= 2 && matches(kTop, text);
}

bool is_ip(std::string_view text, char separator) {
  return text.find(separator) != std::string_view::npos && IpAddress::parse(text).has_value();
}

bool is_duration(std::string_view text) {
  return base::parse_duration(text).has_value() ||
         matches(find_pattern("scaladuration")->pattern, text);
}

}  // namespace

bool has_format(std::string_view format, std::string_view text) {
  std::string plain;
  std::ranges::copy_if(format, std::back_inserter(plain), [](char c) { return c != '-'; });
  if (plain == "password") return true;
  if (plain == "date") return is_date(text);
  if (plain == "datetime") return is_time(text);
  if (plain == "duration") return is_duration(text);
  if (plain == "hostname") return is_hostname(text);
  if (plain == "ipv4") return is_ip(text, '.');
  if (plain == "ipv6") return is_ip(text, ':');
  if (plain == "cidr") return IpPrefix::parse(text).has_value();
  if (plain == "isbn") return is_isbn10(text) || is_isbn13(text);
  if (plain == "isbn10") return is_isbn10(text);
  if (plain == "isbn13") return is_isbn13(text);
  if (plain == "creditcard") return is_credit_card(text);
  if (plain == "k8sshortname") return kube::check_dns1123_label(text).empty();
  if (plain == "k8slongname") return kube::check_dns1123_subdomain(text).empty();
  const Pattern* pattern = find_pattern(plain);
  return pattern == nullptr || matches(pattern->pattern, text);
}

}  // namespace tessera::apiserver
