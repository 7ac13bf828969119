// Printer columns of custom kinds, and the JSONPath that fills them.
//
// Shape:   a path is a list of steps: ".name", "['name']", "[n]", "[*]", "[a:b]", "[?(@.a=="b")]" and "..name"; a cell shows
//          the first value found.
// Errors:  parse answers kInvalid for a path that is none.
// Threads: pure.
// Source:  k8s.io/client-go/util/jsonpath (syntax); k8s.io/apiextensions-apiserver v0.36.3
//          pkg/registry/customresource/tableconvertor.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kind.h"
#include "base/result.h"
#include "json/value.h"

namespace tessera::apiserver {

class JsonPath {
 public:
  // ".spec.parts[0].name", without braces.
  static base::Result<JsonPath> parse(std::string_view text);

  // The values found, in order; at most `limit`.
  std::vector<json::Value> find(const json::Value& object, size_t limit) const;

 private:
  enum class Kind { kName, kIndex, kAll, kSlice, kFilter, kDeep };
  struct Step {
    Kind kind = Kind::kName;
    std::string name;  // kName, kDeep; of kFilter the operator
    int64_t from = 0;
    int64_t to = 0;
    bool open_end = false;  // of a slice
    std::shared_ptr<const JsonPath> left;
    std::shared_ptr<const JsonPath> right;  // null: a literal, or only whether `left` is there
    json::Value literal;
  };
  class Parser;

  void walk(const json::Value& value, size_t step, size_t limit,
            std::vector<json::Value>& out) const;
  static bool holds(const Step& filter, const json::Value& value);

  std::vector<Step> steps_;
};

// The columns that additionalPrinterColumns of a version describe; without any, name and age.
std::vector<Column> custom_columns(const json::Value& printer_columns);

}  // namespace tessera::apiserver
