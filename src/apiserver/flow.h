// Flow control: every user has a queue of its own, and the queues take turns, so that one user cannot starve the rest.
//
// Shape:   submit() queues a request under its flow (the user); the executor runs the next one of the flow whose turn it
//          is while seats are free. A request gives its seat back when the last copy of it goes: writes hold it until
//          they are durable, watches until they have begun.
// Units:   limits count requests.
// Errors:  kTooManyRequests where the flow's queue, or all queues together, are full.
// Threads: any; tasks run on the executor, never inside submit().
// Source:  Kubernetes API Priority and Fairness (the idea; one level, one queue a user).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/result.h"

namespace tessera::apiserver {

class FlowControl {
 public:
  struct Options {
    base::Executor* executor = nullptr;
    size_t running_max = 64;
    size_t queue_max = 256;     // waiting, of one flow
    size_t waiting_max = 8192;  // waiting, of all
  };
  using Seat = std::shared_ptr<void>;

  explicit FlowControl(Options options);
  ~FlowControl();
  struct Load {
    size_t running = 0;
    size_t waiting = 0;
    uint64_t refused = 0;  // since the start
  };
  Load load() const;
  base::Status submit(const std::string& flow, std::function<void(Seat)> task);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::apiserver
