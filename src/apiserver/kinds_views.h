// What the other faces of kinds share (kind.h, KindView), and the rows that are long.
#pragma once

#include <vector>

#include "apiserver/kind.h"

namespace tessera::apiserver {

// Columns of the stored kind, for objects as the view shows them.
std::vector<Column> columns_of_view(std::vector<Column> columns,
                                    json::Value (*to_stored)(const json::Value&));

// autoscaling/v1: what it has no field for stands in annotations.
Kind autoscaler_v1_kind();

}  // namespace tessera::apiserver
