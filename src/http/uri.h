// Paths and query strings.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tessera::http {

struct Target {
  // Decoded, "/api/v1/" -> {"api", "v1"}; as the client wrote them, so "//a/.." -> {"", "a", ".."}.
  std::vector<std::string> segments;
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
};

// Errors: kBadRequest for a bad escape or a byte that no target may hold.
base::Result<Target> parse_target(std::string_view target);
std::string percent_encode(std::string_view text);
std::string make_query(const std::vector<std::pair<std::string, std::string>>& query);

}  // namespace tessera::http
