// Reading and writing YAML as Kubernetes does (sigs.k8s.io/yaml): YAML 1.1 words (yes, on) stay strings only when
// quoted, plain scalars take the JSON type, keys become strings.
//
// Errors:  kBadRequest naming document, line and column, with the mend; duplicate keys are errors; anchors and aliases are
//          followed with a budget of nodes, so that an alias bomb is refused (kTooLarge) and costs nothing; merge keys (<<)
//          work. Depth and size are limited.
// Threads: pure.
// Source:  YAML 1.2.2; sigs.k8s.io/yaml; go-yaml v2's resolve table (which plain scalars are bool, int, float, null).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace tessera::json {

struct YamlOptions {
  size_t bytes_max = size_t{16} << 20;
  int depth_max = 128;
  size_t nodes_max = 1'000'000;
};

// All documents of a stream; empty documents are left out. JSON is YAML.
base::Result<std::vector<Value>> parse_yaml_stream(std::string_view text,
                                                   const YamlOptions& options = {});
// Exactly one document.
base::Result<Value> parse_yaml(std::string_view text, const YamlOptions& options = {});

// Block style, keys sorted, as `kubectl -o yaml` prints (but long lines are not folded). Ends with a line break.
std::string to_yaml(const Value& value);

}  // namespace tessera::json
