// Pods that wait: those to try now, by priority and then by arrival, and those parked until something changes.
//
// Shape:   a key is in at most one of the two. wake() brings back all parked pods; hold() keeps one out for a while, after
//          which its owner calls add() again.
// Threads: the scheduler's strand.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tessera::scheduler {

class WaitingQueue {
 public:
  // `arrival` orders pods of one priority; adding again changes priority and takes the pod out of parking.
  void add(const std::string& key, int32_t priority, uint64_t arrival);
  void remove(const std::string& key);
  // The next to try; it is then in neither set until park() or add().
  std::optional<std::string> pop();
  void park(const std::string& key, int32_t priority, uint64_t arrival);
  // All parked pods are tried again; false where none was parked.
  bool wake();
  // This one is, if it is parked.
  bool wake(const std::string& key);
  size_t active() const { return active_.size(); }
  size_t parked() const { return parked_.size(); }

 private:
  struct Entry {
    int64_t minus_priority;
    uint64_t arrival;
    std::string key;
    auto operator<=>(const Entry&) const = default;
  };
  std::set<Entry> active_;
  std::set<Entry> parked_;
  std::unordered_map<std::string, Entry> where_;
};

}  // namespace tessera::scheduler
