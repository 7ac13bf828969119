// A simulated storage system: makes, grows and deletes the volumes of StorageClasses with provisioner tessera.dev/simulated,
// as an outside provisioner and resizer do.
//
// Shape:   informers feed a queue; one object at a time. A volume is made `delay` after its claim asked, reachable from every
//          node, or, with class parameter local: "true", only from the node that the scheduler chose. Nothing is stored in it.
// Errors:  events on the claim (ProvisioningFailed, VolumeResizeFailed); API errors are retried with back-off.
// Threads: everything on the executor given, which must be the client's.
// Source:  sigs.k8s.io/sig-storage-lib-external-provisioner, external-resizer (behaviour, reasons of events).
#pragma once

#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "kube/client.h"

namespace tessera::sim {

inline constexpr std::string_view kSimulatedProvisioner = "tessera.dev/simulated";

class Provisioner {
 public:
  struct Options {
    base::Duration delay = base::millis(500);  // of making, growing and deleting a volume
    // Creates StorageClass "simulated" as the default one where no class is that yet.
    bool default_class = false;
  };

  Provisioner(kube::Client& client, base::Executor& executor, const base::Clock& clock,
              base::Random random, Options options);
  ~Provisioner();
  void start();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::sim
