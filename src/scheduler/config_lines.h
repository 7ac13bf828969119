// Where a field stands in a YAML document of one or two levels, for error messages.
#pragma once

#include <string_view>

namespace tessera::scheduler {

// The line of "field" or "field.inner", from 1; that of "field" where inner is not found; 0 where it cannot be told (JSON,
// flow style at the top).
int line_of(std::string_view yaml, std::string_view path);

}  // namespace tessera::scheduler
