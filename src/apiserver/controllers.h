// The built-in controllers of the embedded cluster: what kube-controller-manager does there.
//
// Shape:   Job, CronJob, ReplicaSet, Deployment, StatefulSet, DaemonSet, garbage collector, namespace, node lifecycle, service
//          account. Each computes its plan from informers as a pure function and carries it out through the client; all can
//          be killed between any two steps and started again.
// Errors:  API errors are retried with back-off and never end a controller.
// Threads: everything on the executor given, which must be the client's.
// Source:  Kubernetes 1.36 controller semantics (see each controller's file).
#pragma once

#include <memory>
#include <string>

#include "apiserver/kind.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "kube/client.h"

namespace tessera::apiserver {

class Controllers {
 public:
  struct Options {
    base::Duration node_grace = base::seconds(50);  // without a renewed lease a node is not ready
    // Those of the Api, so that custom kinds are seen too; outlives the controllers.
    const Kinds* kinds = &Kinds::builtin();
    std::string
        root_ca_pem{};  // published in every namespace as kube-root-ca.crt; empty: it is not
  };
  Controllers(kube::Client& client, base::Executor& executor, const base::Clock& clock,
              base::Random random, Options options);
  ~Controllers();
  void start();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::apiserver
