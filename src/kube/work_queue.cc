#include "kube/work_queue.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "base/log.h"

namespace tessera::kube {

struct WorkQueue::State : std::enable_shared_from_this<State> {
  State(base::Executor& e, Options o, Handler h)
      : executor(e), options(std::move(o)), handler(std::move(h)) {}

  base::Executor& executor;
  Options options;
  Handler handler;

  std::deque<std::string> order;  // keys that wait, each once
  std::set<std::string> wanted;   // keys that wait, or that came again while in work
  std::set<std::string> working;
  std::map<std::string, int> failures;
  bool pumping = false;
  bool stopped = false;

  void add(std::string key) {
    if (stopped || !wanted.insert(key).second) return;
    if (working.contains(key)) return;  // runs again once it is done
    order.push_back(std::move(key));
    pump_later();
  }

  void add_after(std::string key, base::Duration delay) {
    executor.post_after(delay, [weak = weak_from_this(), key = std::move(key)] {
      if (const auto self = weak.lock()) self->add(key);
    });
  }

  void pump_later() {
    if (std::exchange(pumping, true)) return;
    executor.post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->pump();
    });
  }

  void pump() {
    pumping = false;
    if (stopped || order.empty() || static_cast<int>(working.size()) >= options.parallel) return;
    const std::string key = std::move(order.front());
    order.pop_front();
    wanted.erase(key);
    working.insert(key);
    // One key a task: others on this executor get their turn in between.
    if (!order.empty()) pump_later();
    handler(key, [weak = weak_from_this(), key,
                  used = std::make_shared<bool>(false)](base::Status status) {
      if (std::exchange(*used, true)) return;
      if (const auto self = weak.lock()) self->finished(key, std::move(status));
    });
  }

  void finished(const std::string& key, base::Status status) {
    working.erase(key);
    if (stopped) return;
    if (status) {
      failures.erase(key);
    } else {
      const int count = ++failures[key];
      base::log_debug("retry queue={} key={} failures={} error=\"{}\"", options.name, key, count,
                      status.error().message);
      add_after(key, delay_of(count));
    }
    if (wanted.contains(key)) order.push_back(key);
    if (!order.empty()) pump_later();
  }

  base::Duration delay_of(int count) const {
    int64_t delay = options.delay_first.ns;
    for (int i = 1; i < count && delay < options.delay_max.ns; ++i) delay *= 2;
    return base::nanos(std::min(delay, options.delay_max.ns));
  }
};

WorkQueue::WorkQueue(base::Executor& executor, Handler handler)
    : WorkQueue(executor, Options(), std::move(handler)) {}

WorkQueue::WorkQueue(base::Executor& executor, Options options, Handler handler)
    : state_(std::make_shared<State>(executor, std::move(options), std::move(handler))) {}

WorkQueue::~WorkQueue() {
  state_->stopped = true;
}

void WorkQueue::add(std::string key) {
  state_->add(std::move(key));
}

void WorkQueue::add_after(std::string key, base::Duration delay) {
  state_->add_after(std::move(key), delay);
}

size_t WorkQueue::waiting() const {
  return state_->order.size();
}

size_t WorkQueue::in_work() const {
  return state_->working.size();
}

int WorkQueue::failures(const std::string& key) const {
  const auto found = state_->failures.find(key);
  return found == state_->failures.end() ? 0 : found->second;
}

}  // namespace tessera::kube
