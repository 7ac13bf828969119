// The kubelets of a simulated fleet: they register nodes, renew leases, admit bound pods, hand out devices, run containers
// on paper and report status, as real ones would through the same API.
//
// Shape:   one object serves all nodes from one watch on pods; each node has its own device pool and resources. The same
//          code runs on a virtual clock in sim::World and in real time under `tessera up`.
// Units:   see pod_run.h.
// Errors:  API errors are retried with back-off; a pod that is gone is dropped.
// Threads: everything on the executor given, which must be the client's.
// Source:  Kubernetes node and pod lifecycle; device manager (devices.h).
// Does not model: images, what is in volumes (only that claims are bound), networks, probes, eviction by pressure. Logs are made up: container_log.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apiserver/container_log.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "kube/client.h"
#include "sim/fleet.h"
#include "sim/pod_run.h"

namespace tessera::sim {

class Kubelets : public apiserver::ContainerLogs {
 public:
  struct Options {
    RunTimes times;
    base::Duration lease_period = base::seconds(10);
    base::Duration lease_duration = base::seconds(40);
    base::Duration heartbeat_period = base::seconds(300);
    // False: nodes are registered but leases are not renewed (replays that measure placement alone).
    bool leases = true;
  };

  Kubelets(kube::Client& client, base::Executor& executor, const base::Clock& clock,
           base::Random random, Fleet fleet, Options options);
  ~Kubelets() override;

  void start();
  // True once every node was created or found in the API.
  bool registered() const;

  // Power loss: nothing is renewed or reported and every process is gone; and its return.
  void fail_node(std::string_view node);
  void restore_node(std::string_view node);
  bool node_failed(std::string_view node) const;
  // A GPU that its health check gave up: allocatable shrinks, running pods keep it.
  void set_gpu_healthy(std::string_view node, int gpu, bool healthy);

  // From any thread; the reader is called on the executor.
  void read(apiserver::LogQuery query, std::shared_ptr<apiserver::LogReader> reader) override;

  size_t pods() const;
  size_t running() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::sim
