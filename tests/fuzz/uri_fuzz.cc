// Request targets and base64: what is accepted must come back the same when written again.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "http/tls.h"
#include "http/uri.h"

using namespace tessera;

namespace {

void check_target(std::string_view text) {
  const auto target = http::parse_target(text);
  if (!target) return;
  std::string again;
  for (const std::string& segment : target->segments) again += "/" + http::percent_encode(segment);
  if (target->segments.empty() || target->segments.back().empty()) again += "/";
  if (!target->query.empty()) again += "?" + http::make_query(target->query);
  const auto second = http::parse_target(again);
  TS_CHECK(second.has_value());
  TS_CHECK(second->segments == target->segments);
  TS_CHECK(second->query == target->query);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_target(text);
  TS_CHECK(http::unbase64(http::base64(text)).value() == text);
  const auto bytes = http::unbase64(text);
  if (bytes) TS_CHECK(http::unbase64(http::base64(*bytes)).value() == *bytes);
  return 0;
}
