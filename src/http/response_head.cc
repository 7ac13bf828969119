#include "http/response_head.h"

#include <fmt/format.h>

#include <ctime>
#include <iterator>

namespace tessera::http {
namespace {

bool is_token(std::string_view name) {
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  if (name.empty()) return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && kMarks.find(c) == std::string_view::npos) return false;
  }
  return true;
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  if (!is_token(name)) return;
  out += name;
  out += ": ";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    out += (byte < 0x20 && c != '\t') || byte == 0x7f ? ' ' : c;
  }
  out += "\r\n";
}

}  // namespace

std::string_view reason_phrase(int status) {
  struct Phrase {
    int status;
    std::string_view text;
  };
  static constexpr Phrase kPhrases[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  };
  for (const Phrase& phrase : kPhrases) {
    if (phrase.status == status) return phrase.text;
  }
  return "Other";
}

bool has_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

std::string response_head(const Response& response, const HeadFacts& facts) {
  std::string out;
  out.reserve(256);
  const auto end = std::back_inserter(out);
  fmt::format_to(end, "HTTP/1.1 {} {}\r\ndate: {}\r\n", response.status,
                 reason_phrase(response.status), facts.date);
  for (const auto& [name, value] : response.headers) append_header(out, name, value);
  if (has_body(response.status)) {
    if (!response.content_type.empty()) {
      append_header(out, "content-type", response.content_type);
    }
    if (facts.body == BodyKind::kLength) {
      fmt::format_to(end, "content-length: {}\r\n", response.body.size());
    } else if (facts.body == BodyKind::kChunked) {
      out += "transfer-encoding: chunked\r\n";
    }
  }
  if (facts.close) {
    out += "connection: close\r\n";
  } else if (facts.http_1_0) {
    out += "connection: keep-alive\r\n";
  }
  out += "\r\n";
  return out;
}

std::string http_date(base::Time time) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto seconds = static_cast<time_t>(time.ns / 1'000'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[parts.tm_wday], parts.tm_mday,
                     kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                     parts.tm_sec);
}

}  // namespace tessera::http
