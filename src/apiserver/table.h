// Server-side printing: objects as meta.k8s.io Tables and as PartialObjectMetadata.
//
// Shape:   to_table takes one object or a List of a kind and gives a Table with the kind's columns.
//          Watches print each object as a Table of one row, and only the first of a stream carries
//          the column definitions.
// Threads: pure.
// Source:  k8s.io/apimachinery/pkg/apis/meta/v1 (Table);
//          k8s.io/apiserver/pkg/endpoints/handlers/response.go.
#pragma once

#include <string>

#include "apiserver/kind.h"
#include "base/time.h"
#include "json/value.h"

namespace tessera::apiserver {

// What a row says of its object beside the cells.
enum class RowObject { kNone, kMetadata, kObject };

struct TableOptions {
  RowObject object = RowObject::kMetadata;
  std::string version = "v1";  // of meta.k8s.io
  bool column_definitions = true;
  base::Time now;
};

json::Value to_table(const Kind& kind, const json::Value& object_or_list,
                     const TableOptions& options);

json::Value to_partial_metadata(const json::Value& object, std::string_view version);
json::Value to_partial_metadata_list(const json::Value& list, std::string_view version);

// True for a list of objects: it has items and no name.
bool is_list(const json::Value& value);

}  // namespace tessera::apiserver
