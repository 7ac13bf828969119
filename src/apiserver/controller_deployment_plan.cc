#include "apiserver/controller_deployment_plan.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr const char* kDesired = "deployment.kubernetes.io/desired-replicas";
constexpr const char* kMax = "deployment.kubernetes.io/max-replicas";

std::optional<int64_t> number_annotation(const Object& object, std::string_view name) {
  const std::string_view text = object.annotation(name);
  int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end.ec != std::errc()) return std::nullopt;
  return value;
}

int32_t size_max(const kube::Deployment& deployment) {
  return deployment.replicas == 0 ? 0 : deployment.replicas + deployment.surge_max;
}

int32_t unavailable_max(const kube::Deployment& deployment) {
  return deployment.recreate ? 0 : std::min(deployment.unavailable_max, deployment.replicas);
}

bool older(const OwnedSet& a, const OwnedSet& b) {
  return std::pair(a.set.meta.created, a.set.meta.name) <
         std::pair(b.set.meta.created, b.set.meta.name);
}

// Sets by age, the oldest first; only those with replicas.
std::vector<size_t> active_by_age(const std::vector<OwnedSet>& sets) {
  std::vector<size_t> out;
  for (size_t i = 0; i < sets.size(); ++i) {
    if (sets[i].set.replicas > 0) out.push_back(i);
  }
  std::ranges::sort(out, [&](size_t a, size_t b) { return older(sets[a], sets[b]); });
  return out;
}

std::optional<size_t> find_current(const std::vector<OwnedSet>& sets) {
  for (size_t i = 0; i < sets.size(); ++i) {
    if (sets[i].current) return i;
  }
  return std::nullopt;
}

int32_t total_replicas(const std::vector<OwnedSet>& sets) {
  int32_t total = 0;
  for (const OwnedSet& each : sets) total += each.set.replicas;
  return total;
}

// The Deployment's size changed while several sets are active: each takes its part of the difference.
bool is_scaling(const kube::Deployment& deployment, const std::vector<OwnedSet>& sets) {
  return std::ranges::any_of(sets, [&](const OwnedSet& each) {
    const auto desired = number_annotation(each.object, kDesired);
    return each.set.replicas > 0 && desired && *desired != deployment.replicas;
  });
}

void plan_scaling(const kube::Deployment& deployment, const std::vector<OwnedSet>& sets,
                  DeploymentPlan& plan) {
  std::vector<size_t> active = active_by_age(sets);
  if (active.size() <= 1 || deployment.recreate) {
    const auto only = active.empty() ? find_current(sets) : std::optional(active.back());
    if (only) plan.resize.emplace_back(*only, deployment.replicas);
    return;
  }
  const int32_t allowed = size_max(deployment);
  int32_t left = allowed - total_replicas(sets);
  const bool grows = left > 0;
  std::ranges::stable_sort(active, [&](size_t a, size_t b) {
    if (sets[a].set.replicas != sets[b].set.replicas) {
      return sets[a].set.replicas > sets[b].set.replicas;
    }
    return grows ? older(sets[b], sets[a]) : older(sets[a], sets[b]);
  });
  for (size_t i = 0; i < active.size(); ++i) {
    const OwnedSet& each = sets[active[i]];
    const int64_t before = number_annotation(each.object, kMax).value_or(deployment.replicas);
    int32_t part = 0;
    if (before > 0 && left != 0) {
      const double share = static_cast<double>(each.set.replicas) * allowed;
      part = static_cast<int32_t>(share / static_cast<double>(before) + 0.5) - each.set.replicas;
      part = grows ? std::clamp(part, 0, left) : std::clamp(part, left, 0);
    }
    left -= part;
    plan.resize.emplace_back(active[i], std::max(0, each.set.replicas + part));
  }
  if (left != 0) {
    auto& size = plan.resize.front().second;
    size = std::max(0, size + left);
  }
}

// How big the new set may be now.
int32_t new_size(const kube::Deployment& deployment, int32_t total, int32_t current) {
  if (deployment.recreate) return deployment.replicas;
  const int32_t room = deployment.replicas + deployment.surge_max - total;
  if (room <= 0) return current;
  return std::min(deployment.replicas, current + room);
}

void plan_new_set(const kube::Deployment& deployment, const std::vector<OwnedSet>& sets,
                  std::optional<size_t> current, DeploymentPlan& plan) {
  const int32_t total = total_replicas(sets);
  if (!current) {
    plan.create = new_size(deployment, total, 0);
    return;
  }
  const int32_t size = sets[*current].set.replicas;
  if (size > deployment.replicas) {
    plan.resize.emplace_back(*current, deployment.replicas);
  } else if (size < deployment.replicas) {
    const int32_t next = new_size(deployment, total, size);
    if (next != size) plan.resize.emplace_back(*current, next);
  }
}

