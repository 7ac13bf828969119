// JSON text: what is read prints canonically and reads back the same; copies and changes leave the original alone.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "json/parse.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> duplicates;
  const auto value = json::parse(text, {.duplicates = &duplicates});
  if (!value) {
    TS_CHECK(value.error().message.find("line ") != std::string::npos, "{}", value.error().message);
    return 0;
  }
  TS_CHECK(json::parse(text).has_value() == duplicates.empty());
  const std::string printed = value->dump();
  const auto back = json::parse(printed);
  TS_CHECK(back.has_value(), "{}", printed);
  TS_CHECK(*back == *value, "{}", printed);
  TS_CHECK(back->dump() == printed, "{}", printed);
  TS_CHECK(json::parse(value->dump_pretty()).value() == *value);
  json::Value changed = *value;
  changed.ref("a", "b") = 1;
  TS_CHECK(value->dump() == printed);
  return 0;
}
