#include "apiserver/controller_daemon_set.h"

#include <algorithm>
#include <utility>

#include "apiserver/controller_revisions.h"
#include "base/log.h"
#include "kube/meta.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

DaemonNode read_node(const Object& object) {
  DaemonNode out;
  out.name = object.name();
  out.labels = kube::decode_string_map(object.metadata()["labels"]);
  for (const Value& taint : object.get("spec", "taints").items()) {
    const auto effect = kube::taint_effect_of(taint["effect"].as_string());
    if (effect) out.taints.push_back({taint["key"].str(), taint["value"].str(), *effect});
  }
  return out;
}

std::string key_in(const Object& neighbour, std::string_view name) {
  return std::string(neighbour.ns()) + "/" + std::string(name);
}

bool keeps_template(const Object& revision, const DaemonSet& set) {
  return revision["data"] == revision_data(set.object.get("spec", "template"));
}

}  // namespace

DaemonSetController::DaemonSetController(Cluster& cluster, OwnerIndex& pods, OwnerIndex& revisions)
    : cluster_(cluster),
      pod_index_(pods),
      revision_index_(revisions),
      sets_(cluster.cache("apps", "DaemonSet")),
      pods_(cluster.cache("", "Pod")),
      revisions_(cluster.cache("apps", "ControllerRevision")),
      queue_(cluster, "daemonset",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  sets_.subscribe([this](const Object& before, const Object& after) {
    queue_.enqueue((after ? after : before).key());
  });
  pods_.subscribe([this](const Object& before, const Object& after) { on_pod(before, after); });
  revisions_.subscribe(
      [this](const Object& before, const Object& after) { on_revision(before, after); });
  cluster.cache("", "Node").subscribe([this](const Object& before, const Object& after) {
    on_node(before, after);
  });
}

void DaemonSetController::on_pod(const Object& before, const Object& after) {
  for (const Object* pod : {&before, &after}) {
    if (!*pod) continue;
    const Value& owner = controller_of(*pod);
    if (owner["kind"].as_string() == "DaemonSet") {
      queue_.enqueue(key_in(*pod, owner["name"].as_string()));
    }
  }
  if (!after || !controller_of(after).is_null() || after.deleting()) return;
  if (before && before.metadata()["labels"] == after.metadata()["labels"] &&
      controller_of(before).is_null()) {
    return;
  }
  enqueue_matching(after);
}

void DaemonSetController::on_revision(const Object& before, const Object& after) {
  for (const Object* revision : {&before, &after}) {
    if (!*revision) continue;
    const Value& owner = controller_of(*revision);
    if (owner["kind"].as_string() == "DaemonSet") {
      queue_.enqueue(key_in(*revision, owner["name"].as_string()));
    }
  }
  if (after && controller_of(after).is_null() && !after.deleting()) enqueue_matching(after);
}

// Only labels and taints say where daemons run.
void DaemonSetController::on_node(const Object& before, const Object& after) {
  if (!after) {
    nodes_.erase(std::string(before.name()));
  } else {
    DaemonNode node = read_node(after);
    DaemonNode& at = nodes_[node.name];
    if (before && at == node) return;
    at = std::move(node);
  }
  queue_.enqueue_all(sets_);
}

void DaemonSetController::enqueue_matching(const Object& orphan) {
  const Value& labels = orphan.metadata()["labels"];
  if (labels.empty()) return;
  const std::string prefix = key_in(orphan, "");
  const auto& all = sets_.objects();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    const auto selector = kube::LabelSelector::from_json(it->second.get("spec", "selector"), "");
    if (selector && selector->matches(labels)) queue_.enqueue(it->first);
  }
}

std::vector<DaemonNode> DaemonSetController::nodes() const {
  std::vector<DaemonNode> out;
  out.reserve(nodes_.size());
  for (const auto& [name, node] : nodes_) out.push_back(node);
  return out;
}

std::vector<Object> DaemonSetController::pods_of(const DaemonSet& set) const {
  std::vector<Object> out = pod_index_.of_owner(set.object.uid());
  std::erase_if(out,
                [&](const Object& pod) { return !set.selector.matches(pod.metadata()["labels"]); });
  return out;
}

