#include "apiserver/controller_deployment.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

DeploymentController::DeploymentController(Cluster& cluster, OwnerIndex& sets, OwnerIndex& pods)
    : cluster_(cluster),
      set_index_(sets),
      pod_index_(pods),
      deployments_(cluster.cache("apps", "Deployment")),
      sets_(cluster.cache("apps", "ReplicaSet")),
      queue_(cluster, "deployment",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  deployments_.subscribe([this](const Object& before, const Object& after) {
    queue_.enqueue((after ? after : before).key());
  });
  sets_.subscribe([this](const Object& before, const Object& after) { on_set(before, after); });
  cluster.cache("", "Pod").subscribe([this](const Object& before, const Object& after) {
    if (before && (!after || is_finished(after))) on_pod_gone(before);
  });
}

void DeploymentController::on_set(const Object& before, const Object& after) {
  for (const Object* set : {&before, &after}) {
    if (!*set) continue;
    const Value& owner = controller_of(*set);
    if (owner["kind"].as_string() == "Deployment") {
      queue_.enqueue(std::string(set->ns()) + "/" + owner["name"].str());
    }
  }
  if (after && controller_of(after).is_null() && !after.deleting()) enqueue_matching(after);
}

// A Deployment that recreates waits for the last old pod.
void DeploymentController::on_pod_gone(const Object& pod) {
  const Value& owner = controller_of(pod);
  if (owner["kind"].as_string() != "ReplicaSet") return;
  const Object set = sets_.find(std::string(pod.ns()) + "/" + owner["name"].str());
  if (!set) return;
  const Value& above = controller_of(set);
  if (above["kind"].as_string() != "Deployment") return;
  const std::string key = std::string(pod.ns()) + "/" + above["name"].str();
  const Object deployment = deployments_.find(key);
  if (deployment.get("spec", "strategy", "type").as_string() == "Recreate") queue_.enqueue(key);
}

void DeploymentController::enqueue_matching(const Object& orphan) {
  const Value& labels = orphan.metadata()["labels"];
  if (labels.empty()) return;
  const std::string prefix = std::string(orphan.ns()) + "/";
  const auto& all = deployments_.objects();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    const auto selector = kube::LabelSelector::from_json(it->second.get("spec", "selector"), "");
    if (selector && selector->matches(labels)) queue_.enqueue(it->first);
  }
}

std::vector<OwnedSet> DeploymentController::owned_sets(const Object& object,
                                                       const kube::Deployment& deployment) const {
  std::vector<OwnedSet> out;
  for (const Object& set : set_index_.of_owner(object.uid())) {
    auto decoded = kube::decode_replica_set(set);
    if (decoded) out.push_back({set, std::move(*decoded)});
  }
  mark_current(deployment, out);
  return out;
}

std::vector<Object> DeploymentController::to_adopt(const Object& object,
                                                   const kube::Deployment& deployment) const {
  std::vector<Object> out = set_index_.orphans(object.ns());
  std::erase_if(out, [&](const Object& set) {
    return set.deleting() || !deployment.selector.matches(set.metadata()["labels"]);
  });
  return out;
}

bool DeploymentController::old_pods_run(const std::vector<OwnedSet>& sets) const {
  for (const OwnedSet& each : sets) {
    if (each.current) continue;
    const std::vector<Object> pods = pod_index_.of_owner(each.object.uid());
    if (std::ranges::any_of(pods, [](const Object& pod) { return !is_finished(pod); })) return true;
  }
  return false;
}

void DeploymentController::sync(const std::string& key, Done done) {
  const Object object = deployments_.find(key);
  if (!object) return done({});
  auto deployment = kube::decode_deployment(object);
  if (!deployment) {
    base::log_warn("deployment does not read name={} error={}", key, deployment.error().message);
    return done({});
  }
  if (deployment->selector.selects_everything()) {
    cluster_.events().warning(object, "SelectingAll",
                              "This deployment is selecting all pods. A non-empty selector is "
                              "required.");
    return done({});
  }
  auto finish = [this, key, done = std::move(done)](const base::Status& outcome) {
    report(key, outcome, done);
  };
  if (object.deleting()) return finish({});
  std::vector<Object> orphans = to_adopt(object, *deployment);
  if (orphans.empty()) return carry_out(object, *deployment, std::move(finish));
  adopt(cluster_, sets_, deployments_, object, std::move(orphans),
        [this, object, deployment = std::move(*deployment),
         finish = std::move(finish)](const base::Status& status) {
          if (!status) return finish(status);
          carry_out(object, deployment, finish);
        });
}

void DeploymentController::carry_out(const Object& object, const kube::Deployment& deployment,
                                     Done done) {
  const std::vector<OwnedSet> sets = owned_sets(object, deployment);
  const DeploymentPlan plan = plan_deployment(deployment, sets, old_pods_run(sets));
  std::vector<Action> actions;
  if (plan.create) {
    actions.push_back(create_set(object, deployment, *plan.create, current_revision(sets)));
  }
  for (const auto& [index, replicas] : plan.resize) {
    actions.push_back(resize_set(object, deployment, sets[index], replicas));
  }
  for (const size_t index : plan.remove) {
    actions.push_back([this, set = sets[index].object](Done each) {
      cluster_.remove(sets_, set, {}, std::move(each));
    });
  }
  annotate(object, deployment, sets, plan.create.has_value(), actions);
  run_in_order(std::move(actions), std::move(done));
}

