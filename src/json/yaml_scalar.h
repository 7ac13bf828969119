// What a plain YAML scalar means: the table of go-yaml v2, which Kubernetes reads YAML with.
//
// Source:  go.yaml.in/yaml/v2 v2.4.3 resolve.go (behaviour): YAML 1.1 words for booleans, octal as 0o17 and 017,
//          underscores in numbers, 0b and 0x; dates stay strings.
#pragma once

#include <string_view>

#include "json/value.h"

namespace tessera::json {

// The typed value of a plain scalar; a string where it is nothing else. Infinities and not-a-number come as doubles.
Value resolve_plain(std::string_view text);
// Valid UTF-8 without control characters but tab and line breaks; else the offset of the first byte at fault.
size_t find_bad_yaml_byte(std::string_view text);

}  // namespace tessera::json
