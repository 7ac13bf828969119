#include "apiserver/controller_stateful_set.h"

#include <algorithm>
#include <utility>

#include "apiserver/controller_revisions.h"
#include "apiserver/defaults_pod.h"
#include "base/log.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr std::string_view kHashLabel = "controller.kubernetes.io/hash";

std::string key_in(const Object& neighbour, std::string_view name) {
  return std::string(neighbour.ns()) + "/" + std::string(name);
}

bool keeps_template(const Object& revision, const Value& pod_template) {
  if (revision["data"] == revision_data(pod_template)) return true;
  // Written before a default was known.
  Value kept = revision_template(revision);
  default_pod_template(kept);
  return kept == pod_template;
}

}  // namespace

StatefulSetController::StatefulSetController(Cluster& cluster, OwnerIndex& pods,
                                             OwnerIndex& revisions)
    : cluster_(cluster),
      pod_index_(pods),
      revision_index_(revisions),
      sets_(cluster.cache("apps", "StatefulSet")),
      pods_(cluster.cache("", "Pod")),
      claims_(cluster.cache("", "PersistentVolumeClaim")),
      revisions_(cluster.cache("apps", "ControllerRevision")),
      queue_(cluster, "statefulset",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  sets_.subscribe([this](const Object& before, const Object& after) {
    queue_.enqueue((after ? after : before).key());
  });
  pods_.subscribe([this](const Object& before, const Object& after) { on_pod(before, after); });
  claims_.subscribe([this](const Object& before, const Object& after) {
    if (!after) on_claim_gone(before);
  });
}

