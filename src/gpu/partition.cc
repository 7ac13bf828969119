#include "gpu/partition.h"

#include <algorithm>

namespace tessera::gpu {
namespace {

constexpr std::string_view kPrefix = "amd.com/";
constexpr size_t kTextMax = 64;

std::string upper(std::string_view text) {
  std::string result(text.substr(0, kTextMax));
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

std::string modes_of(const Model& model) {
  std::string list;
  for (const ComputePartition& one : model.partitions) {
    for (int domains = 1; domains <= 4; ++domains) {
      if ((one.memory_modes >> domains & 1) == 0) continue;
      list += fmt::format("{}{}/NPS{}", list.empty() ? "" : ", ", one.name, domains);
    }
  }
  return list;
}

}  // namespace

base::Mib PartitionMode::memory_share(const Model& model) const {
  return base::Mib(model.memory.value / compute->partitions);
}

base::Result<PartitionMode> partition_mode(const Model& model, std::string_view compute,
                                           std::string_view memory) {
  if (model.partitions.empty()) {
    return base::error(base::Code::kNever, "{} has no partition modes", model.name);
  }
  const std::string mode = upper(compute);
  const std::string domains = upper(memory);
  const auto at =
      std::ranges::find(model.partitions, std::string_view(mode), &ComputePartition::name);
  if (at != model.partitions.end() && domains.size() == 4 && domains.starts_with("NPS")) {
    const int count = domains[3] - '0';
    if (count >= 1 && count <= 4 && (at->memory_modes >> count & 1) != 0)
      return PartitionMode{&*at, count};
  }
  return base::error(base::Code::kNever, "{} has no mode {}/{}; it has {}", model.name, mode,
                     domains, modes_of(model));
}

std::string partition_resource(const PartitionMode& mode) {
  std::string name(mode.compute->name);
  for (char& c : name) c = static_cast<char>(c - 'A' + 'a');
  return fmt::format("{}{}_nps{}", kPrefix, name, mode.memory_domains);
}

base::Result<PartitionMode> mode_of_resource(const Model& model, std::string_view resource) {
  const size_t bar = resource.find('_');
  if (!resource.starts_with(kPrefix) || bar == std::string_view::npos) {
    return base::error(base::Code::kInvalid,
                       "\"{}\" is no AMD partition; write it as amd.com/cpx_nps4",
                       resource.substr(0, kTextMax));
  }
  return partition_mode(model, resource.substr(kPrefix.size(), bar - kPrefix.size()),
                        resource.substr(bar + 1));
}

}  // namespace tessera::gpu
