#include "scheduler/queue.h"

namespace tessera::scheduler {

void WaitingQueue::remove(const std::string& key) {
  const auto it = where_.find(key);
  if (it == where_.end()) return;
  active_.erase(it->second);
  parked_.erase(it->second);
  where_.erase(it);
}

void WaitingQueue::add(const std::string& key, int32_t priority, uint64_t arrival) {
  remove(key);
  Entry entry{-int64_t{priority}, arrival, key};
  active_.insert(entry);
  where_.emplace(key, std::move(entry));
}

std::optional<std::string> WaitingQueue::pop() {
  if (active_.empty()) return std::nullopt;
  auto node = active_.extract(active_.begin());
  where_.erase(node.value().key);
  return std::move(node.value().key);
}

void WaitingQueue::park(const std::string& key, int32_t priority, uint64_t arrival) {
  remove(key);
  Entry entry{-int64_t{priority}, arrival, key};
  parked_.insert(entry);
  where_.emplace(key, std::move(entry));
}

bool WaitingQueue::wake() {
  if (parked_.empty()) return false;
  active_.merge(parked_);
  return true;
}

bool WaitingQueue::wake(const std::string& key) {
  const auto it = where_.find(key);
  if (it == where_.end() || !parked_.contains(it->second)) return false;
  active_.insert(parked_.extract(it->second));
  return true;
}

}  // namespace tessera::scheduler
