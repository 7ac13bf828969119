// Claims, volumes and classes as the scheduler sees them, and the wait between a pod's place and its bind: claims that waited
// for the pod get a volume or the name of the node first.
//
// Shape:   bind() writes what volume_promises says and calls `done` once, when all claims are bound or the place is to be
//          given up; forget() drops the wait without a word. park() keeps in mind whom a change of a claim wakes.
// Errors:  `done` gets kConflict where another place is to be found, kTimeout after Options::timeout.
// Threads: the scheduler's strand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/random.h"
#include "kube/client.h"
#include "scheduler/pod_volumes.h"

namespace tessera::scheduler {

class VolumeBinder {
 public:
  struct Options {
    base::Duration timeout = base::seconds(600);
  };
  struct Hooks {
    std::function<void(const std::string& pod_key)> wake;
    std::function<void()> synced;
  };

  VolumeBinder(kube::Client& client, base::Executor& executor, Options options, Hooks hooks);
  ~VolumeBinder();
  void start(base::Random random);
  bool synced() const;

  VolumeNeeds needs(const kube::Object& pod, const Objects& nodes, core::Interner& names) const;
  // Nothing is to be written or waited for before the pod is bound.
  bool all_bound(const kube::Object& pod, const kube::Object& node) const;
  void bind(const kube::Object& pod, const kube::Object& node,
            std::function<void(base::Status)> done);
  // True when there was a wait.
  bool forget(const std::string& pod_key);
  // Every wait; the pods that waited.
  std::vector<std::string> forget_all();
  void set_timeout(base::Duration timeout);  // of waits that begin from now on
  // Every wait for a place on that node has failed.
  void node_gone(std::string_view node);

  void park(const kube::Object& pod);
  void unpark(const kube::Object& pod);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::scheduler
