#include "http/uri.h"

namespace tessera::http {
namespace {

using base::Code;
using base::Result;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

Result<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return base::error(Code::kBadRequest,
                           "bad escape \"{}\" in the request target: write % and two hex digits",
                           text.substr(i, 3));
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  if (out.find('\0') != std::string::npos) {
    return base::error(Code::kBadRequest, "the request target holds a zero byte (%00)");
  }
  return out;
}

// Decoded first, then split: "%2F" parts segments as "/" does. Nothing is folded: "", "." and ".." stay what they are.
Result<std::vector<std::string>> parse_path(std::string_view path) {
  TS_TRY(const std::string decoded, decode(path.substr(1), false));
  std::vector<std::string> segments;
  for (std::string_view rest = decoded; !rest.empty();) {
    const size_t slash = std::min(rest.find('/'), rest.size());
    segments.emplace_back(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  return segments;
}

base::Status parse_query(std::string_view query,
                         std::vector<std::pair<std::string, std::string>>& pairs) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    TS_TRY(std::string key, decode(pair.substr(0, equals), true));
    TS_TRY(std::string value, decode(pair.substr(std::min(equals + 1, pair.size())), true));
    pairs.emplace_back(std::move(key), std::move(value));
  }
  return {};
}

}  // namespace

Result<Target> parse_target(std::string_view target) {
  if (target.empty() || target[0] != '/') {
    return base::error(Code::kBadRequest, "the request target \"{}\" does not start with /",
                       target.substr(0, 100));
  }
  for (const char c : target) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == '#') {
      return base::error(Code::kBadRequest,
                         "the request target holds the byte 0x{:02x}: percent-encode it",
                         static_cast<unsigned char>(c));
    }
  }
  Target out;
  const size_t mark = std::min(target.find('?'), target.size());
  TS_TRY(out.segments, parse_path(target.substr(0, mark)));
  if (mark < target.size()) TS_TRY_STATUS(parse_query(target.substr(mark + 1), out.query));
  return out;
}

std::string percent_encode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string make_query(const std::vector<std::pair<std::string, std::string>>& query) {
  std::string out;
  for (const auto& [key, value] : query) {
    if (!out.empty()) out += '&';
    out += percent_encode(key);
    out += '=';
    out += percent_encode(value);
  }
  return out;
}

}  // namespace tessera::http
