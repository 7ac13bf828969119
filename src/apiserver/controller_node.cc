#include "apiserver/controller_node.h"

#include <algorithm>
#include <utility>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr base::Duration kLookPeriod = base::seconds(5);
// A pod may be seen before the node that it is bound to.
constexpr base::Duration kGoneDelay = base::seconds(40);
constexpr std::string_view kLeases = "kube-node-lease/";

bool is_node_ready(const Object& node) {
  return condition_of(node["status"], "Ready")["status"].as_string() == "True";
}

// The pod with the condition that tells failure policies why it goes.
Value disrupted(const Object& pod, std::string_view reason, std::string_view message,
                base::Time now) {
  Value out = pod.json();
  Value condition = Value::object({{"type", "DisruptionTarget"},
                                   {"status", "True"},
                                   {"reason", reason},
                                   {"message", message},
                                   {"lastProbeTime", nullptr}});
  const Value& generation = pod.metadata()["generation"];
  if (generation.is_int()) condition.set("observedGeneration", generation);
  set_condition(out.ref("status"), std::move(condition), now);
  return out;
}

bool evicts(const Object& node) {
  return std::ranges::any_of(node.get("spec", "taints").items(), [](const Value& taint) {
    return taint["effect"].as_string() == "NoExecute";
  });
}

}  // namespace

NodeController::NodeController(Cluster& cluster, OwnerIndex& pods, base::Duration node_grace)
    : cluster_(cluster),
      pod_index_(pods),
      nodes_(cluster.cache("", "Node")),
      leases_(cluster.cache("coordination.k8s.io", "Lease")),
      pods_(cluster.cache("", "Pod")),
      grace_(node_grace),
      queue_(cluster, "node",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  leases_.subscribe([this](const Object& before, const Object& after) { on_lease(before, after); });
  nodes_.subscribe([this](const Object& before, const Object& after) { on_node(before, after); });
  pods_.subscribe([this](const Object& before, const Object& after) { on_pod(before, after); });
}

void NodeController::start() {
  // Silence counts from when it could first be heard.
  for (auto& [node, seen] : last_seen_) seen = cluster_.now();
  queue_.enqueue_all(nodes_);
  for (const auto& [key, pod] : pods_.objects()) on_pod({}, pod);
  look_around();
}

void NodeController::on_lease(const Object& before, const Object& after) {
  const Object& lease = after ? after : before;
  if (!lease.key().starts_with(kLeases)) return;
  if (!after) {
    last_seen_.erase(std::string(before.name()));
  } else if (before.get("spec", "renewTime") != after.get("spec", "renewTime")) {
    last_seen_[std::string(after.name())] = cluster_.now();
  }
}

void NodeController::on_node(const Object& before, const Object& after) {
  const std::string name((after ? after : before).name());
  if (!after) {
    queue_.enqueue_after(name, kGoneDelay);
    return;
  }
  const auto heard = [](const Object& node) -> const Value& {
    return condition_of(node["status"], "Ready")["lastHeartbeatTime"];
  };
  const auto seen = last_seen_.find(name);
  if (before && seen != last_seen_.end() && heard(before) != heard(after)) {
    seen->second = cluster_.now();
  }
  queue_.enqueue(name);
}

void NodeController::on_pod(const Object& before, const Object& after) {
  if (!after) return;
  const Value& name = after.get("spec", "nodeName");
  if (name.as_string().empty() || is_finished(after)) return;
  const Object node = nodes_.find(name.as_string());
  if (!node) {
    if (!before || before.get("spec", "nodeName") != name) {
      queue_.enqueue_after(name.str(), kGoneDelay);
    }
    return;
  }
  const bool concerned =
      !before || before.get("spec", "nodeName") != name || is_ready(before) != is_ready(after);
  if (concerned && evicts(node)) queue_.enqueue(name.str());
}

bool NodeController::is_silent(const std::string& node) const {
  const auto it = last_seen_.find(node);
  return it != last_seen_.end() && cluster_.now() - it->second > grace_;
}

void NodeController::look_around() {
  for (const auto& [name, node] : nodes_.objects()) {
    const std::string_view ready = condition_of(node["status"], "Ready")["status"].as_string();
    if (ready != "Unknown" && is_silent(name)) queue_.enqueue(name);
  }
  cluster_.after(kLookPeriod, [this] { look_around(); });
}

