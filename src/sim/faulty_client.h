// A client whose network misbehaves by seed: delays, refusals before the call, lost replies after it, watches that break.
//
// Shape:   wraps another client on the same executor. A lost reply means that the write happened and the caller hears
//          kTimeout: the case that breaks components which are not idempotent.
// Threads: the executor's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/executor.h"
#include "base/random.h"
#include "kube/client.h"

namespace tessera::sim {

struct NetworkFaults {
  double refuse = 0;         // kUnavailable, the call never reaches the server
  double lose_reply = 0;     // the call happens, the caller hears kTimeout
  double conflict = 0;       // kConflict on writes, as if somebody else had been faster
  double break_watch = 0;    // each event may end its watch
  base::Duration delay_max;  // each way, uniform
};

class FaultyClient : public kube::Client {
 public:
  // `faults` is read at each call, so that a world can heal.
  FaultyClient(kube::Client& inner, base::Executor& executor, base::Random random,
               const NetworkFaults& faults);
  void call(kube::Request request, std::function<void(kube::Reply)> done) override;
  std::unique_ptr<base::Subscription> watch(kube::Request request,
                                            std::function<void(kube::WatchEvent)> on_event,
                                            std::function<void(base::Status)> on_close) override;
  uint64_t injected() const { return injected_; }
  // Sees each write that was acknowledged, with the object's resourceVersion.
  std::function<void(const kube::Request&, const json::Value&)> on_acknowledged;

 private:
  base::Duration delay();

  kube::Client& inner_;
  base::Executor& executor_;
  base::Random random_;
  const NetworkFaults& faults_;
  uint64_t injected_ = 0;
};

}  // namespace tessera::sim
