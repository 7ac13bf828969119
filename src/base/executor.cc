#include "base/executor.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace tessera::base {

using Steady = std::chrono::steady_clock;

struct LoopThread::Impl {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Task> queue;
  std::multimap<Steady::time_point, Task> timers;
  bool stopping = false;
  std::thread thread;

  void run();
};

void LoopThread::Impl::run() {
  std::deque<Task> batch;
  std::unique_lock lock(mutex);
  while (!stopping) {
    const auto now = timers.empty() ? Steady::time_point() : Steady::now();
    while (!timers.empty() && timers.begin()->first <= now) {
      queue.push_back(std::move(timers.begin()->second));
      timers.erase(timers.begin());
    }
    if (queue.empty()) {
      if (timers.empty()) {
        wake.wait(lock);
      } else {
        const auto due = timers.begin()->first;
        wake.wait_until(lock, due);
      }
      continue;
    }
    batch.swap(queue);
    lock.unlock();
    for (Task& task : batch) {
      task();
      task = nullptr;
    }
    batch.clear();
    lock.lock();
  }
}

LoopThread::LoopThread(std::string name) : impl_(std::make_unique<Impl>()) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
  name.resize(std::min<size_t>(name.size(), 15));  // the kernel's limit
  pthread_setname_np(impl_->thread.native_handle(), name.c_str());
}

LoopThread::~LoopThread() {
  stop();
}

void LoopThread::post(Task task) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->stopping) return;
  impl_->queue.push_back(std::move(task));
  if (impl_->queue.size() == 1) impl_->wake.notify_one();
}

void LoopThread::post_after(Duration delay, Task task) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->stopping) return;
  impl_->timers.emplace(Steady::now() + std::chrono::nanoseconds(delay.ns), std::move(task));
  impl_->wake.notify_one();
}

void LoopThread::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->wake.notify_one();
  }
  if (impl_->thread.joinable()) impl_->thread.join();
  std::deque<Task> queue;
  std::multimap<Steady::time_point, Task> timers;
  const std::lock_guard lock(impl_->mutex);
  queue.swap(impl_->queue);
  timers.swap(impl_->timers);
}

struct ManualLoop::Impl {
  Duration now;
  uint64_t next_seq = 0;
  std::map<std::pair<int64_t, uint64_t>, Task> tasks;
};

ManualLoop::ManualLoop() : impl_(std::make_unique<Impl>()) {}
ManualLoop::~ManualLoop() = default;

void ManualLoop::post(Task task) {
  post_after(Duration{0}, std::move(task));
}

void ManualLoop::post_after(Duration delay, Task task) {
  const int64_t due = impl_->now.ns + (delay.ns > 0 ? delay.ns : 0);
  impl_->tasks.emplace(std::pair(due, impl_->next_seq++), std::move(task));
}

Duration ManualLoop::now() const {
  return impl_->now;
}

size_t ManualLoop::run_ready() {
  size_t count = 0;
  while (!impl_->tasks.empty() && impl_->tasks.begin()->first.first <= impl_->now.ns) {
    auto node = impl_->tasks.extract(impl_->tasks.begin());
    node.mapped()();
    ++count;
  }
  return count;
}

bool ManualLoop::step() {
  if (impl_->tasks.empty()) return false;
  impl_->now.ns = std::max(impl_->now.ns, impl_->tasks.begin()->first.first);
  run_ready();
  return true;
}

void ManualLoop::advance(Duration d) {
  const int64_t end = impl_->now.ns + d.ns;
  while (!impl_->tasks.empty() && impl_->tasks.begin()->first.first <= end) step();
  impl_->now.ns = end;
}

}  // namespace tessera::base