Action DeploymentController::create_set(const Object& object, const kube::Deployment& deployment,
                                        int32_t replicas, int64_t revision) {
  Value made = new_replica_set(object, deployment, deployments_.kind(), replicas, revision);
  return [this, object, replicas, made = std::move(made)](const Done& done) {
    const std::string name = made.get("metadata", "name").str();
    const std::string key = std::string(object.ns()) + "/" + name;
    cluster_.create(
        sets_, made, [this, object, replicas, name, key, done](const base::Result<Object>& result) {
          if (result) {
            if (replicas > 0) {
              cluster_.events().normal(
                  object, "ScalingReplicaSet",
                  fmt::format("Scaled up replica set {} from 0 to {}", name, replicas));
            }
            return done({});
          }
          const Object there = sets_.find(key);
          const bool taken = result.error().code == base::Code::kAlreadyExists && there &&
                             controller_of(there)["uid"].as_string() != object.uid();
          if (!taken) {
            if (is_namespace_terminating(result.error())) return done({});
            if (result.error().code == base::Code::kAlreadyExists) {
              return done(base::error(result.error()));
            }
            cluster_.events().warning(object, "ReplicaSetCreateError",
                                      fmt::format("Failed to create new replica set \"{}\": {}",
                                                  name, result.error().message));
            return done(base::error(result.error()));
          }
          // Another set has this name: the next hash is a different one.
          const Object now = deployments_.find(object.key());
          if (!now) return done({});
          Value status = now["status"];
          status.set("collisionCount", status["collisionCount"].as_int() + 1);
          write_status(cluster_, deployments_, now, std::move(status), done);
        });
  };
}

Action DeploymentController::resize_set(const Object& object, const kube::Deployment& deployment,
                                        const OwnedSet& set, int32_t replicas) {
  Value patch;
  patch.ref("spec").set("replicas", replicas);
  patch.ref("metadata").set("annotations", size_annotations(deployment));
  return [this, object, before = set.set.replicas, target = set.object, replicas,
          patch = std::move(patch)](const Done& done) {
    cluster_.patch(
        sets_, target, patch, {},
        [this, object, before, replicas, target, done](const base::Result<Object>& result) {
          if (!result) return done(base::error(result.error()));
          if (before != replicas) {
            cluster_.events().normal(
                object, "ScalingReplicaSet",
                fmt::format("Scaled {} replica set {} from {} to {}",
                            replicas > before ? "up" : "down", target.name(), before, replicas));
          }
          done({});
        });
  };
}

// The revision stands on the current set and on the Deployment.
void DeploymentController::annotate(const Object& object, const kube::Deployment& deployment,
                                    const std::vector<OwnedSet>& sets, bool creates,
                                    std::vector<Action>& actions) {
  const int64_t revision = current_revision(sets);
  bool exists = creates;
  for (const OwnedSet& each : sets) {
    if (!each.current) continue;
    exists = true;
    const Value& has = each.object.metadata()["annotations"];
    Value annotations = set_annotations(object, deployment, has, revision);
    const bool same = std::ranges::all_of(annotations.members(), [&](const json::Member& member) {
      return has[member.name()] == member.value;
    });
    if (same && each.set.min_ready_seconds == deployment.min_ready_seconds) continue;
    Value patch;
    patch.ref("metadata").set("annotations", std::move(annotations));
    patch.ref("spec").set("minReadySeconds", deployment.min_ready_seconds);
    actions.push_back([this, set = each.object, patch](Done done) {
      cluster_.patch(sets_, set, patch, {}, as_status(std::move(done)));
    });
  }
  // One that is paused, or waits for old pods to end, has no set of its new template yet.
  if (!exists) return;
  if (object.annotation(kRevision) == std::to_string(revision)) return;
  Value patch;
  patch.ref("metadata", "annotations").set(kRevision, std::to_string(revision));
  actions.push_back([this, object, patch](Done done) {
    cluster_.patch(deployments_, object, patch, {}, as_status(std::move(done)));
  });
}

void DeploymentController::report(const std::string& key, const base::Status& outcome,
                                  const Done& done) {
  const Object object = deployments_.find(key);
  if (!object) return done({});
  const auto deployment = kube::decode_deployment(object);
  if (!deployment) return done({});
  Value status =
      deployment_status(object, *deployment, owned_sets(object, *deployment), cluster_.now());
  if (const auto due = progress_deadline(*deployment, status)) {
    // Times in conditions are whole seconds.
    queue_.enqueue_after(key, std::max(*due - cluster_.now(), base::Duration{}) + base::seconds(1));
  }
  write_status(
      cluster_, deployments_, object, std::move(status),
      [outcome, done](base::Status written) { done(outcome ? std::move(written) : outcome); });
}

}  // namespace tessera::apiserver::controller
