#include "apiserver/controller_stateful_set_plan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "apiserver/controller_revisions.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr const char* kPodName = "statefulset.kubernetes.io/pod-name";
constexpr const char* kPodIndex = "apps.kubernetes.io/pod-index";

bool is_running_and_ready(const Object& pod) {
  return pod.get("status", "phase").as_string() == "Running" && is_ready(pod);
}

void set_identity(Value& pod, int64_t ordinal) {
  Value& labels = pod.ref("metadata", "labels");
  labels.set(kPodName, pod.get("metadata", "name"));
  labels.set(kPodIndex, std::to_string(ordinal));
}

// Each claim is a volume, in place of one of the template that has its name.
void set_volumes(const StatefulSet& set, Value& pod, int64_t ordinal) {
  if (set.claims().empty()) return;
  std::set<std::string, std::less<>> names;
  Value volumes = Value::array();
  for (const Value& claim : set.claims().items()) {
    const std::string name = claim["metadata"]["name"].str();
    const std::string claim_name = fmt::format("{}-{}-{}", name, set.name(), ordinal);
    names.insert(name);
    volumes.push_back(Value::object(
        {{"name", name}, {"persistentVolumeClaim", Value::object({{"claimName", claim_name}})}}));
  }
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    if (!names.contains(volume["name"].as_string())) volumes.push_back(volume);
  }
  pod.ref("spec").set("volumes", std::move(volumes));
}

bool has_identity(const Object& pod) {
  return pod.label(kPodName) == pod.name();
}

bool has_volumes(const StatefulSet& set, const Object& pod, int64_t ordinal) {
  return std::ranges::all_of(set.claims().items(), [&](const Value& claim) {
    const std::string_view name = claim["metadata"]["name"].as_string();
    const std::string claim_name = fmt::format("{}-{}-{}", name, set.name(), ordinal);
    return std::ranges::any_of(pod.get("spec", "volumes").items(), [&](const Value& volume) {
      return volume["name"].as_string() == name &&
             volume["persistentVolumeClaim"]["claimName"].as_string() == claim_name;
    });
  });
}

class Planner {
 public:
  Planner(const StatefulSet& set, const StatefulRevisions& revisions,
          const std::vector<Object>& pods, const FindClaim& find_claim, const Kind& kind,
          base::Time now)
      : set_(set), revisions_(revisions), find_claim_(find_claim), kind_(kind), now_(now) {
    for (const Object& pod : pods) {
      const auto ordinal = ordinal_of(set.name(), pod.name());
      if (!ordinal) continue;
      (set.in_range(*ordinal) ? replicas_ : condemned_)[*ordinal] = pod;
    }
  }

  StatefulPlan plan() {
    if (set_.object.deleting()) return {};
    bool done = plan_replicas();
    if (done || set_.parallel) {
      plan_condemned_claims();
      done = plan_condemned();
    }
    if ((done || set_.parallel) && !set_.on_delete) plan_update();
    return std::move(plan_);
  }

 private:
  bool is_available_now(const Object& pod) const {
    return is_available(pod, set_.min_ready_seconds, now_);
  }

  // True where nothing holds up what comes after.
  bool plan_replicas() {
    std::vector<StatefulTurn>& turns = plan_.stages.emplace_back();
    size_t made = 0;
    for (int64_t ordinal = set_.start; ordinal < set_.start + set_.replicas; ++ordinal) {
      const auto at = replicas_.find(ordinal);
      const bool exists = at != replicas_.end();
      if (!exists && ++made > kBurstPods) return false;
      auto turn = exists ? turn_of(at->second, ordinal) : turn_of_new(ordinal);
      const bool holds_up = !exists || turn.remove || at->second.deleting() ||
                            is_finished(at->second) || !is_running_and_ready(at->second) ||
                            !is_available_now(at->second);
      if (turn.create || turn.remove || turn.make_claims || turn.own_claims || turn.repair) {
        turns.push_back(std::move(turn));
      }
      if (holds_up && !set_.parallel) return false;
    }
    return true;
  }

  StatefulTurn turn_of_new(int64_t ordinal) {
    StatefulTurn turn;
    turn.pod = new_pod(ordinal);
    // The claim of a pod that was scaled away is about to go: it is not this pod's.
    if (set_.delete_scaled && std::ranges::any_of(claims(ordinal), [&](const Object& claim) {
          return std::ranges::any_of(claim.metadata()["ownerReferences"].items(),
                                     [&](const Value& owner) {
                                       return owner["kind"].as_string() == "Pod" &&
                                              owner["name"].as_string() == turn.pod.name();
                                     });
        })) {
      return turn;
    }
    turn.make_claims = !set_.claims().empty();
    turn.create = true;
    turn.own_claims = turn.make_claims;
    return turn;
  }