void NodeController::sync(const std::string& name, Done done) {
  const Object node = nodes_.find(name);
  if (!node) return collect_pods(name, std::move(done));
  auto next = [this, name, done = std::move(done)](const base::Status& status) {
    if (!status) return done(status);
    sync_taints(name, done);
  };
  if (!is_silent(name)) return next({});
  Value status = lost_node_status(node["status"], cluster_.now());
  if (status == node["status"]) return next({});
  cluster_.events().normal(node, "NodeNotReady", "Node " + name + " status is now: NodeNotReady");
  write_status(cluster_, nodes_, node, std::move(status), std::move(next));
}

void NodeController::sync_taints(const std::string& name, Done done) {
  const Object node = nodes_.find(name);
  if (!node) return done({});
  auto next = [this, name, done = std::move(done)](const base::Status& status) {
    if (!status) return done(status);
    sync_pods(name, done);
  };
  Value taints = node_taints(node, cluster_.now());
  const Value& before = node.get("spec", "taints");
  if (taints == before || (taints.empty() && before.empty())) return next({});
  Value changed = node.json();
  if (taints.empty()) {
    changed.ref("spec").erase("taints");
  } else {
    changed.ref("spec").set("taints", std::move(taints));
  }
  cluster_.update(nodes_, std::move(changed), {}, as_status(unless_gone(std::move(next))));
}

void NodeController::sync_pods(const std::string& name, Done done) {
  const Object node = nodes_.find(name);
  if (!node || (is_node_ready(node) && !evicts(node))) return done({});
  const base::Time now = cluster_.now();
  std::optional<base::Time> next;
  std::vector<Action> actions;
  for (const Object& pod : pod_index_.on_node(name)) {
    if (is_finished(pod)) continue;
    Value status = lost_pod_status(pod["status"], node["status"], now);
    if (status != pod["status"]) actions.push_back(mark_not_ready(pod, std::move(status)));
    if (pod.deleting()) continue;
    const auto due = eviction_time(node.get("spec", "taints"), pod.get("spec", "tolerations"), now);
    if (due && *due <= now) {
      actions.push_back(evict(node, pod));
    } else if (due) {
      next = std::min(next.value_or(*due), *due);
    }
  }
  if (next) queue_.enqueue_after(name, *next - now);
  run_all(std::move(actions), std::move(done));
}

Action NodeController::mark_not_ready(const Object& pod, Value status) {
  return [this, pod, status = std::move(status)](Done done) {
    Value changed = pod.json();
    changed.set("status", status);
    cluster_.update(pods_, std::move(changed), "status", as_status(unless_gone(std::move(done))));
  };
}

Action NodeController::evict(const Object& node, const Object& pod) {
  return [this, node, pod](Done done) {
    cluster_.events().normal(pod, "TaintManagerEviction",
                             fmt::format("Marking for deletion Pod {}", pod.key()));
    const Value marked =
        disrupted(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint",
                  cluster_.now());
    auto remove = [this, pod, done = std::move(done)](const base::Status& status) {
      if (!status) return done(status);
      cluster_.remove(pods_, pod, {}, done);
    };
    if (marked["status"] == pod["status"]) return remove({});
    cluster_.update(pods_, marked, "status", as_status(unless_gone(std::move(remove))));
  };
}

// Nobody is left to say how the pods of a node without an object ended.
void NodeController::collect_pods(const std::string& name, Done done) {
  if (pod_index_.on_node(name).empty()) return done({});
  cluster_.get(nodes_, {}, name,
               [this, name, done = std::move(done)](const base::Result<Object>& node) {
                 if (node) return done({});
                 if (node.error().code != base::Code::kNotFound)
                   return done(base::error(node.error()));
                 std::vector<Action> actions;
                 for (const Object& pod : pod_index_.on_node(name))
                   actions.push_back(force_delete(pod));
                 run_all(std::move(actions), done);
               });
}

Action NodeController::force_delete(const Object& pod) {
  return [this, pod](Done done) {
    auto drop = [this, pod, done = std::move(done)](const base::Status& status) {
      if (!status) return done(status);
      cluster_.remove(pods_, pod, Value::object({{"gracePeriodSeconds", 0}}), done);
    };
    if (is_finished(pod)) return drop({});
    Value changed =
        disrupted(pod, "DeletionByPodGC", "PodGC: node no longer exists", cluster_.now());
    changed.ref("status").set("phase", "Failed");
    cluster_.update(pods_, std::move(changed), "status", as_status(unless_gone(std::move(drop))));
  };
}

}  // namespace tessera::apiserver::controller
