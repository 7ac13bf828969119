// One thread that waits on sockets (epoll), runs posted tasks and a periodic tick.
//
// Shape:   a Source is told when its descriptor can be read or written; interest is level-triggered
//          and changed by set().
// Threads: post() and stop() from any thread (stop() not from the loop's own); everything else on
//          the loop's thread, or before start().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace tessera::http {

struct Ready {
  bool readable = false;
  bool writable = false;
  bool hung_up = false;  // error, or both directions are shut
};

class EventLoop {
 public:
  class Source {
   public:
    virtual ~Source() = default;
    virtual void on_ready(Ready ready) = 0;
  };

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  base::Status start(const char* thread_name);
  // Runs what was posted before, then ends and joins the thread.
  void stop();
  // Whether the caller is on the loop's own thread.
  bool here();
  // False when the loop has ended: the task is dropped.
  bool post(std::function<void()> task);

  // False where the kernel refuses.
  bool add(int fd, std::shared_ptr<Source> source, bool read, bool write);
  void set(int fd, bool read, bool write);
  void remove(int fd);
  void every(base::Duration period, std::function<void()> tick);
  // Monotonic; read once a turn.
  base::Duration now() const { return now_; }

 private:
  struct Entry {
    std::shared_ptr<Source> source;
    uint32_t generation = 0;
    uint32_t events = 0;
  };

  void run();
  bool run_tasks();
  int wait_ms();
  void dispatch(uint64_t tag, uint32_t events);
  void drain_wakeups();

  int epoll_ = -1;
  int wake_ = -1;
  base::Duration now_;
  base::Duration period_;
  base::Duration next_tick_;
  std::function<void()> tick_;
  uint32_t next_generation_ = 1;
  std::unordered_map<int, Entry> entries_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;  // guarded by mutex_, as the three below
  bool stopping_ = false;
  bool ended_ = false;
  std::thread::id self_;
  std::thread thread_;
};

}  // namespace tessera::http
