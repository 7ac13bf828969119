// The reader of HTTP/1.x answers: however the bytes are cut, it comes to the same end and keeps its limits. The first byte says
// how large the pieces are, and whether the request was HEAD.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "http/response_reader.h"

using namespace tessera;

namespace {

constexpr size_t kBodyMax = 64;

http::ResponseReader read(std::string_view text, size_t piece, bool to_head) {
  http::ResponseReader reader({kBodyMax, 2 * kBodyMax}, to_head);
  for (size_t at = 0; at < text.size(); at += piece) {
    reader.feed(text.substr(at, piece));
    TS_CHECK(reader.response().body.size() <= 2 * kBodyMax);
  }
  reader.closed();
  TS_CHECK(!reader.keeps());
  return reader;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t piece = size_t{data[0]} % 64 + 1;
  const bool to_head = data[0] >= 192;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  auto whole = read(text, text.size(), to_head);
  auto pieces = read(text, piece, to_head);
  TS_CHECK(whole.state() == pieces.state());
  TS_CHECK(whole.too_large() == pieces.too_large());
  if (whole.state() != http::ResponseReader::State::kDone) return 0;
  TS_CHECK(whole.response().status == pieces.response().status);
  TS_CHECK(whole.response().headers == pieces.response().headers);
  TS_CHECK(whole.response().body == pieces.response().body);
  return 0;
}
