// The scheduler as a Kubernetes component: mirrors nodes and pods into the core, decides, binds, and says why a pod waits.
//
// Shape:   informers feed a Model (model.h) by the piece; its cycle decides who starts, who goes first and who has to make room.
//          A placement is assumed at once and bound; a bind that fails or is in doubt is settled by reading the pod before
//          anything is given away again. A pod whose claims wait for it keeps its place until they are bound
//          (volume_binder.h). Of several schedulers for the same pods one leads: the others watch, keep the Model true and write
//          nothing (Options::leading, lead(), stand_by()). A term begins with fresh lists of nodes and pods. Evictions go through the Eviction API (evictor.h). Serves pods whose schedulerName is
//          listed in Options.
// Errors:  API errors are retried with back-off and never end it.
// Threads: everything on the executor given, which must be the client's.
// Source:  kube-scheduler (conditions, events and their wording).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "kube/client.h"
#include "scheduler/core/policy.h"
#include "scheduler/queueing/engine.h"

namespace tessera::scheduler {

class Scheduler {
 public:
  struct Options {
    std::vector<std::string> names = {"tessera"};  // schedulerName values served
    core::Policy policy = core::Policy::kFgd;
    queueing::EngineOptions engine{};  // its `scheduler` is made from `policy` and `mix`
    size_t binds_in_flight_max = 512;
    base::Duration explain_period =
        base::seconds(10);  // how often one pod's reason is written anew
    // How long a pod's place is kept for its claims to be bound.
    base::Duration volume_timeout = base::seconds(600);
    bool events = true;
    // The mix that FGD measures against, made with the core's own interner; empty: learned from arrivals.
    std::function<core::TypicalMix(core::Interner&)> mix;
    // Only nodes and pods with this label and value are served; an empty value: those without it. Empty key: all.
    std::string shard_key{};
    std::string shard_value{};
    // Of several schedulers one leads: asked before every write. This one stands by until lead(). Without: it leads.
    std::function<bool()> leading{};
    base::Duration write_timeout = base::seconds(4);  // kube::LeaderElection's request_timeout
    // Where writes go through another client, on the same executor: it must send at once, and give up after write_timeout.
    kube::Client* writes = nullptr;
    size_t writes_in_flight_max = 16;  // with `leading`: what that client sends at once
  };

  Scheduler(kube::Client& client, base::Executor& executor, const base::Clock& clock,
            base::Random random, Options options);
  ~Scheduler();
  void start();
  // The handlers of a kube::LeaderElection; from any thread, after start(). What was not sent yet is dropped by stand_by(),
  // and nothing is decided before lead() again.
  void lead();
  void stand_by();
  // Takes over what may change while it runs: all but names, mix, shard and what belongs to `leading`. From any thread.
  void reconfigure(Options options);

  struct Stats {
    uint64_t bound = 0;  // acknowledged binds
    uint64_t bind_errors = 0;
    size_t waiting = 0;  // without a place
    size_t assumed = 0;  // placed, not yet seen bound
    size_t nodes = 0;
    size_t writing = 0;   // with Options::leading: writes under way
    bool acting = false;  // leads and has begun to decide
  };
  // On the executor only.
  Stats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::scheduler
