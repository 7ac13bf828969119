#include "scheduler/queueing/amounts.h"

#include <fmt/format.h>

namespace tessera::scheduler::queueing {
namespace {

std::string decimal(int64_t amount, int64_t unit) {
  int64_t milli = static_cast<int64_t>(static_cast<__int128_t>(amount) * 1000 / unit);
  std::string text = fmt::format("{}.{:03}", milli / 1000, milli % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::string amount_text(const Dims& dims, Dim dim, int64_t amount) {
  if (amount == kUnlimited) return "unlimited";
  std::string_view name = dims.name(dim);
  if (dim == kGpu || name.starts_with("gpu/")) return decimal(amount, kUnitsPerGpu);
  if (dim == kCpu) return decimal(amount, 1000);
  if (dim == kMemory) return fmt::format("{}Mi", amount);
  return fmt::format("{}", amount);
}

}  // namespace tessera::scheduler::queueing
