// The waiting pods: in which order they are tried, and when one that found no place is tried again.
//
// Shape:   highest priority first, then first come, first served. A pod that found no place is
//          parked: a change of the cluster (wake_all) or kParkedMax brings it back, but not before
//          its backoff, 1 s doubling to 10 s, has passed.
// Units:   times are handed in; nothing here asks a clock.
// Threads: the scheduler's strand.
// Source:  kube-scheduler's queue (active, backoff, unschedulable) and its defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/time.h"

namespace tessera::scheduler::core {

class WaitQueue {
 public:
  using Key = int64_t;  // the caller's name for a pod

  static constexpr base::Duration kBackoffMin = base::seconds(1);
  static constexpr base::Duration kBackoffMax = base::seconds(10);
  static constexpr base::Duration kParkedMax = base::seconds(300);

  // A pod that is known already keeps its place in the line unless its priority changed.
  void push(Key key, int32_t priority);
  void erase(Key key);
  // Takes the next pod to try; it stays known until erase() (placed, gone) or failed().
  std::optional<Key> pop(base::Time now);
  void failed(Key key, base::Time now);
  // Something changed that may have made room.
  void wake_all();

  // When pop() may next have something to give; nothing where only a push or a wake can.
  std::optional<base::Time> next_due(base::Time now) const;
  size_t size() const { return pods_.size(); }
  // Pods that would be tried before this one; nothing where it is not waiting.
  std::optional<size_t> position(Key key) const;
  int32_t attempts(Key key) const;

 private:
  enum class State : uint8_t { kReady, kTrying, kBackoff, kParked };
  struct Pod {
    int32_t priority = 0;
    uint64_t arrival = 0;
    State state = State::kReady;
    int32_t attempts = 0;
    base::Time not_before;
    base::Time parked_until;
    bool woken = false;  // something changed while it was being tried
  };
  struct Turn {  // by priority, then arrival
    int64_t negative_priority = 0;
    uint64_t arrival = 0;
    Key key = 0;
    auto operator<=>(const Turn&) const = default;
  };
  struct Due {
    base::Time at;
    Key key = 0;
    auto operator<=>(const Due&) const = default;
  };

  static Turn turn_of(Key key, const Pod& pod) {
    return {-int64_t{pod.priority}, pod.arrival, key};
  }
  void make_ready(Key key, Pod& pod);
  void take_out(Key key, const Pod& pod);
  void release_due(base::Time now);

  std::unordered_map<Key, Pod> pods_;
  std::set<Turn> ready_;
  std::set<Due> backoff_;  // by not_before
  std::set<Due> parked_;   // by parked_until
  std::set<Key> trying_;
  uint64_t arrivals_ = 0;
};

}  // namespace tessera::scheduler::core
