// A process of its own in a test on one loop: it can be stopped and go on later, and what it has sent goes on without it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "base/executor.h"
#include "kube/client.h"

namespace tessera::sim {

// What comes due while it is stopped runs when it goes on.
class Process : public base::Executor {
 public:
  explicit Process(base::ManualLoop& loop) : loop_(loop) {}
  void post(base::Task task) override {
    loop_.post([this, task = std::move(task)] { run(task); });
  }
  void post_after(base::Duration delay, base::Task task) override {
    loop_.post_after(delay, [this, task = std::move(task)] { run(task); });
  }
  void pause() { paused_ = true; }
  void resume() {
    paused_ = false;
    while (!paused_ && !missed_.empty()) {
      const base::Task task = std::move(missed_.front());
      missed_.pop_front();
      task();
    }
  }
  bool paused() const { return paused_; }

 private:
  void run(const base::Task& task) {
    if (paused_ || !missed_.empty()) {
      missed_.push_back(task);
    } else {
      task();
    }
  }
  base::ManualLoop& loop_;
  bool paused_ = false;
  std::deque<base::Task> missed_;
};

// A process's end of a client that lives outside of it, as a network does: answers and events wait while it is stopped.
class ProcessClient : public kube::Client {
 public:
  ProcessClient(kube::Client& outside, Process& process) : outside_(outside), process_(process) {}

  void call(kube::Request request, std::function<void(kube::Reply)> done) override {
    outside_.call(std::move(request), [this, done = std::move(done)](kube::Reply reply) {
      process_.post([done, reply = std::move(reply)] { done(reply); });
    });
  }
  std::unique_ptr<base::Subscription> watch(kube::Request request,
                                            std::function<void(kube::WatchEvent)> on_event,
                                            std::function<void(base::Status)> on_close) override {
    auto out = std::make_unique<Held>();
    std::weak_ptr<bool> open = out->open;
    out->inner = outside_.watch(
        std::move(request),
        [this, open, on_event = std::move(on_event)](kube::WatchEvent event) {
          process_.post([open, on_event, event = std::move(event)] {
            if (open.lock()) on_event(event);
          });
        },
        [this, open, on_close = std::move(on_close)](base::Status why) {
          process_.post([open, on_close, why = std::move(why)] {
            if (open.lock()) on_close(why);
          });
        });
    return out;
  }

 private:
  struct Held : base::Subscription {
    std::shared_ptr<bool> open = std::make_shared<bool>(true);
    std::unique_ptr<base::Subscription> inner;
  };
  kube::Client& outside_;
  Process& process_;
};

}  // namespace tessera::sim
