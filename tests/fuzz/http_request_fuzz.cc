// The HTTP/1.x request reader: however the bytes are cut, it comes to the same end, takes no more than it was given and
// keeps its limits. The first byte says how large the pieces are.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "http/request_reader.h"

using namespace tessera;

namespace {

constexpr size_t kHeaderMax = 512;
constexpr size_t kBodyMax = 64;

struct End {
  bool done = false;
  bool failed = false;
  http::Request request;
};

End read(std::string_view text, size_t piece) {
  http::RequestReader reader(kHeaderMax, kBodyMax);
  std::string buffer;
  while (!text.empty() && !reader.done() && !reader.failed()) {
    const size_t count = std::min(piece, text.size());
    buffer += text.substr(0, count);
    text.remove_prefix(count);
    const size_t taken = reader.feed(buffer);
    TS_CHECK(taken <= buffer.size());
    buffer.erase(0, taken);
    TS_CHECK(reader.failed() || buffer.size() <= kHeaderMax || reader.done());
  }
  TS_CHECK(!reader.failed() || reader.error_status() >= 400);
  return {reader.done(), reader.failed(), reader.done() ? reader.take() : http::Request{}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t piece = size_t{data[0]} % 64 + 1;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const End whole = read(text, text.size());
  const End pieces = read(text, piece);
  TS_CHECK(whole.request.body.size() <= kBodyMax);
  if (!whole.done || !pieces.done)
    return 0;  // a limit may be met earlier when more is seen at once
  TS_CHECK(whole.request.method == pieces.request.method);
  TS_CHECK(whole.request.target == pieces.request.target);
  TS_CHECK(whole.request.headers == pieces.request.headers);
  TS_CHECK(whole.request.body == pieces.request.body);
  return 0;
}
