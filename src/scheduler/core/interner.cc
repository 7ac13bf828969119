#include "scheduler/core/interner.h"

#include <charconv>

namespace tessera::scheduler::core {

StringId Interner::string(std::string_view text) {
  size_t before = strings_.size();
  StringId id = strings_.intern(text);
  if (strings_.size() == before) return id;
  int64_t number = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc() && end == text.data() + text.size()) {
    numbers_.emplace(id.value, number);
  }
  return id;
}

std::optional<int64_t> Interner::number(StringId id) const {
  auto found = numbers_.find(id.value);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

}  // namespace tessera::scheduler::core
