#include "apiserver/rbac_aggregation.h"

#include <utility>

#include "apiserver/auth.h"

namespace tessera::apiserver {

using json::Value;

void RoleAggregation::on_change(const Store::Change& change) {
  if (change.kind->plural == "clusterroles" && change.kind->group == "rbac.authorization.k8s.io") {
    arm();
  }
}

void RoleAggregation::arm() {
  if (armed_) return;
  const auto core = core_.lock();
  if (!core) return;
  armed_ = true;
  core->options.executor->post([self = shared_from_this()] {
    self->armed_ = false;
    self->run();
  });
}

void RoleAggregation::run() {
  const auto core = core_.lock();
  if (!core || core->access == nullptr) return;
  const Kind* kind = core->options.kinds->find({"rbac.authorization.k8s.io", "v1", "clusterroles"});
  if (kind == nullptr) return;
  for (auto& [name, rules] : core->access->rbac().stale_aggregates()) {
    auto call = std::make_shared<Call>();
    call->kind = kind;
    call->caller = system_caller("clusterrole-aggregation-controller");
    call->request.verb = kube::Verb::kUpdate;
    call->request.gvr = kind->gvr();
    call->request.name = name;
    call->done = [](const ApiReply&) {};
    Update update;
    update.key = call->key();
    update.name = name;
    update.transform = [rules](const Value& current) -> base::Result<Value> {
      Value object = current;
      object.set("rules", rules);
      return object;
    };
    run_update(*core, call, update);
  }
}

}  // namespace tessera::apiserver
