// Keeps the status of ResourceQuotas: spec.hard as it is observed, and what is used of it.
//
// Shape:   whatever comes, goes or changes its usage in a namespace has its quotas counted anew, a moment later and together.
//          Admission has raised status.used already (admission_quota.h); this finds what was freed. The quota is read
//          first, the objects then, and the write holds for that quota only: since admission writes the quota with every
//          object it lets in, no count can miss one.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/resourcequota (behaviour).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class QuotaController {
 public:
  explicit QuotaController(Cluster& cluster, const Kinds& kinds);
  void start() { queue_.enqueue_all(quotas_); }

 private:
  struct Count;
  void watch(Cache& cache);
  void usage_changed(const kube::Object& before, const kube::Object& after, const Kind& kind);
  // The quota is counted after the delay, or earlier where that is planned already.
  void count_in(const std::string& key, base::Duration delay);
  void sync(const std::string& key, Done done);
  void count(const std::shared_ptr<Count>& count, Done done);
  void write(const std::shared_ptr<Count>& count, Done done);

  Cluster& cluster_;
  const Kinds& kinds_;
  Cache& quotas_;
  Reconciler queue_;
  struct Planned {
    base::Duration delay;
    uint64_t ticket = 0;
  };
  std::map<std::string, Planned> planned_;
  uint64_t tickets_ = 0;
};

}  // namespace tessera::apiserver::controller
