// Manifests from files and folders: what -f names.
//
// Shape:   the .yaml, .yml and .json files of a folder in the order of their names; each item of a List by itself.
//          "-" is standard input.
// Errors:  as base::read_file and json::parse_yaml_stream, with the file.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace tessera::cli {

struct Manifest {
  std::string file;
  json::Value object;
};

base::Result<std::vector<Manifest>> read_manifests(const std::string& path);

}  // namespace tessera::cli
