// A structural schema, compiled: what one version of a CustomResourceDefinition says of its objects.
//
// Shape:   compile_schema reads the openAPIV3Schema of a definition that was validated (crd_structural.h); crd_validate.h
//          and crd_prune.h apply it to objects.
// Errors:  kInvalid where a pattern does not compile or the schema nests too deep.
// Threads: immutable once compiled.
// Source:  k8s.io/apiextensions-apiserver v0.36.3 pkg/apiserver/schema (structural schemas).
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

struct CrdSchema {
  using Ptr = std::unique_ptr<const CrdSchema>;
  using List = std::vector<Ptr>;

  // "", "object", "array", "string", "integer", "number" or "boolean".
  std::string type;
  std::string format;  // empty where Kubernetes knows none of that name for the type
  bool nullable = false;
  bool int_or_string = false;
  bool preserve_unknown = false;
  bool embedded = false;

  std::vector<std::pair<std::string, Ptr>> properties;  // by name
  Ptr items;
  Ptr additional;               // the schema of additionalProperties
  bool has_additional = false;  // additionalProperties is given, as a schema or as true
  bool closed = false;          // additionalProperties: false

  std::optional<json::Value> default_value;
  std::vector<json::Value> choices;  // enum
  std::optional<double> minimum;
  std::optional<double> maximum;
  bool exclusive_minimum = false;
  bool exclusive_maximum = false;
  std::optional<double> multiple_of;
  std::optional<int64_t> min_length;
  std::optional<int64_t> max_length;
  std::optional<int64_t> min_items;
  std::optional<int64_t> max_items;
  std::optional<int64_t> min_properties;
  std::optional<int64_t> max_properties;
  std::unique_ptr<const re2::RE2> pattern;
  std::vector<std::string> required;
  List all_of;
  List any_of;
  List one_of;
  Ptr not_of;

  std::string list_type;  // "", "atomic", "set", "map"
  std::string map_type;   // "", "atomic", "granular"
  std::vector<std::string> list_keys;

  const CrdSchema* property(std::string_view name) const;
};

base::Result<CrdSchema::Ptr> compile_schema(const json::Value& schema);

// The pattern as Kubernetes reads it, or why it is none.
base::Result<std::unique_ptr<const re2::RE2>> compile_pattern(std::string_view text);

// Whether a schema of this type may have the format; others are told of and not heeded.
bool is_known_format(std::string_view type, std::string_view format);

}  // namespace tessera::apiserver
