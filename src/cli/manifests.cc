#include "cli/manifests.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "json/yaml.h"

namespace tessera::cli {

base::Result<std::vector<Manifest>> read_manifests(const std::string& path) {
  std::vector<std::string> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const std::string extension = entry.path().extension();
      if (extension == ".yaml" || extension == ".yml" || extension == ".json") {
        files.push_back(entry.path());
      }
    }
    std::ranges::sort(files);
  } else {
    files.push_back(path == "-" ? "/dev/stdin" : path);
  }
  std::vector<Manifest> out;
  for (const std::string& file : files) {
    TS_TRY(const std::string text, base::read_file(file, size_t{64} << 20));
    auto documents = json::parse_yaml_stream(text);
    if (!documents) return base::error(documents.error().in(file));
    for (json::Value& document : *documents) {
      if (document["kind"].as_string() != "List") {
        out.push_back({file, std::move(document)});
        continue;
      }
      for (const json::Value& item : document["items"].items()) out.push_back({file, item});
    }
  }
  return out;
}

}  // namespace tessera::cli
