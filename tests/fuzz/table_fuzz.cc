// Tables: an Accept header, a kind and any object or list as that kind become a table (or metadata alone) whose rows have
// a cell for each column, whatever the object holds. Input: lines ACCEPT, RESOURCE, then JSON.

#include <cstdint>
#include <string_view>

#include "apiserver/front_accept.h"
#include "apiserver/kind.h"
#include "apiserver/table.h"
#include "base/check.h"
#include "json/parse.h"

using namespace tessera;
using namespace tessera::apiserver;

namespace {

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

void check_table(const Kind& kind, const json::Value& value, const Accepted& accepted) {
  for (const RowObject shown : {RowObject::kNone, RowObject::kMetadata, RowObject::kObject}) {
    const json::Value table = to_table(kind, value,
                                       {.object = shown,
                                        .version = accepted.version,
                                        .column_definitions = true,
                                        .now = base::Time{1'767'225'600'000'000'000}});
    const size_t columns = table["columnDefinitions"].size();
    TS_CHECK(columns > 0);
    for (const json::Value& row : table["rows"].items()) {
      TS_CHECK(row["cells"].size() == columns);
    }
    TS_CHECK(json::parse(table.dump()).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto accepted = negotiate(take_line(text), {});
  const std::string_view resource = take_line(text);
  const auto value = json::parse(text);
  if (!accepted || !value || !value->is_object()) return 0;
  for (const Kind* kind : Kinds::builtin().all()) {
    if (kind->plural == resource) check_table(*kind, *value, *accepted);
  }
  const json::Value partial = is_list(*value) ? to_partial_metadata_list(*value, accepted->version)
                                              : to_partial_metadata(*value, accepted->version);
  TS_CHECK(json::parse(partial.dump()).has_value());
  return 0;
}
