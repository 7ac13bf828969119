// Which of several like processes acts: a leader by a Lease (coordination.k8s.io/v1), and standbys.
//
// Shape:   every candidate reads the Lease each retry_period. One that may take it writes its name into it and leads; the
//          leader writes renewTime each retry_period. Who lost stands again, at once. on_started and on_lost come in turns.
//          stop() gives the Lease up, so that a standby takes over within one retry_period.
// Rule:    two never write at once, if every write of the component is preceded by leading() and given up after request_timeout.
//          1. leading() ends renew_deadline after the last renewal that succeeded was *sent*. It is worked out from the own
//             clock at each call: a process that was stopped for a while does not act on what it knew before.
//          2. A Lease with a holder is taken only after a candidate has seen the same version of it for lease_duration on
//             its own clock, and only if that version is still the current one (resourceVersion). So the last renewal of
//             whoever led before was sent more than lease_duration ago; times that others wrote are never compared.
//          3. renew_deadline + request_timeout < lease_duration (start() refuses others): what the old leader sent last has
//             been answered or given up before the new one begins.
//          4. A Lease without a holder is taken at once: its holder has emptied it. Hence stop() is to be called when the
//             component's own writes have been answered; where they cannot be awaited, release_on_stop is to be off.
//          5. A missing Lease may have had a holder. It is made, and then has to run out like any other before somebody
//             leads, its maker too. An installation that makes it, without a holder, has its first leader at once; under
//             candidates that run it must not be made anew, nor emptied, by hand.
//          6. A new leader begins with a fresh list of what it works on, never with what it knew as a standby.
//          Every term has an epoch, leaseTransitions: higher than all before it under this Lease, for what can be fenced by
//          a number. (A Lease that was deleted counts on from what its maker has seen.)
// Units:   leaseDurationSeconds is in whole seconds, and so is lease_duration.
// Errors:  none ends it: answers that fail or do not come are tried again, and after renew_deadline the leader is none.
//          The wall clock may jump: back changes nothing, forward past renew_deadline ends the term and begins another.
//          Two processes with one identity are told apart by an annotation (kLeaderSession) and never lead together.
// Threads: everything on the executor, which must be the client's, leading() too. Handlers may call stop() or destroy it.
// Source:  client-go tools/leaderelection (record and timing; its peers may share a Lease, under their weaker rule 5).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "kube/client.h"

namespace tessera::kube {

// Names the process that wrote the Lease, beyond its identity.
inline constexpr std::string_view kLeaderSession = "tessera.dev/leader-session";

class LeaderElection {
 public:
  struct Options {
    std::string ns;
    std::string name;
    std::string identity;  // of this process: pod name and a random suffix
    base::Duration lease_duration = base::seconds(15);
    base::Duration renew_deadline = base::seconds(10);
    base::Duration retry_period = base::seconds(2);
    // After this an answer is not waited for any more; also the longest that a guarded write may take.
    base::Duration request_timeout = base::seconds(4);
    bool release_on_stop = true;
  };
  struct Handlers {
    std::function<void(int64_t epoch)> on_started;
    // Not after stop().
    std::function<void(const std::string& reason)> on_lost;
    // Whenever another holder is seen, this process included.
    std::function<void(const std::string& identity)> on_new_leader;
  };

  LeaderElection(Client& client, base::Executor& executor, const base::Clock& clock,
                 base::Random random, Options options, Handlers handlers);
  // As a process that dies: the Lease is not given up.
  ~LeaderElection();

  // Errors: kInvalid naming the option; kBusy while it runs or is giving the Lease up.
  base::Status start();
  // Ends leading() at once; `done` runs when the Lease is given up, or cannot be (after lease_duration at the latest).
  void stop(std::function<void()> done = {});
  bool leading() const;
  // Of the term that leads now.
  std::optional<int64_t> epoch() const;
  // As last seen; empty: nobody.
  std::string holder() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

base::Status validate(const LeaderElection::Options& options);

}  // namespace tessera::kube
