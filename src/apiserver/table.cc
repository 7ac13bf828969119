#include "apiserver/table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apiserver/columns.h"

namespace tessera::apiserver {
namespace {

using json::Value;

std::string meta_version(std::string_view version) {
  return std::string("meta.k8s.io/").append(version);
}

const std::vector<Column>& columns_of(const Kind& kind) {
  static const std::vector<Column> kPlain = {name_column(), age_column()};
  return kind.columns.empty() ? kPlain : kind.columns;
}

Value definitions(const Kind& kind) {
  Value out = Value::array();
  for (const Column& column : columns_of(kind)) {
    out.push_back(Value::object({{"name", column.name},
                                 {"type", column.type},
                                 {"format", column.format},
                                 {"description", column.description},
                                 {"priority", column.priority}}));
  }
  return out;
}

// A row's object names its type, which items of a list need not.
Value typed(const Kind& kind, const Value& object) {
  if (object.contains("kind") && object.contains("apiVersion")) return object;
  Value out = object;
  out.set("apiVersion", kind.api_version());
  out.set("kind", kind.kind);
  return out;
}

Value row_of(const Kind& kind, const Value& object, const TableOptions& options) {
  const kube::Object view(object);
  Value cells = Value::array();
  for (const Column& column : columns_of(kind)) {
    cells.push_back(column.cell ? column.cell(view, options.now) : Value());
  }
  Value shown;
  if (options.object == RowObject::kObject) shown = typed(kind, object);
  if (options.object == RowObject::kMetadata) shown = to_partial_metadata(object, options.version);
  return Value::object({{"cells", std::move(cells)}, {"object", std::move(shown)}});
}

// What a Table keeps of a list's metadata; of a single object's only the version.
Value table_metadata(const Value& metadata, bool list) {
  Value out = Value::object();
  for (const std::string_view key : {"resourceVersion", "continue", "remainingItemCount"}) {
    if (!list && key != "resourceVersion") continue;
    if (const Value* value = metadata.find(key)) out.set(key, *value);
  }
  return out;
}

// Kubernetes prints such kinds by a table of its own, which has no rows, rather than none, for an empty list.
bool has_no_printer(const Kind& kind) {
  return std::ranges::any_of(kind.columns,
                             [](const Column& column) { return column.name == "Created At"; });
}

}  // namespace

bool is_list(const Value& value) {
  // A list has no name, as every object with items of its own has.
  return value["items"].is_array() && !value["metadata"].contains("name");
}

Value to_table(const Kind& kind, const Value& object_or_list, const TableOptions& options) {
  const bool list = is_list(object_or_list);
  Value rows = Value::array();
  if (list && object_or_list["items"].empty() && has_no_printer(kind)) {
    rows = Value();
  } else if (list) {
    rows.reserve(object_or_list["items"].size());
    for (const Value& item : object_or_list["items"].items()) {
      rows.push_back(row_of(kind, item, options));
    }
  } else {
    rows.push_back(row_of(kind, object_or_list, options));
  }
  return Value::object(
      {{"kind", "Table"},
       {"apiVersion", meta_version(options.version)},
       {"metadata", table_metadata(object_or_list["metadata"], list)},
       {"columnDefinitions", options.column_definitions ? definitions(kind) : Value()},
       {"rows", std::move(rows)}});
}

Value to_partial_metadata(const Value& object, std::string_view version) {
  return Value::object({{"kind", "PartialObjectMetadata"},
                        {"apiVersion", meta_version(version)},
                        {"metadata", object["metadata"]}});
}

Value to_partial_metadata_list(const Value& list, std::string_view version) {
  Value items = Value::array();
  items.reserve(list["items"].size());
  for (const Value& item : list["items"].items()) {
    items.push_back(to_partial_metadata(item, version));
  }
  return Value::object({{"kind", "PartialObjectMetadataList"},
                        {"apiVersion", meta_version(version)},
                        {"metadata", list["metadata"]},
                        {"items", std::move(items)}});
}

}  // namespace tessera::apiserver
