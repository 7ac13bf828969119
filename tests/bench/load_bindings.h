// What one watch on pods sees of a scheduler's work: when each pod came and when it was bound.
//
// Shape:   take() gets the bytes of a watch; names are looked for in the text, nothing is parsed. The client's own clock is
//          the only one, so that every scheduler is measured alike.
// Units:   microseconds of the monotonic clock.
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tessera::load {

class Bindings {
 public:
  // Pods named PREFIX-GROUP-MEMBER or PREFIX-NUMBER; `group_size` members each.
  Bindings(std::string prefix, int group_size)
      : prefix_(std::move(prefix)), group_size_(group_size) {}

  void take(std::string_view bytes, uint64_t now);
  // The highest resourceVersion so far: where a watch that broke goes on.
  uint64_t version() const { return version_; }
  // A line that was cut belongs to the watch that broke.
  void forget_rest() { rest_.clear(); }
  size_t seen() const { return pods_.size(); }
  size_t bound() const { return bound_; }
  size_t groups_whole() const;
  size_t groups_partial() const;
  // As members of a JSON object: counts, span from the first to the last binding, latencies of pods and of whole groups.
  std::string as_json() const;

 private:
  struct Pod {
    uint64_t seen = 0;
    uint64_t bound = 0;
  };
  struct Group {
    int bound = 0;
    uint64_t first_seen = 0;
    uint64_t last_bound = 0;
  };
  void line(std::string_view text, uint64_t now);

  const std::string prefix_;
  const int group_size_;
  std::string rest_;
  std::unordered_map<std::string, Pod> pods_;
  std::unordered_map<std::string, Group> groups_;
  size_t bound_ = 0;
  uint64_t version_ = 0;
  uint64_t first_bound_at_ = 0;
  uint64_t last_bound_at_ = 0;
};

}  // namespace tessera::load
