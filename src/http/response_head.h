// The status line and headers of an answer as bytes.
//
// Source:  RFC 9112 (framing), RFC 9110 (dates, which answers have a body).
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "http/server.h"

namespace tessera::http {

enum class BodyKind { kLength, kChunked, kUntilClose };

struct HeadFacts {
  std::string_view date;
  BodyKind body = BodyKind::kLength;
  bool close = false;
  bool http_1_0 = false;
};

// Control characters in header values (a line break would start a new header) become spaces;
// headers with a name that is no token are left out.
std::string response_head(const Response& response, const HeadFacts& facts);
bool has_body(int status);
std::string_view reason_phrase(int status);
// "Mon, 30 Nov 2026 09:40:30 GMT"
std::string http_date(base::Time time);

}  // namespace tessera::http
