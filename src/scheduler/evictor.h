// Carries out evictions through the Eviction API, those of one group together: whoever a disruption budget covers is asked for
// first, and the others go only when all of these may.
//
// Shape:   evict() takes what a cycle decided. A budget's refusal is tried again a few times; after that the whole batch stays,
//          but for those who are going already, and Hooks::refused tells of each.
// Errors:  an answer that was lost is asked for again until the pod is seen gone (forget()).
// Threads: the scheduler's strand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "kube/client.h"
#include "scheduler/model.h"

namespace tessera::scheduler {

class Evictor {
 public:
  struct Hooks {
    std::function<void(const EvictDecision&)> accepted;
    std::function<void(const std::string& pod)> refused;
  };
  Evictor(kube::Client& client, base::Executor& executor, Hooks hooks);
  ~Evictor();

  void evict(const std::vector<EvictDecision>& decisions);
  // The pod is gone, or nothing is to be asked for any more.
  void forget(const std::string& pod);
  void forget_all();
  size_t in_flight() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::scheduler
