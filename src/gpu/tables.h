// The seam between the generated tables (data/generate.py writes gpu_tables.cc) and catalog.cc. For
// this module alone.
#pragma once

#include "gpu/catalog.h"

namespace tessera::gpu::tables {

struct Alias {
  std::string_view key;  // normalised as catalog.cc does
  int16_t model = 0;
  int16_t board = 0;
};

extern const std::span<const Model> kModels;
extern const std::span<const Server> kServers;
extern const std::span<const Alias> kAliases;  // by key

}  // namespace tessera::gpu::tables