  StatefulTurn turn_of(const Object& pod, int64_t ordinal) {
    StatefulTurn turn;
    turn.pod = pod;
    if (is_finished(pod)) {
      turn.remove = !pod.deleting();
      return turn;
    }
    if (pod.get("status", "phase").as_string() == "Pending") {
      turn.make_claims = claims(ordinal).size() < set_.claims().size();
      turn.own_claims = turn.make_claims || !owners_fit(pod, ordinal);
    }
    const bool steady = !pod.deleting() && is_running_and_ready(pod) && is_available_now(pod);
    if (!steady && !set_.parallel) return turn;
    const bool volumes = has_volumes(set_, pod, ordinal);
    const bool owners = owners_fit(pod, ordinal);
    turn.repair = !has_identity(pod) || !volumes;
    turn.make_claims = turn.make_claims || !volumes;
    turn.own_claims = turn.own_claims || !owners;
    return turn;
  }

  // Those that exist.
  std::vector<Object> claims(int64_t ordinal) const {
    std::vector<Object> out;
    for (const Value& claim : set_.claims().items()) {
      Object found = find_claim_(
          fmt::format("{}-{}-{}", claim["metadata"]["name"].as_string(), set_.name(), ordinal));
      if (found) out.push_back(std::move(found));
    }
    return out;
  }

  bool owners_fit(const Object& pod, int64_t ordinal) const {
    return std::ranges::none_of(claims(ordinal), [&](const Object& claim) {
      return claim_owners(set_, claim, pod).has_value();
    });
  }

  void plan_condemned_claims() {
    std::vector<StatefulTurn>& turns = plan_.stages.emplace_back();
    for (auto it = condemned_.rbegin(); it != condemned_.rend(); ++it) {
      if (owners_fit(it->second, it->first)) continue;
      turns.push_back({.pod = it->second, .own_claims = true});
    }
  }

  // The highest ordinal goes first, and only when all others are well; one that is not well may itself go.
  bool plan_condemned() {
    std::vector<StatefulTurn>& turns = plan_.stages.emplace_back();
    std::optional<int64_t> first_unwell;
    for (const auto& [ordinal, pod] : condemned_) {
      if (pod.deleting() || !is_available_now(pod)) {
        first_unwell = ordinal;
        break;
      }
    }
    for (auto it = condemned_.rbegin(); it != condemned_.rend(); ++it) {
      const auto& [ordinal, pod] = *it;
      if (pod.deleting()) {
        if (!set_.parallel) return false;
        continue;
      }
      const bool well = is_running_and_ready(pod) && is_available_now(pod);
      if (!set_.parallel && !well && first_unwell != ordinal) return false;
      turns.push_back({.pod = pod, .remove = true});
      if (!set_.parallel) return false;
    }
    return true;
  }

  // One pod at a time, from the highest ordinal down to the partition.
  void plan_update() {
    const int64_t least = set_.start + set_.partition.value_or(0);
    for (int64_t ordinal = set_.start + set_.replicas - 1; ordinal >= least; --ordinal) {
      const auto at = replicas_.find(ordinal);
      if (at == replicas_.end()) return;
      const Object& pod = at->second;
      if (pod.label(kRevisionHash) != revisions_.update.name() && !pod.deleting()) {
        plan_.stages.push_back({{.pod = pod, .remove = true}});
        return;
      }
      if (pod.deleting() || !is_available_now(pod)) return;
    }
  }

  Object new_pod(int64_t ordinal) const {
    const Object& revision = is_of_current(ordinal) ? revisions_.current : revisions_.update;
    Value pod = pod_of_template(revision_template(revision), set_.object, kind_,
                                fmt::format("{}-{}", set_.name(), ordinal));
    set_identity(pod, ordinal);
    pod.ref("metadata", "labels").set(kRevisionHash, revision.name());
    pod.ref("spec").set("hostname", pod.get("metadata", "name"));
    const Value& service = set_.object.get("spec", "serviceName");
    if (service.as_string().empty()) {
      pod.ref("spec").erase("subdomain");
    } else {
      pod.ref("spec").set("subdomain", service);
    }
    set_volumes(set_, pod, ordinal);
    return Object(std::move(pod));
  }

