// Keys to work on, each once at a time, with retries that back off: the heart of a controller.
//
// Shape:   add() of a key that waits does nothing; add() of a key that is in work runs it once more
//          afterwards. The handler says when it is done and how: a failure runs the key again after
//          5 ms, 10 ms, ... 1000 s; success forgets the failures. Keys run in order of arrival, at
//          most `parallel` at once.
// Threads: everything on the executor; the handler's `done` may be called later, once, from that
//          executor.
// Source:  client-go util/workqueue (semantics and delays).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/result.h"

namespace tessera::kube {

class WorkQueue {
 public:
  using Done = std::function<void(base::Status)>;
  using Handler = std::function<void(const std::string& key, Done done)>;
  struct Options {
    std::string name = "queue";  // in logs
    int parallel = 1;
    base::Duration delay_first = base::millis(5);
    base::Duration delay_max = base::seconds(1000);
  };

  WorkQueue(base::Executor& executor, Handler handler);
  WorkQueue(base::Executor& executor, Options options, Handler handler);
  // Nothing runs any more after this; a handler in work may still call its done.
  ~WorkQueue();

  void add(std::string key);
  void add_after(std::string key, base::Duration delay);
  size_t waiting() const;
  size_t in_work() const;
  int failures(const std::string& key) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::kube
