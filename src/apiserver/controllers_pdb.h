// Keeps the status of PodDisruptionBudgets.
//
// Shape:   plan_budget is pure: the budget, its pods and the size that their owners should have make the status. The driver
//          finds them in the caches and writes the status where it differs, for that version of the budget only: what an
//          eviction took meanwhile (status.disruptedPods) is never overwritten.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/disruption (behaviour).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

// An owner of pods as its scale shows it.
struct OwnerScale {
  std::string uid;
  int64_t replicas = 0;
};
// The owner at the top (a Deployment above its ReplicaSet); an error where it has no scale.
using FindScale =
    std::function<base::Result<OwnerScale>(const json::Value& reference, std::string_view ns)>;

struct BudgetPlan {
  json::Value status;
  std::optional<base::Duration> look_again;  // when a noted eviction is no longer waited for
  std::vector<std::string> unmanaged;        // pods whose owner is not known
  std::string failure;
};
BudgetPlan plan_budget(const kube::Object& budget, const std::vector<kube::Object>& pods,
                       const FindScale& find_scale, base::Time now);

class BudgetController {
 public:
  explicit BudgetController(Cluster& cluster);
  void start() { queue_.enqueue_all(budgets_); }

 private:
  void pod_changed(const kube::Object& before, const kube::Object& after);
  void enqueue_namespace(std::string_view ns);
  void sync(const std::string& key, Done done);
  base::Result<OwnerScale> find_scale(const json::Value& reference, std::string_view ns,
                                      int depth = 0) const;

  Cluster& cluster_;
  Cache& budgets_;
  Cache& pods_;
  Reconciler queue_;
};

}  // namespace tessera::apiserver::controller
