// The seam to threads and timers: a strand that runs tasks one at a time, in order.
//
// Shape:   a component owns its state on one Executor; whoever wants something of it posts. No component locks.
//          In production each executor is a LoopThread; in sim::World all are one virtual-time loop.
// Threads: post and post_after may be called from any thread. Tasks of one executor never overlap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/time.h"

namespace tessera::base {

using Task = std::function<void()>;

class Executor {
 public:
  virtual ~Executor() = default;
  virtual void post(Task task) = 0;
  // Runs the task once `delay` has passed. Timers are not cancelled: a task that is no longer wanted sees so and returns.
  virtual void post_after(Duration delay, Task task) = 0;
};

// A named thread with a queue and timers. stop() drops what has not run and joins; tasks posted later are dropped.
class LoopThread : public Executor {
 public:
  explicit LoopThread(std::string name);
  ~LoopThread() override;
  void post(Task task) override;
  void post_after(Duration delay, Task task) override;
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Runs tasks on the calling thread, in order of due time, then of posting: for tests and, on a virtual clock, for
// simulation. Not thread-safe.
class ManualLoop : public Executor {
 public:
  ManualLoop();
  ~ManualLoop() override;
  void post(Task task) override;
  void post_after(Duration delay, Task task) override;
  Duration now() const;
  // Runs what is due now; returns the number of tasks run.
  size_t run_ready();
  // Moves time to the next timer and runs what is due; false when nothing waits.
  bool step();
  // Runs everything that falls due within `d`.
  void advance(Duration d);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Something that stops when it goes out of scope: a watch, a subscription.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

}  // namespace tessera::base
