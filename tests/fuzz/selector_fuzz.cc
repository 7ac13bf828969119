// Selectors: the text is tried as a label selector and as a field selector. What is read writes and reads back the same,
// and selects the same.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "kube/labels.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const kube::StringMap labels = {{"a", "b"}, {"n", "5"}, {"x/y", ""}};
  if (const auto selector = kube::LabelSelector::parse(text)) {
    const auto back = kube::LabelSelector::parse(selector->to_string());
    TS_CHECK(back.has_value() && *back == *selector, "{}", text);
    TS_CHECK(back->matches(labels) == selector->matches(labels), "{}", text);
  } else {
    TS_CHECK(selector.error().code == base::Code::kBadRequest);
  }
  if (const auto selector = kube::FieldSelector::parse(text)) {
    const auto back = kube::FieldSelector::parse(selector->to_string());
    TS_CHECK(back.has_value(), "{}", text);
    TS_CHECK(back->requirements() == selector->requirements(), "{}", text);
  }
  return 0;
}
