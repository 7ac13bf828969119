#include "http/event_loop.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace tessera::http {
namespace {

constexpr uint64_t kWakeTag = 0;  // generations start at 1, so no source has it
constexpr int kEventsMax = 256;

uint32_t events_of(bool read, bool write) {
  return (read ? uint32_t{EPOLLIN} : 0U) | (write ? uint32_t{EPOLLOUT} : 0U);
}

base::Duration monotonic() {
  return base::SystemClock().monotonic();
}

// OpenSSL writes without MSG_NOSIGNAL: a peer that is gone must be an error, not the end of the
// process.
void block_sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

EventLoop::EventLoop() : now_(monotonic()) {}

EventLoop::~EventLoop() {
  stop();
  if (epoll_ >= 0) ::close(epoll_);
  if (wake_ >= 0) ::close(wake_);
}

base::Status EventLoop::start(const char* thread_name) {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeTag;
  if (epoll_ < 0 || wake_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    return base::error(base::Code::kUnavailable,
                       "cannot make an event loop: {} (is the limit of open files reached?)",
                       std::strerror(errno));
  }
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), thread_name);
  return {};
}

void EventLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    const uint64_t one = 1;
    if (wake_ >= 0) (void)!::write(wake_, &one, sizeof one);
  }
  if (thread_.joinable()) thread_.join();
  std::vector<std::function<void()>> dropped;  // only where the thread never ran
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    dropped.swap(tasks_);
  }
  entries_.clear();
}

bool EventLoop::here() {
  const std::lock_guard lock(mutex_);
  return std::this_thread::get_id() == self_;
}

bool EventLoop::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  tasks_.push_back(std::move(task));
  if (tasks_.size() == 1 && wake_ >= 0 && std::this_thread::get_id() != self_) {
    const uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);
  }
  return true;
}

bool EventLoop::add(int fd, std::shared_ptr<Source> source, bool read, bool write) {
  Entry entry{std::move(source), next_generation_++, events_of(read, write)};
  epoll_event event{};
  event.events = entry.events;
  event.data.u64 = uint64_t{entry.generation} << 32 | static_cast<uint32_t>(fd);
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return false;
  entries_[fd] = std::move(entry);
  return true;
}

void EventLoop::set(int fd, bool read, bool write) {
  const auto found = entries_.find(fd);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const uint32_t events = events_of(read, write);
  if (entry.events == events) return;
  entry.events = events;
  epoll_event event{};
  event.events = events;
  event.data.u64 = uint64_t{entry.generation} << 32 | static_cast<uint32_t>(fd);
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::remove(int fd) {
  if (entries_.erase(fd) > 0) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::every(base::Duration period, std::function<void()> tick) {
  period_ = period;
  tick_ = std::move(tick);
  next_tick_ = now_ + period;
}

// True when there was anything to run.
bool EventLoop::run_tasks() {
  std::vector<std::function<void()>> batch;
  {
    const std::lock_guard lock(mutex_);
    batch.swap(tasks_);
  }
  for (auto& task : batch) {
    task();
    task = nullptr;
  }
  return !batch.empty();
}

int EventLoop::wait_ms() {
  {
    const std::lock_guard lock(mutex_);
    if (!tasks_.empty() || stopping_) return 0;
  }
  if (!tick_) return -1;
  const int64_t left_ns = (next_tick_ - monotonic()).ns;
  return left_ns <= 0 ? 0 : static_cast<int>(left_ns / 1'000'000 + 1);
}

void EventLoop::dispatch(uint64_t tag, uint32_t events) {
  // The source may have gone in this same turn, and its descriptor may already serve another.
  const auto found = entries_.find(static_cast<int>(tag & 0xffffffff));
  if (found == entries_.end() || found->second.generation != tag >> 32) return;
  const std::shared_ptr<Source> source = found->second.source;
  source->on_ready(
      {(events & EPOLLIN) != 0, (events & EPOLLOUT) != 0, (events & (EPOLLHUP | EPOLLERR)) != 0});
}

void EventLoop::drain_wakeups() {
  uint64_t count = 0;
  (void)!::read(wake_, &count, sizeof count);
}

void EventLoop::run() {
  block_sigpipe();
  {
    const std::lock_guard lock(mutex_);
    self_ = std::this_thread::get_id();
  }
  epoll_event ready[kEventsMax];
  while (true) {
    const int count = ::epoll_wait(epoll_, ready, kEventsMax, wait_ms());
    now_ = monotonic();
    for (int i = 0; i < count; ++i) {
      if (ready[i].data.u64 == kWakeTag) {
        drain_wakeups();
      } else {
        dispatch(ready[i].data.u64, ready[i].events);
      }
    }
    if (tick_ && now_ >= next_tick_) {
      next_tick_ = now_ + period_;
      tick_();
    }
    if (run_tasks()) continue;
    const std::lock_guard lock(mutex_);
    if (stopping_ && tasks_.empty()) {
      ended_ = true;
      return;
    }
  }
}

}  // namespace tessera::http
