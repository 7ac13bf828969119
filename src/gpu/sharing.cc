#include "gpu/sharing.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace tessera::gpu {
namespace {

using base::Code;
using base::Mib;
using base::Milli;

constexpr size_t kTextMax = 32;
constexpr int64_t kMemoryMibMax = int64_t{1} << 40;

bool digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

base::Result<Milli> parse_gpu_fraction(std::string_view text) {
  const std::string_view shown = text.substr(0, kTextMax);
  const size_t point = text.find('.');
  std::string_view whole = text.substr(0, point);
  std::string_view part =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if (text.size() > kTextMax || whole.size() + part.size() == 0 || !digits(whole) ||
      !digits(part)) {
    return base::error(Code::kInvalid, "GPU fraction \"{}\" is no decimal number; write it as 0.5",
                       shown);
  }
  while (part.ends_with('0')) part.remove_suffix(1);
  while (whole.starts_with('0')) whole.remove_prefix(1);
  if (!whole.empty() || part.empty()) {
    return base::error(
        Code::kInvalid,
        "GPU fraction \"{}\" must be above 0 and below 1; ask for whole GPUs as a resource", shown);
  }
  if (part.size() > 3) {
    return base::error(Code::kInvalid,
                       "GPU fraction \"{}\" is finer than a thousandth; round it to 3 decimals",
                       shown);
  }
  int64_t value = 0;
  for (size_t i = 0; i < 3; ++i) value = value * 10 + (i < part.size() ? part[i] - '0' : 0);
  return Milli(value);
}

std::string fraction_text(Milli share) {
  std::string text = fmt::format("{}{}.{:03}", share.value < 0 ? "-" : "",
                                 std::abs(share.value / 1000), std::abs(share.value % 1000));
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

base::Result<Mib> parse_gpu_memory(std::string_view text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value <= 0 ||
      value > kMemoryMibMax) {
    return base::error(Code::kInvalid,
                       "GPU memory \"{}\" must be a whole number of MiB above 0, such as 4096",
                       text.substr(0, kTextMax));
  }
  return Mib(value);
}

base::Result<Milli> share_of_memory(Mib memory, const Model& model) {
  const int64_t usable = model.usable_memory().value;
  if (memory.value <= 0) {
    return base::error(Code::kInvalid, "GPU memory {} MiB must be above 0", memory.value);
  }
  if (memory.value > usable) {
    return base::error(Code::kNever,
                       "{} MiB asked, {} has {} MiB for users; ask for less or for another model",
                       memory.value, model.name, usable);
  }
  return Milli((memory.value * kWholeGpu.value + usable - 1) / usable);
}

Mib memory_of_share(Milli share, const Model& model) {
  const int64_t capped = std::clamp<int64_t>(share.value, 0, kWholeGpu.value);
  return Mib(model.usable_memory().value * capped / kWholeGpu.value);
}

}  // namespace tessera::gpu
