// A place inside an object, kept on the stack and written out only when something is wrong there.
//
// Shape:   each Path points to the one above it, which must outlive it: name every step.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::apiserver {

class Path {
 public:
  explicit Path(std::string_view root) : name_(root) {}

  Path child(std::string_view name) const& { return Path(this, name, -1, false); }
  Path at(size_t index) const& { return Path(this, {}, static_cast<int64_t>(index), false); }
  Path key(std::string_view key) const& { return Path(this, key, -1, true); }
  Path child(std::string_view) const&& = delete;
  Path at(size_t) const&& = delete;
  Path key(std::string_view) const&& = delete;

  // "spec.containers[0].resources.limits[nvidia.com/gpu]"
  std::string text() const {
    std::string out = up_ != nullptr ? up_->text() : std::string();
    if (index_ >= 0) return out + fmt::format("[{}]", index_);
    if (is_key_) return out + fmt::format("[{}]", name_);
    if (!out.empty()) out += '.';
    return out.append(name_);
  }
  std::string text(std::string_view child_name) const {
    std::string out = text();
    if (!out.empty()) out += '.';
    return out.append(child_name);
  }

 private:
  Path(const Path* up, std::string_view name, int64_t index, bool is_key)
      : up_(up), name_(name), index_(index), is_key_(is_key) {}

  const Path* up_ = nullptr;
  std::string_view name_;
  int64_t index_ = -1;
  bool is_key_ = false;
};

}  // namespace tessera::apiserver
