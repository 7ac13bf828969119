// YAML text: it is read or refused with a place, within its budgets; what is read writes and reads back the same.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "json/yaml.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto documents =
      json::parse_yaml_stream(text, {.bytes_max = 1 << 16, .depth_max = 64, .nodes_max = 10'000});
  if (!documents) {
    const std::string& message = documents.error().message;
    TS_CHECK(message.find("line ") != std::string::npos || size > (1 << 16), "{}", message);
    return 0;
  }
  for (const json::Value& value : *documents) {
    const std::string written = json::to_yaml(value);
    const auto back = json::parse_yaml(written);
    TS_CHECK(back.has_value(), "{}\n{}", back.error().message, written);
    TS_CHECK(*back == value, "{}\n{}\n{}", value.dump(), written, back->dump());
  }
  return 0;
}
