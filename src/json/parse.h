// Reading JSON text into Values, strictly.
//
// Errors:  kBadRequest naming line, column and path ("line 3, column 9, at spec.containers[0]: ..."); kTooLarge past
//          bytes_max. Numbers outside 64-bit integers become doubles, as in Go; what no double holds and invalid UTF-8
//          are refused.
// Threads: pure.
// Source:  RFC 8259; k8s.io/apimachinery/pkg/util/json (integers first, then floats).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace tessera::json {

struct ParseOptions {
  size_t bytes_max = size_t{64} << 20;
  int depth_max = 256;
  // Collects "path.to.key" of keys that stand twice in an object (the last one wins, as in Go); where this is null, a
  // duplicate key is an error.
  std::vector<std::string>* duplicates = nullptr;
  // Members of this name that stand in an object of the name `leave_out_in` are passed over; empty: none.
  std::string_view leave_out = {};
  std::string_view leave_out_in = {};
};

base::Result<Value> parse(std::string_view text, const ParseOptions& options = {});

}  // namespace tessera::json
