#include "apiserver/controller_replica_set.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

ReplicaSetPlan plan_replica_set(const kube::ReplicaSet& set, const std::vector<Object>& owned,
                                const std::vector<Object>& orphans) {
  ReplicaSetPlan plan;
  if (set.meta.deleted) return plan;
  std::vector<Object> active;
  for (const Object& pod : owned) {
    if (!is_active(pod)) continue;
    if (set.selector.matches(pod.metadata()["labels"])) {
      active.push_back(pod);
    } else {
      plan.release.push_back(pod);
    }
  }
  for (const Object& pod : orphans) {
    if (!is_active(pod) || !set.selector.matches(pod.metadata()["labels"])) continue;
    plan.adopt.push_back(pod);
    active.push_back(pod);
  }
  const size_t wanted = static_cast<size_t>(std::max(set.replicas, 0));
  if (active.size() < wanted) {
    plan.create = std::min(wanted - active.size(), kBurstPods);
  } else if (active.size() > wanted) {
    sort_for_deletion(active);
    active.resize(std::min(active.size() - wanted, kBurstPods));
    plan.remove = std::move(active);
  }
  return plan;
}

Value replica_set_status(const kube::ReplicaSet& set, const Value& before,
                         const std::vector<Object>& owned, base::Time now,
                         std::string_view failure) {
  int64_t replicas = 0;
  int64_t labeled = 0;
  int64_t ready = 0;
  int64_t available = 0;
  int64_t terminating = 0;
  const kube::StringMap wanted =
      kube::decode_string_map(set.pod_template.get("metadata", "labels"));
  for (const Object& pod : owned) {
    if (is_finished(pod) || !set.selector.matches(pod.metadata()["labels"])) continue;
    terminating += pod.deleting();
    if (pod.deleting()) continue;
    ++replicas;
    labeled += std::ranges::all_of(
        wanted, [&](const auto& label) { return pod.label(label.first) == label.second; });
    ready += is_ready(pod);
    available += is_available(pod, set.min_ready_seconds, now);
  }
  Value status = without_condition(before, failure.empty() ? "ReplicaFailure" : "");
  // Its message names one refused pod of many: kept as it is, or each try would be a change to act on.
  if (!failure.empty() && condition_of(before, "ReplicaFailure").is_null()) {
    set_condition(status,
                  Value::object({{"type", "ReplicaFailure"},
                                 {"status", "True"},
                                 {"reason", "FailedCreate"},
                                 {"message", failure}}),
                  now);
  }
  const auto count = [&](const char* field, int64_t value) {
    if (value != 0) {
      status.set(field, value);
    } else {
      status.erase(field);
    }
  };
  status.set("replicas", replicas);
  status.set("terminatingReplicas", terminating);
  count("fullyLabeledReplicas", labeled);
  count("readyReplicas", ready);
  count("availableReplicas", available);
  status.set("observedGeneration", set.meta.generation);
  return status;
}

namespace {

// What the API refused, rather than what got lost on the way.
std::string_view refusal(const base::Status& outcome) {
  if (outcome) return {};
  switch (outcome.error().code) {
    case base::Code::kForbidden:
    case base::Code::kInvalid:
    case base::Code::kBadRequest:
    case base::Code::kTooLarge:
      return outcome.error().message;
    default:
      return {};
  }
}

}  // namespace

ReplicaSetController::ReplicaSetController(Cluster& cluster, OwnerIndex& index)
    : cluster_(cluster),
      index_(index),
      sets_(cluster.cache("apps", "ReplicaSet")),
      pods_(cluster.cache("", "Pod")),
      queue_(cluster, "replicaset",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  sets_.subscribe([this](const Object& before, const Object& after) {
    queue_.enqueue((after ? after : before).key());
  });
  pods_.subscribe([this](const Object& before, const Object& after) { on_pod(before, after); });
}

void ReplicaSetController::on_pod(const Object& before, const Object& after) {
  for (const Object* pod : {&before, &after}) {
    if (!*pod) continue;
    const Value& owner = controller_of(*pod);
    if (owner["kind"].as_string() == "ReplicaSet") {
      queue_.enqueue(std::string(pod->ns()) + "/" + owner["name"].str());
    }
  }
  if (!after || !controller_of(after).is_null() || after.deleting()) return;
  if (before && before.metadata()["labels"] == after.metadata()["labels"] &&
      controller_of(before).is_null()) {
    return;
  }
  enqueue_matching(after);
}

void ReplicaSetController::enqueue_matching(const Object& orphan) {
  const Value& labels = orphan.metadata()["labels"];
  if (labels.empty()) return;
  const std::string prefix = std::string(orphan.ns()) + "/";
  const auto& all = sets_.objects();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    const auto selector = kube::LabelSelector::from_json(it->second.get("spec", "selector"), "");
    if (selector && selector->matches(labels)) queue_.enqueue(it->first);
  }
}

void ReplicaSetController::sync(const std::string& key, Done done) {
  const Object object = sets_.find(key);
  if (!object) return done({});
  auto set = kube::decode_replica_set(object);
  if (!set) {
    base::log_warn("replica set does not read name={} error={}", key, set.error().message);
    return done({});
  }
  carry_out(object, *set, [this, key, done = std::move(done)](const base::Status& outcome) {
    report(key, outcome, done);
  });
}

void ReplicaSetController::carry_out(const Object& object, const kube::ReplicaSet& set, Done done) {
  ReplicaSetPlan plan =
      plan_replica_set(set, index_.of_owner(object.uid()), index_.orphans(object.ns()));
  std::vector<Action> actions;
  actions.push_back([this, object, adopted = std::move(plan.adopt)](Done each) {
    adopt(cluster_, pods_, sets_, object, adopted, std::move(each));
  });
  actions.push_back([this, object, released = std::move(plan.release)](Done each) {
    release(cluster_, pods_, object, released, std::move(each));
  });
  std::vector<Value> made;
  for (size_t i = 0; i < plan.create; ++i) {
    made.push_back(pod_from_template(set.pod_template, object, sets_.kind(), cluster_.random()));
  }
  actions.push_back([this, object, made = std::move(made)](Done each) {
    create_pods(cluster_, object, made, std::move(each));
  });
  actions.push_back([this, object, removed = std::move(plan.remove)](Done each) {
    delete_pods(cluster_, object, removed, std::move(each));
  });
  run_in_order(std::move(actions), std::move(done));
}

void ReplicaSetController::report(const std::string& key, const base::Status& outcome,
                                  const Done& done) {
  const Object object = sets_.find(key);
  if (!object) return done({});
  const auto set = kube::decode_replica_set(object);
  if (!set) return done({});
  const std::vector<Object> owned = index_.of_owner(object.uid());
  const base::Time now = cluster_.now();
  if (set->min_ready_seconds > 0) {
    for (const Object& pod : owned) {
      const auto since = ready_since(pod);
      if (!since || !is_active(pod)) continue;
      const base::Time due = *since + base::seconds(set->min_ready_seconds);
      if (due > now) queue_.enqueue_after(key, due - now);
    }
  }
  Value status = replica_set_status(*set, object["status"], owned, now, refusal(outcome));
  write_status(cluster_, sets_, object, std::move(status), [outcome, done](base::Status written) {
    done(outcome ? std::move(written) : outcome);
  });
}

}  // namespace tessera::apiserver::controller
