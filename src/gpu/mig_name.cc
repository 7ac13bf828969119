#include "gpu/mig_name.h"

#include <cstdint>

#include "base/check.h"

namespace tessera::gpu {
namespace {

constexpr std::string_view kResourcePrefix = "nvidia.com/mig-";
constexpr size_t kNameMax = 64;
constexpr int kSlicesMax = 8;
constexpr int kMemoryGbMax = 9999;

// Takes a decimal number without leading zeros from the front; -1 where there is none or it is
// above `most`.
int take_number(std::string_view& text, int most) {
  size_t length = 0;
  int value = 0;
  while (length < text.size() && text[length] >= '0' && text[length] <= '9') {
    value = value * 10 + (text[length] - '0');
    if (value > most) return -1;
    ++length;
  }
  if (length == 0 || (length > 1 && text[0] == '0')) return -1;
  text.remove_prefix(length);
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// "me,gfx" behind the '+'; false for an unknown, empty or repeated attribute.
bool take_attributes(std::string_view text, ProfileName& name) {
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    bool* flag = word == "me"       ? &name.media
                 : word == "me.all" ? &name.media_all
                 : word == "gfx"    ? &name.graphics
                                    : nullptr;
    if (flag == nullptr || *flag) return false;
    *flag = true;
    if (comma == std::string_view::npos) return !(name.media && name.media_all);
    text.remove_prefix(comma + 1);
  }
}

bool read(std::string_view text, ProfileName& name) {
  const int first = take_number(text, kSlicesMax);
  if (first < 1) return false;
  name.compute = name.slices = first;
  if (take(text, "c.")) {
    name.slices = take_number(text, kSlicesMax);
    if (name.slices < name.compute) return false;
  }
  if (!take(text, "g.")) return false;
  name.memory_gb = take_number(text, kMemoryGbMax);
  if (name.memory_gb < 0 || !take(text, "gb")) return false;
  if (text.empty()) return true;
  if (text == "-me") {
    name.no_media = true;
    return true;
  }
  return take(text, "+") && take_attributes(text, name);
}

// What stands behind "gb": '+' before the first attribute and `between` between the others.
std::string attributes(const ProfileName& name, char first, char between) {
  if (name.no_media) return "-me";
  std::string text;
  const auto add = [&](bool is, std::string_view word) {
    if (!is) return;
    text += text.empty() ? first : between;
    text += word;
  };
  add(name.media, "me");
  add(name.media_all, "me.all");
  add(name.graphics, "gfx");
  return text;
}

std::string shape(const ProfileName& name) {
  std::string text;
  if (name.compute != name.slices) text = fmt::format("{}c.", name.compute);
  return text + fmt::format("{}g.{}gb", name.slices, name.memory_gb);
}

}  // namespace

base::Result<ProfileName> parse_profile_name(std::string_view text) {
  ProfileName name;
  if (text.size() > kNameMax || !read(text, name)) {
    return base::error(base::Code::kInvalid,
                       "\"{}\" is no MIG profile; write it as 1g.10gb, 1g.10gb+me or 1g.24gb-me",
                       text.substr(0, kNameMax));
  }
  return name;
}

std::string to_text(const ProfileName& name) {
  return shape(name) + attributes(name, '+', ',');
}

std::string resource_name(const ProfileName& name) {
  return std::string(kResourcePrefix) + shape(name) + attributes(name, '.', '.');
}

base::Result<ProfileName> profile_of_resource(std::string_view resource) {
  const auto refuse = [&] {
    return base::error(base::Code::kInvalid,
                       "\"{}\" is no MIG resource; write it as nvidia.com/mig-1g.10gb or "
                       "nvidia.com/mig-1g.10gb.me",
                       resource.substr(0, kNameMax + kResourcePrefix.size()));
  };
  if (!resource.starts_with(kResourcePrefix)) return refuse();
  std::string text(resource.substr(kResourcePrefix.size()));
  if (text.size() > kNameMax || text.find_first_of("+,") != std::string::npos) return refuse();
  const size_t end = text.find("gb");
  if (end == std::string::npos) return refuse();
  bool first = true;
  for (size_t at = end + 2; at < text.size(); ++at) {
    if (text[at] != '.' || std::string_view(text).substr(at) == ".all" ||
        std::string_view(text).substr(at).starts_with(".all.")) {
      continue;
    }
    text[at] = first ? '+' : ',';
    first = false;
  }
  ProfileName name;
  if (!read(text, name)) return refuse();
  return name;
}

int profile_memory_gb(base::Mib profile, base::Mib total) {
  TS_CHECK(total.value > 0 && profile.value >= 0, "profile {} of {} MiB", profile.value,
           total.value);
  const int64_t eighths = (8 * profile.value + total.value - 1) / total.value;
  const int64_t total_gib = (total.value + 1023) / 1024;
  return static_cast<int>((2 * eighths * total_gib + 8) / 16);
}

}  // namespace tessera::gpu