  bool is_of_current(int64_t ordinal) const {
    if (set_.partition) return ordinal < set_.start + *set_.partition;
    const int64_t current = set_.object.get("status", "currentReplicas").as_int();
    return !set_.on_delete && ordinal < set_.start + current;
  }

  const StatefulSet& set_;
  const StatefulRevisions& revisions_;
  const FindClaim& find_claim_;
  const Kind& kind_;
  base::Time now_;
  std::map<int64_t, Object> replicas_;
  std::map<int64_t, Object> condemned_;
  StatefulPlan plan_;
};

}  // namespace

base::Result<StatefulSet> read_stateful_set(const Object& object) {
  StatefulSet out;
  out.object = object;
  const Value& spec = object["spec"];
  const Value& strategy = spec["updateStrategy"];
  const Value& retention = spec["persistentVolumeClaimRetentionPolicy"];
  out.replicas = std::max<int64_t>(spec["replicas"].as_int(1), 0);
  out.start = std::max<int64_t>(spec["ordinals"]["start"].as_int(), 0);
  out.min_ready_seconds = static_cast<int32_t>(spec["minReadySeconds"].as_int());
  out.history_limit = spec["revisionHistoryLimit"].as_int(10);
  out.parallel = spec["podManagementPolicy"].as_string() == "Parallel";
  out.on_delete = strategy["type"].as_string() == "OnDelete";
  if (strategy.contains("rollingUpdate")) {
    out.partition = strategy["rollingUpdate"]["partition"].as_int();
  }
  out.delete_scaled = retention["whenScaled"].as_string() == "Delete";
  out.delete_deleted = retention["whenDeleted"].as_string() == "Delete";
  TS_TRY(out.selector, kube::LabelSelector::from_json(spec["selector"], "spec.selector"));
  return out;
}

std::optional<int64_t> ordinal_of(std::string_view set, std::string_view pod) {
  if (pod.size() < set.size() + 2 || !pod.starts_with(set) || pod[set.size()] != '-') {
    return std::nullopt;
  }
  const std::string_view digits = pod.substr(set.size() + 1);
  int32_t ordinal = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (end.ec != std::errc() || end.ptr != digits.data() + digits.size() || ordinal < 0 ||
      (digits.size() > 1 && digits[0] == '0')) {
    return std::nullopt;
  }
  return ordinal;
}

StatefulPlan plan_stateful_set(const StatefulSet& set, const StatefulRevisions& revisions,
                               const std::vector<Object>& pods, const FindClaim& find_claim,
                               const Kind& kind, base::Time now) {
  return Planner(set, revisions, pods, find_claim, kind, now).plan();
}

Value repaired_pod(const StatefulSet& set, const Object& pod) {
  const int64_t ordinal = ordinal_of(set.name(), pod.name()).value_or(0);
  Value out = pod.json();
  set_identity(out, ordinal);
  if (!has_volumes(set, pod, ordinal)) set_volumes(set, out, ordinal);
  return out;
}

Value stateful_status(const StatefulSet& set, const StatefulRevisions& revisions,
                      const std::vector<Object>& pods, base::Time now) {
  int64_t ready = 0;
  int64_t available = 0;
  int64_t current = 0;
  int64_t updated = 0;
  for (const Object& pod : pods) {
    const bool well = is_running_and_ready(pod);
    ready += well;
    available += well && is_available(pod, set.min_ready_seconds, now);
    if (pod.deleting()) continue;
    current += pod.label(kRevisionHash) == revisions.current.name();
    updated += pod.label(kRevisionHash) == revisions.update.name();
  }
  const auto replicas = static_cast<int64_t>(pods.size());
  const bool complete = !set.on_delete && updated == set.replicas && ready == set.replicas &&
                        replicas == set.replicas;
  if (complete) current = updated;
  Value status = Value::object({{"observedGeneration", set.object.metadata()["generation"]},
                                {"replicas", replicas},
                                {"availableReplicas", available},
                                {"collisionCount", revisions.collisions}});
  const Object& reached = complete ? revisions.update : revisions.current;
  status.set("currentRevision", reached.name());
  status.set("updateRevision", revisions.update.name());
  if (ready != 0) status.set("readyReplicas", ready);
  if (current != 0) status.set("currentReplicas", current);
  if (updated != 0) status.set("updatedReplicas", updated);
  return status;
}

}  // namespace tessera::apiserver::controller