void DaemonSetController::sync(const std::string& key, Done done) {
  const Object object = sets_.find(key);
  // Its history may be collected already: nothing can be said of it any more.
  if (!object || object.deleting()) return done({});
  auto set = read_daemon_set(object);
  if (!set) {
    base::log_warn("daemon set does not read name={} error={}", key, set.error().message);
    return done({});
  }
  if (set->selector.selects_everything()) {
    cluster_.events().warning(object, "SelectingAll",
                              "This daemon set is selecting all pods. A non-empty selector is "
                              "required.");
    return done({});
  }
  claim_revisions(cluster_, revision_index_, sets_, object, set->selector,
                  [this, set = *set, done](const base::Status& status) {
                    if (!status) return done(status);
                    claim_pods(set, [this, set, done](const base::Status& claimed) {
                      if (!claimed) return done(claimed);
                      settle(set, done);
                    });
                  });
}

void DaemonSetController::claim_pods(const DaemonSet& set, Done done) {
  const auto mine = [&](const Object& pod) {
    return set.selector.matches(pod.metadata()["labels"]);
  };
  claim(cluster_, pods_, sets_, pod_index_, set.object, mine, std::move(done));
}

void DaemonSetController::settle(const DaemonSet& set, const Done& done) {
  find_revision(set, [this, set, done](base::Result<Object> revision) {
    if (!revision) {
      return done(is_namespace_terminating(revision.error())
                      ? base::Status()
                      : base::Status(base::error(revision.error())));
    }
    carry_out(set, revision->label(kRevisionHash),
              [this, set, current = *revision, done](const base::Status& outcome) {
                report(set, current, outcome, done);
              });
  });
}

std::vector<Object> DaemonSetController::revisions_of(const DaemonSet& set) const {
  std::vector<Object> out = revision_index_.of_owner(set.object.uid());
  std::erase_if(out, [&](const Object& revision) {
    return revision.deleting() || !set.selector.matches(revision.metadata()["labels"]);
  });
  sort_revisions(out);
  return out;
}

// The revision of the template as it is now, with a number above all others.
void DaemonSetController::find_revision(const DaemonSet& set, RevisionDone done) {
  std::vector<Object> equal;
  int64_t number = 1;
  for (const Object& revision : revisions_of(set)) {
    if (keeps_template(revision, set)) {
      equal.push_back(revision);
    } else {
      number = std::max(number, revision_number(revision) + 1);
    }
  }
  if (equal.empty()) return make_revision(set, number, std::move(done));
  const Object kept = equal.back();
  equal.pop_back();
  merge_revisions(set, kept, equal, number, [kept, done](const base::Status& status) {
    if (!status) return done(base::error(status.error()));
    done(kept);
  });
}

// Of several revisions of one template the newest stays, and pods of the others are its from now on.
void DaemonSetController::merge_revisions(const DaemonSet& set, const Object& kept,
                                          const std::vector<Object>& equal, int64_t number,
                                          Done done) {
  std::vector<Action> actions;
  if (!equal.empty()) {
    for (const Object& pod : pods_of(set)) {
      if (pod.label(kRevisionHash) == kept.label(kRevisionHash)) continue;
      Value patch;
      patch.ref("metadata", "labels").set(kRevisionHash, kept.label(kRevisionHash));
      actions.push_back([this, pod, patch](Done each) {
        cluster_.patch(pods_, pod, patch, {}, as_status(unless_gone(std::move(each))));
      });
    }
    actions.push_back(
        [this, equal](Done each) { remove_revisions(cluster_, equal, std::move(each)); });
  }
  actions.push_back([this, kept, number](Done each) {
    if (revision_number(kept) >= number) return each({});
    renumber_revision(cluster_, kept, number, std::move(each));
  });
  run_in_order(std::move(actions), std::move(done));
}

void DaemonSetController::make_revision(const DaemonSet& set, int64_t number, RevisionDone done) {
  const Value& pod_template = set.object.get("spec", "template");
  const int64_t collisions = set.object.get("status", "collisionCount").as_int();
  const std::string hash =
      word_hash(pod_template.dump(), collisions > 0 ? std::to_string(collisions) : std::string());
  Value made = new_revision(set.object, sets_.kind(), kRevisionHash, hash, number);
  const std::string key = key_in(set.object, made["metadata"]["name"].as_string());
  cluster_.create(
      revisions_, std::move(made), [this, set, key, done](const base::Result<Object>& result) {
        if (result) return done(*result);
        const Object there = revisions_.find(key);
        if (result.error().code != base::Code::kAlreadyExists || !there) {
          return done(base::error(result.error()));
        }
        if (keeps_template(there, set)) return done(there);
        raise_collisions(
            set, [error = result.error(), done](const base::Status&) { done(base::error(error)); });
      });
}