// First what never became available, then as many as the minimum of available pods spares.
void plan_old_sets(const kube::Deployment& deployment, const std::vector<OwnedSet>& sets,
                   size_t current, DeploymentPlan& plan) {
  const kube::ReplicaSet& fresh = sets[current].set;
  const int32_t minimum = deployment.replicas - unavailable_max(deployment);
  const int32_t unavailable_new = fresh.replicas - fresh.available_replicas;
  int32_t spare = total_replicas(sets) - minimum - unavailable_new;
  int32_t available = 0;
  for (const OwnedSet& each : sets) available += each.set.available_replicas;
  int32_t spare_available = available - minimum;
  for (const size_t i : active_by_age(sets)) {
    if (i == current || spare <= 0) continue;
    const kube::ReplicaSet& set = sets[i].set;
    const int32_t unhealthy =
        std::clamp(set.replicas - set.available_replicas, 0, std::min(spare, set.replicas));
    const int32_t healthy =
        std::clamp(std::min(spare - unhealthy, spare_available), 0, set.replicas - unhealthy);
    if (unhealthy + healthy == 0) continue;
    spare -= unhealthy + healthy;
    spare_available -= healthy;
    plan.resize.emplace_back(i, set.replicas - unhealthy - healthy);
  }
}

bool is_complete(const kube::Deployment& deployment, const std::vector<OwnedSet>& sets) {
  const auto current = find_current(sets);
  if (!current) return false;
  int32_t pods = 0;
  for (const OwnedSet& each : sets) pods += each.set.status_replicas;
  const kube::ReplicaSet& set = sets[*current].set;
  return set.status_replicas == deployment.replicas && pods == deployment.replicas &&
         set.available_replicas == deployment.replicas;
}

void plan_history(const kube::Deployment& deployment, const std::vector<OwnedSet>& sets,
                  DeploymentPlan& plan) {
  std::vector<size_t> old;
  for (size_t i = 0; i < sets.size(); ++i) {
    const OwnedSet& each = sets[i];
    if (!each.current && !each.object.deleting() && each.set.replicas == 0 &&
        each.set.status_replicas == 0 && each.set.observed_generation >= each.set.meta.generation) {
      old.push_back(i);
    }
  }
  const auto revision = [&](size_t i) {
    return number_annotation(sets[i].object, kRevision).value_or(0);
  };
  std::ranges::sort(old, [&](size_t a, size_t b) {
    if (revision(a) != revision(b)) return revision(a) < revision(b);
    return older(sets[a], sets[b]);
  });
  const auto keep = static_cast<size_t>(std::max(deployment.revision_history_limit, 0));
  if (old.size() > keep)
    old.resize(old.size() - keep);
  else
    old.clear();
  plan.remove = std::move(old);
}

bool same_template(const Value& a, const Value& b) {
  Value left = a;
  if (left.get("metadata", "labels").contains(kTemplateHash)) {
    left.ref("metadata", "labels").erase(kTemplateHash);
    if (left.get("metadata", "labels").empty()) left.ref("metadata").erase("labels");
  }
  return left == b;
}

// As Kubernetes writes numbers into names: digits without those that make words.
std::string safe_text(uint32_t number) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string out = std::to_string(number);
  for (char& c : out) c = kAlphabet[static_cast<unsigned char>(c) % kAlphabet.size()];
  return out;
}

std::string template_hash(const Value& pod_template, int64_t collisions) {
  uint32_t hash = 2'166'136'261U;
  const auto mix = [&](std::string_view text) {
    for (const char c : text) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619U;
    }
  };
  mix(pod_template.dump());
  if (collisions > 0) mix(std::to_string(collisions));
  return safe_text(hash);
}

}  // namespace

void mark_current(const kube::Deployment& deployment, std::vector<OwnedSet>& sets) {
  OwnedSet* found = nullptr;
  for (OwnedSet& each : sets) {
    each.current = false;
    if (each.object.deleting() || !same_template(each.set.pod_template, deployment.pod_template)) {
      continue;
    }
    if (found == nullptr || older(each, *found)) found = &each;
  }
  if (found != nullptr) found->current = true;
}

