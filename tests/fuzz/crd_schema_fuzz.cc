// Schemas of custom kinds: the first line is a schema, the rest an object. Any schema is judged; one that compiles prunes,
// fills and validates the object. What was pruned and filled once stays as it is.

#include <cstdint>
#include <string_view>

#include "apiserver/crd_prune.h"
#include "apiserver/crd_schema.h"
#include "apiserver/crd_structural.h"
#include "apiserver/crd_types.h"
#include "apiserver/crd_validate.h"
#include "base/check.h"
#include "json/parse.h"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = text.find('\n');
  if (line == std::string_view::npos) return 0;
  const auto schema = json::parse(text.substr(0, line));
  const auto given = json::parse(text.substr(line + 1));
  if (!schema || !given) return 0;
  apiserver::FieldErrors refused;
  apiserver::validate_schema(*schema, "schema", true, refused);
  const auto compiled = apiserver::compile_schema(*schema);
  if (!compiled) return 0;
  const apiserver::CrdTypes types(**compiled, "fuzz");
  json::Value object = *given;
  apiserver::prune_unknown(**compiled, object, nullptr);
  apiserver::fill_defaults(**compiled, object);
  apiserver::FieldErrors errors;
  apiserver::validate_by_schema(**compiled, object, nullptr, "", errors);
  apiserver::validate_by_schema(**compiled, object, &*given, "status", errors);
  apiserver::validate_lists(**compiled, object, errors);
  apiserver::validate_embedded(**compiled, object, errors);
  if (!refused.empty()) return 0;
  json::Value again = object;
  apiserver::prune_unknown(**compiled, again, nullptr);
  apiserver::fill_defaults(**compiled, again);
  TS_CHECK(again == object, "{}", text);
  return 0;
}