// Another template has this hash: the next one is a different one.
void DaemonSetController::raise_collisions(const DaemonSet& set, const Done& done) {
  const Object now = sets_.find(set.object.key());
  if (!now) return done({});
  Value status = now["status"];
  status.set("collisionCount", status["collisionCount"].as_int() + 1);
  write_status(cluster_, sets_, now, std::move(status), done);
}

void DaemonSetController::carry_out(const DaemonSet& set, std::string_view hash, Done done) {
  const std::vector<DaemonNode> nodes = this->nodes();
  const std::vector<Object> pods = pods_of(set);
  const DaemonView view{set, nodes, pods, hash, cluster_.now()};
  DaemonPlan plan = plan_daemon_pods(view, backoff_);
  if (plan.again_after) queue_.enqueue_after(set.object.key(), *plan.again_after);
  for (const Object& pod : plan.ended) {
    const std::string node = target_node(pod);
    if (pod.get("status", "phase").as_string() == "Failed") {
      backoff_.count(failure_key(set, node), cluster_.now());
      cluster_.events().warning(
          set.object, "FailedDaemonPod",
          fmt::format("Found failed daemon pod {} on node {}, will try to kill it", pod.key(),
                      node));
    } else {
      cluster_.events().normal(
          set.object, "SucceededDaemonPod",
          fmt::format("Found succeeded daemon pod {} on node {}, will try to delete it", pod.key(),
                      node));
    }
  }
  if (plan.empty()) plan = plan_daemon_rollout(view);
  carry_out_plan(set, hash, plan, std::move(done));
}

void DaemonSetController::carry_out_plan(const DaemonSet& set, std::string_view hash,
                                         const DaemonPlan& plan, Done done) {
  std::vector<Value> made;
  for (const std::string& node : plan.create_on) {
    made.push_back(daemon_pod(set, sets_.kind(), node, hash,
                              generated_name(set.object.name(), cluster_.random())));
  }
  std::vector<Action> actions;
  actions.push_back([this, object = set.object, made = std::move(made)](Done each) {
    create_pods(cluster_, object, made, std::move(each));
  });
  actions.push_back([this, object = set.object, removed = plan.remove](Done each) {
    delete_pods(cluster_, object, removed, std::move(each));
  });
  // What goes, goes, also where nothing can be made.
  run_all(std::move(actions), std::move(done));
}

void DaemonSetController::report(const DaemonSet& set, const Object& revision,
                                 const base::Status& outcome, const Done& done) {
  const Object object = sets_.find(set.object.key());
  if (!object || object.uid() != set.object.uid()) return done({});
  const std::vector<DaemonNode> nodes = this->nodes();
  const std::vector<Object> pods = pods_of(set);
  const base::Time now = cluster_.now();
  for (const Object& pod : pods) {
    const auto since = ready_since(pod);
    if (set.min_ready_seconds == 0 || !since) continue;
    const base::Time due = *since + base::seconds(set.min_ready_seconds);
    if (due > now) queue_.enqueue_after(object.key(), due - now);
  }
  std::vector<Object> past = past_revisions(
      revisions_of(set),
      [&](const Object& each) {
        return each.name() == revision.name() || std::ranges::any_of(pods, [&](const Object& pod) {
                 return pod.label(kRevisionHash) == each.label(kRevisionHash);
               });
      },
      set.history_limit);
  Value status = daemon_status(DaemonView{set, nodes, pods, revision.label(kRevisionHash), now});
  if (object["status"].contains("collisionCount")) {
    status.set("collisionCount", object["status"]["collisionCount"]);
  }
  write_status(cluster_, sets_, object, std::move(status),
               [this, outcome, past = std::move(past), done](const base::Status& written) {
                 remove_revisions(cluster_, past,
                                  [outcome, written, done](const base::Status& removed) {
                                    done(!outcome ? outcome : !written ? written : removed);
                                  });
               });
}

}  // namespace tessera::apiserver::controller