int64_t current_revision(const std::vector<OwnedSet>& sets) {
  int64_t newest = 0;
  for (const OwnedSet& each : sets) {
    if (!each.current) {
      newest = std::max(newest, number_annotation(each.object, kRevision).value_or(0));
    }
  }
  const auto current = find_current(sets);
  const int64_t has = current ? number_annotation(sets[*current].object, kRevision).value_or(0) : 0;
  return std::max(has, newest + 1);
}

DeploymentPlan plan_deployment(const kube::Deployment& deployment,
                               const std::vector<OwnedSet>& sets, bool old_pods_run) {
  DeploymentPlan plan;
  if (deployment.meta.deleted) return plan;
  if (deployment.paused || is_scaling(deployment, sets)) {
    plan_scaling(deployment, sets, plan);
    std::erase_if(plan.resize, [&](const auto& each) {
      const OwnedSet& set = sets[each.first];
      return set.set.replicas == each.second &&
             number_annotation(set.object, kDesired) == deployment.replicas;
    });
    if (deployment.paused) plan_history(deployment, sets, plan);
    return plan;
  }
  const auto current = find_current(sets);
  if (deployment.recreate) {
    for (const size_t i : active_by_age(sets)) {
      if (!sets[i].current) plan.resize.emplace_back(i, 0);
    }
    if (!plan.resize.empty() || old_pods_run) return plan;
    plan_new_set(deployment, sets, current, plan);
  } else {
    plan_new_set(deployment, sets, current, plan);
    if (current && plan.resize.empty()) plan_old_sets(deployment, sets, *current, plan);
  }
  if (!plan.create && plan.resize.empty() && is_complete(deployment, sets)) {
    plan_history(deployment, sets, plan);
  }
  return plan;
}

Value size_annotations(const kube::Deployment& deployment) {
  return Value::object({{kDesired, std::to_string(deployment.replicas)},
                        {kMax, std::to_string(deployment.replicas + deployment.surge_max)}});
}

namespace {

constexpr const char* kRevisionHistory = "deployment.kubernetes.io/revision-history";

// What says something of the Deployment itself, not of its pods.
bool stays_behind(std::string_view name) {
  return name == "kubectl.kubernetes.io/last-applied-configuration" || name == kRevision ||
         name == kRevisionHistory || name == kDesired || name == kMax ||
         name == "deprecated.deployment.rollback.to";
}

// The oldest go where the text grows too long.
std::string longer_history(std::string_view history, std::string_view revision) {
  constexpr size_t kHistoryMax = 2000;
  std::string out(history);
  if (!out.empty()) out += ',';
  out += revision;
  while (out.size() > kHistoryMax && out.find(',') != std::string::npos) {
    out.erase(0, out.find(',') + 1);
  }
  return out;
}

}  // namespace

Value set_annotations(const Object& object, const kube::Deployment& deployment, const Value& before,
                      int64_t revision) {
  Value out = size_annotations(deployment);
  for (const json::Member& member : object.metadata()["annotations"].members()) {
    if (!stays_behind(member.name())) out.set(member.name(), member.value);
  }
  const std::string text = std::to_string(revision);
  const std::string_view had = before[kRevision].as_string();
  if (!had.empty() && had != text) {
    out.set(kRevisionHistory, longer_history(before[kRevisionHistory].as_string(), had));
  }
  out.set(kRevision, text);
  return out;
}

Value new_replica_set(const Object& object, const kube::Deployment& deployment, const Kind& kind,
                      int32_t replicas, int64_t revision) {
  const std::string hash =
      template_hash(deployment.pod_template, object.get("status", "collisionCount").as_int());
  Value annotations = set_annotations(object, deployment, {}, revision);
  Value pod_template = deployment.pod_template;
  pod_template.ref("metadata", "labels").set(kTemplateHash, hash);
  Value selector = object.get("spec", "selector");
  selector.ref("matchLabels").set(kTemplateHash, hash);
  Value spec = Value::object({{"replicas", replicas}, {"selector", std::move(selector)}});
  if (deployment.min_ready_seconds > 0) spec.set("minReadySeconds", deployment.min_ready_seconds);
  Value meta = Value::object({{"name", std::string(object.name()) + "-" + hash},
                              {"namespace", object.ns()},
                              {"labels", pod_template.get("metadata", "labels")},
                              {"annotations", std::move(annotations)}});
  meta.set("ownerReferences", Value::array({controller_reference(object, kind)}));
  spec.set("template", std::move(pod_template));
  return Value::object({{"apiVersion", "apps/v1"},
                        {"kind", "ReplicaSet"},
                        {"metadata", std::move(meta)},
                        {"spec", std::move(spec)}});
}

}  // namespace tessera::apiserver::controller