void StatefulSetController::on_pod(const Object& before, const Object& after) {
  for (const Object* pod : {&before, &after}) {
    if (!*pod) continue;
    const Value& owner = controller_of(*pod);
    if (owner["kind"].as_string() == "StatefulSet") {
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

// A pod may wait for the claim that its predecessor had to go.
void StatefulSetController::on_claim_gone(const Object& claim) {
  const std::string prefix = key_in(claim, "");
  const auto& all = sets_.objects();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    const std::string part = "-" + std::string(it->second.name()) + "-";
    if (claim.name().find(part) != std::string_view::npos) queue_.enqueue(it->first);
  }
}

void StatefulSetController::enqueue_matching(const Object& orphan) {
  const size_t dash = orphan.name().rfind('-');
  if (dash == std::string_view::npos) return;
  const Object object = sets_.find(key_in(orphan, orphan.name().substr(0, dash)));
  if (!object) return;
  const auto set = read_stateful_set(object);
  if (set && is_member(*set, orphan)) queue_.enqueue(object.key());
}

bool StatefulSetController::is_member(const StatefulSet& set, const Object& pod) const {
  return ordinal_of(set.name(), pod.name()) && set.selector.matches(pod.metadata()["labels"]);
}

std::vector<Object> StatefulSetController::pods_of(const StatefulSet& set) const {
  std::vector<Object> out = pod_index_.of_owner(set.object.uid());
  std::erase_if(out, [&](const Object& pod) { return !is_member(set, pod); });
  return out;
}

void StatefulSetController::sync(const std::string& key, Done done) {
  const Object object = sets_.find(key);
  if (!object) return done({});
  auto set = read_stateful_set(object);
  if (!set) {
    base::log_warn("stateful set does not read name={} error={}", key, set.error().message);
    return done({});
  }
  if (object.deleting()) return settle(*set, done);
  claim_revisions(cluster_, revision_index_, sets_, object, set->selector,
                  [this, set = *set, done](const base::Status& status) {
                    if (!status) return done(status);
                    claim_pods(set, [this, set, done](const base::Status& claimed) {
                      if (!claimed) return done(claimed);
                      settle(set, done);
                    });
                  });
}

void StatefulSetController::claim_pods(const StatefulSet& set, Done done) {
  const auto mine = [&](const Object& pod) { return is_member(set, pod); };
  claim(cluster_, pods_, sets_, pod_index_, set.object, mine, std::move(done));
}

void StatefulSetController::settle(const StatefulSet& set, const Done& done) {
  find_revisions(set, [this, set, done](base::Result<StatefulRevisions> revisions) {
    if (!revisions) {
      return done(is_namespace_terminating(revisions.error())
                      ? base::Status()
                      : base::Status(base::error(revisions.error())));
    }
    if (!revisions->update) return done({});
    carry_out(set, *revisions, [this, set, found = *revisions, done](const base::Status& outcome) {
      report(set, found, outcome, done);
    });
  });
}

std::vector<Object> StatefulSetController::revisions_of(const StatefulSet& set) const {
  std::vector<Object> out = revision_index_.of_owner(set.object.uid());
  std::erase_if(out, [&](const Object& revision) {
    return revision.deleting() || !set.selector.matches(revision.metadata()["labels"]);
  });
  sort_revisions(out);
  return out;
}

StatefulRevisions StatefulSetController::with_current(const StatefulSet& set, Object update,
                                                      int64_t collisions) const {
  const std::string_view name = set.object.get("status", "currentRevision").as_string();
  StatefulRevisions out{update, update, collisions};
  for (const Object& revision : revisions_of(set)) {
    if (revision.name() == name) out.current = revision;
  }
  return out;
}

// The newest revision, an older one that the set went back to, or a new one.
void StatefulSetController::find_revisions(const StatefulSet& set, RevisionsDone done) {
  const std::vector<Object> all = revisions_of(set);
  const Value& pod_template = set.object.get("spec", "template");
  const int64_t collisions = set.object.get("status", "collisionCount").as_int();
  const int64_t next = all.empty() ? 1 : revision_number(all.back()) + 1;
  const auto equal = std::ranges::find_if(all.rbegin(), all.rend(), [&](const Object& revision) {
    return keeps_template(revision, pod_template);
  });
  if (set.object.deleting()) {
    return done(with_current(set, equal == all.rend() ? Object() : *equal, collisions));
  }
  if (equal == all.rend()) return make_revision(set, next, collisions, std::move(done));
  if (equal == all.rbegin()) return done(with_current(set, *equal, collisions));
  renumber_revision(cluster_, *equal, next,
                    [this, set, revision = *equal, collisions, done](const base::Status& status) {
                      if (!status) return done(base::error(status.error()));
                      done(with_current(set, revision, collisions));
                    });
}

void StatefulSetController::make_revision(const StatefulSet& set, int64_t number,
                                          int64_t collisions, RevisionsDone done) {
  const Value& pod_template = set.object.get("spec", "template");
  const std::string text = revision_data(pod_template).dump();
  Value made = new_revision(set.object, sets_.kind(), kHashLabel,
                            word_hash(text, std::to_string(collisions)), number);
  const std::string key = key_in(set.object, made["metadata"]["name"].as_string());
  cluster_.create(revisions_, std::move(made),
                  [this, set, number, collisions, key, done](const base::Result<Object>& result) {
                    if (result) return done(with_current(set, *result, collisions));
                    const Object there = revisions_.find(key);
                    if (result.error().code != base::Code::kAlreadyExists || !there) {
                      return done(base::error(result.error()));
                    }
                    // Another template has this hash: the next one is a different one.
                    if (there["data"] != revision_data(set.object.get("spec", "template"))) {
                      return make_revision(set, number, collisions + 1, done);
                    }
                    done(with_current(set, there, collisions));
                  });
}

void StatefulSetController::carry_out(const StatefulSet& set, const StatefulRevisions& revisions,
                                      Done done) {
  const StatefulPlan plan = plan_stateful_set(
      set, revisions, pods_of(set),
      [&](std::string_view name) { return claims_.find(key_in(set.object, name)); }, sets_.kind(),
      cluster_.now());
  std::vector<Action> stages;
  for (const std::vector<StatefulTurn>& turns : plan.stages) {
    std::vector<Action> actions;
    for (const StatefulTurn& turn : turns) actions.push_back(take_turn(set, turn));
    stages.push_back([parallel = set.parallel, actions = std::move(actions)](Done each) {
      if (parallel) return run_slow_start(actions, std::move(each));
      run_in_order(actions, std::move(each));
    });
  }
  run_in_order(std::move(stages), std::move(done));
}

// What happened to a pod or a claim ("Pod web-0"), as an event of the set.
Done StatefulSetController::told(const StatefulSet& set, std::string_view verb,
                                 const std::string& what, Done done) {
  return [this, set, verb = std::string(verb), what,
          done = std::move(done)](const base::Status& status) {
    if (status) {
      const bool claim = what.starts_with("Claim");
      cluster_.events().normal(set.object, "Successful" + verb,
                               fmt::format("{} {} in StatefulSet {} {}", verb, what, set.name(),
                                           claim ? "success" : "successful"));
    } else if (status.error().code != base::Code::kAlreadyExists) {
      tell_failure(set, verb, what, status.error());
    }
    done(status);
  };
}

void StatefulSetController::tell_failure(const StatefulSet& set, std::string_view verb,
                                         const std::string& what, const base::Error& error) {
  if (is_namespace_terminating(error)) return;
  cluster_.events().warning(set.object, fmt::format("Failed{}", verb),
                            fmt::format("{} {} in StatefulSet {} failed error: {}", verb, what,
                                        set.name(), error.message));
}

Action StatefulSetController::take_turn(const StatefulSet& set, const StatefulTurn& turn) {
  const std::string subject = fmt::format("Pod {}", turn.pod.name());
  std::vector<Action> actions;
  if (turn.make_claims) {
    const int64_t ordinal = ordinal_of(set.name(), turn.pod.name()).value_or(0);
    for (Value& claim : claims_of(set, ordinal)) {
      actions.push_back([this, set, subject, make = make_claim(set, turn.pod, std::move(claim)),
                         create = turn.create](Done each) {
        make([this, set, subject, create, each = std::move(each)](const base::Status& status) {
          if (!status && create) tell_failure(set, "Create", subject, status.error());
          each(status);
        });
      });
    }
  }
  if (turn.create) {
    actions.push_back([this, set, pod = turn.pod, subject](Done each) {
      cluster_.create(pods_, pod.json(), as_status(told(set, "Create", subject, std::move(each))));
    });
  }
  if (turn.own_claims) actions.push_back(own_claims(set, turn.pod, !turn.create));
  if (turn.repair) {
    actions.push_back([this, set, pod = turn.pod, subject](Done each) {
      cluster_.update(pods_, repaired_pod(set, pod), {},
                      as_status(told(set, "Update", subject, std::move(each))));
    });
  }
  if (turn.remove) {
    actions.push_back([this, set, pod = turn.pod, subject](Done each) {
      cluster_.remove(pods_, pod, {}, told(set, "Delete", subject, std::move(each)));
    });
  }
  return [actions = std::move(actions)](Done done) { run_in_order(actions, std::move(done)); };
}

Action StatefulSetController::make_claim(const StatefulSet& set, const Object& pod, Value claim) {
  return [this, set, pod, claim = std::move(claim)](Done done) {
    const std::string name = claim["metadata"]["name"].str();
    const Object there = claims_.find(key_in(set.object, name));
    if (there && there.deleting()) {
      return done(base::error(base::Code::kConflict, "pvc {} is being deleted", name));
    }
    if (there) return done({});
    cluster_.create(claims_, claim,
                    as_status(told(set, "Create", fmt::format("Claim {} Pod {}", name, pod.name()),
                                   [done = std::move(done)](const base::Status& status) {
                                     const bool exists = !status && status.error().code ==
                                                                        base::Code::kAlreadyExists;
                                     done(exists ? base::Status() : status);
                                   })));
  };
}

Action StatefulSetController::own_claims(const StatefulSet& set, const Object& pod, bool tell) {
  return [this, set, pod, tell](Done done) {
    const int64_t ordinal = ordinal_of(set.name(), pod.name()).value_or(0);
    std::vector<Action> actions;
    for (const Value& wanted : claims_of(set, ordinal)) {
      const Object claim = claims_.find(key_in(set.object, wanted["metadata"]["name"].as_string()));
      if (!claim) continue;
      if (claim_is_contested(set, claim, pod)) {
        cluster_.events().warning(
            set.object, "ConflictingController",
            fmt::format("PersistentVolumeClaim {} has a conflicting OwnerReference that acts as "
                        "a manging controller, the retention policy is ignored for this claim",
                        claim.name()));
      }
      auto owners = claim_owners(set, claim, pod);
      if (!owners) continue;
      Value changed = claim.json();
      changed.ref("metadata").set("ownerReferences", std::move(*owners));
      actions.push_back([this, changed = std::move(changed)](Done each) {
        cluster_.update(claims_, changed, {}, as_status(std::move(each)));
      });
    }
    if (tell && !actions.empty() && pod.get("status", "phase").as_string() == "Running") {
      done = told(set, "Update", fmt::format("Pod {}", pod.name()), std::move(done));
    }
    run_in_order(std::move(actions), std::move(done));
  };
}

void StatefulSetController::report(const StatefulSet& set, const StatefulRevisions& revisions,
                                   const base::Status& outcome, const Done& done) {
  const Object object = sets_.find(set.object.key());
  if (!object || object.uid() != set.object.uid()) return done({});
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
      [&](const Object& revision) {
        return revision.name() == revisions.current.name() ||
               revision.name() == revisions.update.name() ||
               std::ranges::any_of(pods, [&](const Object& pod) {
                 return pod.label(kRevisionHash) == revision.name();
               });
      },
      set.history_limit);
  Value status = stateful_status(set, revisions, pods, now);
  write_status(cluster_, sets_, object, std::move(status),
               [this, outcome, past = std::move(past), done](const base::Status& written) {
                 remove_revisions(cluster_, past,
                                  [outcome, written, done](const base::Status& removed) {
                                    done(!outcome ? outcome : !written ? written : removed);
                                  });
               });
}

}  // namespace tessera::apiserver::controller
