// Quantities: "a b" are two texts. What is read writes to text that reads back to the same amount; sums and order agree.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/quantity.h"

using namespace tessera;
using kube::Quantity;

namespace {

base::Result<Quantity> read(std::string_view text) {
  auto q = Quantity::parse(text);
  if (!q) {
    TS_CHECK(q.error().code == base::Code::kBadRequest);
    return q;
  }
  const std::string written = q->to_string();
  if (written.size() > 1000) return q;
  const auto back = Quantity::parse(written);
  TS_CHECK(back.has_value(), "{} became {}", text, written);
  TS_CHECK(*back == *q, "{} became {}", text, written);
  const int64_t value = q->value();
  TS_CHECK((value > 0) == (q->sign() > 0) && (value < 0) == (q->sign() < 0), "{}", text);
  return q;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t space = text.find(' ');
  const auto a = read(text.substr(0, space));
  if (!a || space == text.npos) return 0;
  const auto b = read(text.substr(space + 1));
  if (!b) return 0;
  TS_CHECK((*a < *b) == (*b > *a) && (*a == *b) == (*b == *a), "{}", text);
  const Quantity sum = *a + *b;
  TS_CHECK(sum == *b + *a, "{}", text);
  TS_CHECK((*a - *a).is_zero(), "{}", text);
  if (b->sign() >= 0) TS_CHECK(sum >= *a, "{}", text);
  return 0;
}
