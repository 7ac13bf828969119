// Writes what group_status.h and queue_status.h say: the status of groups in the dialect that was used, and of queues.
//
// Shape:   touch() notes groups that may have news; all queues are looked at every queue_period. So many are written a second;
//          what the API refuses because the object has changed is worked out anew. Kinds without a status subresource are
//          patched themselves.
// Errors:  none: what cannot be written is tried again with the next news, and logged once for each kind where it is forbidden.
// Threads: the scheduler's strand.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "kube/client.h"
#include "scheduler/model.h"

namespace tessera::scheduler {

class StatusWriter {
 public:
  struct Options {
    base::Duration group_period = base::seconds(1);  // between two writes about one group
    base::Duration queue_period = base::seconds(5);
    int writes_per_tick = 64;
  };
  // `model` and `acting` are asked when something is to be written; `now` is the engine's time.
  struct Source {
    std::function<const Model&()> model{};
    std::function<base::Time()> now{};
    std::function<bool()> acting{};
  };

  StatusWriter(kube::Client& client, base::Executor& executor, Options options, Source source);
  ~StatusWriter();
  void touch(const std::set<std::string>& groups);
  void touch_queues();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::scheduler
