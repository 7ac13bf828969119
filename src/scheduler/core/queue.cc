#include "scheduler/core/queue.h"

#include <algorithm>

namespace tessera::scheduler::core {
namespace {

base::Duration backoff_of(int32_t attempts) {
  base::Duration backoff = WaitQueue::kBackoffMin;
  for (int32_t i = 1; i < attempts && backoff < WaitQueue::kBackoffMax; ++i) backoff = backoff * 2;
  return std::min(backoff, WaitQueue::kBackoffMax);
}

}  // namespace

void WaitQueue::make_ready(Key key, Pod& pod) {
  pod.state = State::kReady;
  ready_.insert(turn_of(key, pod));
}

void WaitQueue::take_out(Key key, const Pod& pod) {
  switch (pod.state) {
    case State::kReady:
      ready_.erase(turn_of(key, pod));
      break;
    case State::kBackoff:
      backoff_.erase({pod.not_before, key});
      break;
    case State::kParked:
      parked_.erase({pod.parked_until, key});
      break;
    case State::kTrying:
      trying_.erase(key);
      break;
  }
}

void WaitQueue::push(Key key, int32_t priority) {
  auto [at, fresh] = pods_.try_emplace(key);
  Pod& pod = at->second;
  if (fresh) {
    pod.priority = priority;
    pod.arrival = ++arrivals_;
    make_ready(key, pod);
    return;
  }
  if (pod.priority == priority) return;
  bool ready = pod.state == State::kReady;
  if (ready) ready_.erase(turn_of(key, pod));
  pod.priority = priority;
  if (ready) ready_.insert(turn_of(key, pod));
}

void WaitQueue::erase(Key key) {
  auto at = pods_.find(key);
  if (at == pods_.end()) return;
  take_out(key, at->second);
  pods_.erase(at);
}

void WaitQueue::release_due(base::Time now) {
  while (!backoff_.empty() && backoff_.begin()->at <= now) {
    Key key = backoff_.begin()->key;
    backoff_.erase(backoff_.begin());
    make_ready(key, pods_.at(key));
  }
  while (!parked_.empty() && parked_.begin()->at <= now) {
    Key key = parked_.begin()->key;
    parked_.erase(parked_.begin());
    make_ready(key, pods_.at(key));
  }
}

std::optional<WaitQueue::Key> WaitQueue::pop(base::Time now) {
  release_due(now);
  if (ready_.empty()) return std::nullopt;
  Key key = ready_.begin()->key;
  ready_.erase(ready_.begin());
  Pod& pod = pods_.at(key);
  pod.state = State::kTrying;
  trying_.insert(key);
  pod.woken = false;
  ++pod.attempts;
  return key;
}

void WaitQueue::failed(Key key, base::Time now) {
  auto at = pods_.find(key);
  if (at == pods_.end() || at->second.state != State::kTrying) return;
  Pod& pod = at->second;
  trying_.erase(key);
  pod.not_before = now + backoff_of(pod.attempts);
  pod.parked_until = now + kParkedMax;
  if (pod.woken) {
    pod.state = State::kBackoff;
    backoff_.insert({pod.not_before, key});
  } else {
    pod.state = State::kParked;
    parked_.insert({pod.parked_until, key});
  }
}

void WaitQueue::wake_all() {
  for (const Due& due : parked_) {
    Pod& pod = pods_.at(due.key);
    pod.state = State::kBackoff;
    backoff_.insert({pod.not_before, due.key});
  }
  parked_.clear();
  for (Key key : trying_) pods_.at(key).woken = true;
}

std::optional<base::Time> WaitQueue::next_due(base::Time now) const {
  if (!ready_.empty()) return now;
  std::optional<base::Time> due;
  if (!backoff_.empty()) due = backoff_.begin()->at;
  if (!parked_.empty() && (!due || parked_.begin()->at < *due)) due = parked_.begin()->at;
  return due;
}

std::optional<size_t> WaitQueue::position(Key key) const {
  auto at = pods_.find(key);
  if (at == pods_.end()) return std::nullopt;
  Turn mine = turn_of(key, at->second);
  return static_cast<size_t>(std::count_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
    return turn_of(entry.first, entry.second) < mine;
  }));
}

int32_t WaitQueue::attempts(Key key) const {
  auto at = pods_.find(key);
  return at == pods_.end() ? 0 : at->second.attempts;
}

}  // namespace tessera::scheduler::core
