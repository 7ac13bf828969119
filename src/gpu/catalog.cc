#include "gpu/catalog.h"

#include <algorithm>
#include <array>

#include "gpu/tables.h"

namespace tessera::gpu {
namespace {

constexpr size_t kNameMax = 128;  // longer texts name no product

// Lower case with '-' for blanks and '_', without a sharing or MIG suffix and without the maker's
// name in front. data/generate.py does the same to the names of the tables.
std::string normalise(std::string_view text) {
  std::string key;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') {
      key += static_cast<char>(c - 'A' + 'a');
    } else {
      key += (c == ' ' || c == '_') ? '-' : c;
    }
  }
  if (key.ends_with("-shared")) key.resize(key.size() - 7);
  if (const size_t mig = key.find("-mig-"); mig != std::string::npos) key.resize(mig);
  static constexpr std::array<std::string_view, 4> kMakers = {"nvidia-", "tesla-", "amd-",
                                                              "instinct-"};
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view maker : kMakers) {
      if (key.starts_with(maker)) {
        key.erase(0, maker.size());
        again = true;
      }
    }
  }
  return key;
}

Match match_of(const tables::Alias& alias) {
  const Model& model = tables::kModels[static_cast<size_t>(alias.model)];
  return {&model, &model.boards[static_cast<size_t>(alias.board)]};
}

}  // namespace

std::span<const Model> models() {
  return tables::kModels;
}

std::span<const Server> servers() {
  return tables::kServers;
}

Match find(std::string_view text) {
  if (text.empty() || text.size() > kNameMax) return {};
  const std::string key = normalise(text);
  const auto at =
      std::ranges::lower_bound(tables::kAliases, std::string_view(key), {}, &tables::Alias::key);
  if (at == tables::kAliases.end() || at->key != key) return {};
  return match_of(*at);
}

Match find_pci(uint16_t vendor, uint16_t device) {
  return find(fmt::format("{:04x}:{:04x}", vendor, device));
}

const Model* find_model(std::string_view text) {
  return find(text).model;
}

const Server* find_server(std::string_view name) {
  const auto at = std::ranges::find(tables::kServers, name, &Server::name);
  return at == tables::kServers.end() ? nullptr : &*at;
}

base::Result<const Model*> model_named(std::string_view text) {
  if (const Model* model = find_model(text)) return model;
  const std::string key = normalise(text.substr(0, kNameMax));
  std::string near;
  std::string all;
  for (const Model& model : models()) {
    const std::string name = normalise(model.name);
    std::string& list = !key.empty() && name.starts_with(key) ? near : all;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", model.name);
  }
  return base::error(base::Code::kNotFound, "no GPU model is called \"{}\"; use one of {}",
                     text.substr(0, kNameMax), near.empty() ? all : near);
}

std::string_view to_text(Vendor vendor) {
  return vendor == Vendor::kNvidia ? "nvidia" : "amd";
}

std::string_view to_text(Path path) {
  static constexpr std::array<std::string_view, 7> kNames = {"X",   "NV",   "PIX", "PXB",
                                                             "PHB", "NODE", "SYS"};
  return kNames[static_cast<size_t>(path)];
}

}  // namespace tessera::gpu
