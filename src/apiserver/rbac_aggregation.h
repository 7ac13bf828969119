// The controller of aggregated ClusterRoles: writes into each the rules of those that its selectors choose.
//
// Threads: on_change runs on the Api's executor, as the store's observer.
// Source:  RBAC documentation (aggregated ClusterRoles).
#pragma once

#include <memory>

#include "apiserver/api_core.h"

namespace tessera::apiserver {

class RoleAggregation : public std::enable_shared_from_this<RoleAggregation> {
 public:
  explicit RoleAggregation(const std::shared_ptr<Core>& core) : core_(core) {}
  // Looks at all of them soon.
  void arm();
  void on_change(const Store::Change& change);

 private:
  void run();

  const std::weak_ptr<Core> core_;
  bool armed_ = false;  // on the executor
};

}  // namespace tessera::apiserver
