#include "apiserver/controller_daemon_set_plan.h"

#include <algorithm>
#include <utility>

#include "apiserver/controller_revisions.h"
#include "kube/job.h"
#include "kube/pod.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr const char* kTemplateGeneration = "deprecated.daemonset.template.generation";
constexpr const char* kPodGeneration = "pod-template-generation";

void add_toleration(Value& spec, std::string_view key, std::string_view effect) {
  const Value added = Value::object({{"key", key}, {"operator", "Exists"}, {"effect", effect}});
  Value kept = Value::array();
  bool found = false;
  for (const Value& each : spec["tolerations"].items()) {
    const bool same = each["key"] == added["key"] && each["effect"] == added["effect"] &&
                      each["operator"] == added["operator"] && each["value"].as_string().empty();
    kept.push_back(same ? added : each);
    found = found || same;
  }
  if (!found) kept.push_back(added);
  spec.set("tolerations", std::move(kept));
}

// A daemon stays where other pods are driven away.
void add_tolerations(Value& spec) {
  add_toleration(spec, "node.kubernetes.io/not-ready", "NoExecute");
  add_toleration(spec, "node.kubernetes.io/unreachable", "NoExecute");
  add_toleration(spec, "node.kubernetes.io/disk-pressure", "NoSchedule");
  add_toleration(spec, "node.kubernetes.io/memory-pressure", "NoSchedule");
  add_toleration(spec, "node.kubernetes.io/pid-pressure", "NoSchedule");
  add_toleration(spec, "node.kubernetes.io/unschedulable", "NoSchedule");
  if (spec["hostNetwork"].as_bool()) {
    add_toleration(spec, "node.kubernetes.io/network-unavailable", "NoSchedule");
  }
}

bool tolerates_all(const DaemonSet& set, const DaemonNode& node, bool schedule_too) {
  return std::ranges::all_of(node.taints, [&](const kube::Taint& taint) {
    const bool counts = taint.effect == kube::TaintEffect::kNoExecute ||
                        (schedule_too && taint.effect == kube::TaintEffect::kNoSchedule);
    return !counts || std::ranges::any_of(set.tolerations, [&](const kube::Toleration& each) {
      return kube::tolerates(each, taint);
    });
  });
}

int32_t count_of(const Value& number_or_percent, size_t total) {
  return kube::resolve_int_or_percent(number_or_percent, static_cast<int32_t>(total), true, "")
      .value_or(0);
}

bool is_failed(const Object& pod) {
  return pod.get("status", "phase").as_string() == "Failed";
}

// Bound ones first, then by age.
void sort_by_age(std::vector<Object>& pods) {
  const auto rank = [](const Object& pod) {
    return std::tuple(pod.get("spec", "nodeName").as_string().empty(),
                      pod.metadata()["creationTimestamp"].as_string(), pod.name());
  };
  std::ranges::sort(pods, [&](const Object& a, const Object& b) { return rank(a) < rank(b); });
}

// The pods of each node. Those that ended and are being deleted are done with.
std::map<std::string, std::vector<Object>> by_node(const std::vector<Object>& pods) {
  std::map<std::string, std::vector<Object>> out;
  for (const Object& pod : pods) {
    if (pod.deleting() && is_finished(pod)) continue;
    const std::string node = target_node(pod);
    if (!node.empty()) out[node].push_back(pod);
  }
  for (auto& [node, own] : out) sort_by_age(own);
  return out;
}

bool is_updated(const DaemonView& view, const Object& pod) {
  const std::string_view generation = view.set.object.annotation(kTemplateGeneration);
  return (!view.hash.empty() && pod.label(kRevisionHash) == view.hash) ||
         (!generation.empty() && pod.label(kPodGeneration) == generation);
}

bool is_up(const DaemonView& view, const Object& pod) {
  return is_available(pod, view.set.min_ready_seconds, view.now);
}

bool surges(const DaemonSet& set) {
  return !set.on_delete && count_of(set.max_surge, 1) > 0;
}

// What runs on one node in two versions: the newer goes on once it can stand in for the older.
void plan_surged(const DaemonView& view, const std::vector<Object>& running, DaemonPlan& plan) {
  Object fresh;
  Object old;
  for (const Object& pod : running) {
    Object& place = pod.label(kRevisionHash) == view.hash ? fresh : old;
    if (!place) {
      place = pod;
    } else {
      plan.remove.push_back(pod);
    }
  }
  if (fresh && old && (!is_ready(old) || is_up(view, fresh))) plan.remove.push_back(old);
}

void plan_node(const DaemonView& view, const DaemonNode& node, const std::vector<Object>& pods,
               bool exists, const FailureBackoff& backoff, DaemonPlan& plan) {
  const DaemonFit fit = fit_on_node(view.set, node);
  if (fit.should_run && !exists) {
    plan.create_on.push_back(node.name);
    return;
  }
  std::vector<Object> running;
  for (const Object& pod : pods) {
    if (pod.deleting()) continue;
    if (!fit.may_stay) {
      plan.remove.push_back(pod);
    } else if (is_finished(pod)) {
      const auto wait =
          is_failed(pod) ? backoff.wait(failure_key(view.set, node.name), view.now) : std::nullopt;
      if (wait) {
        plan.again_after = std::min(plan.again_after.value_or(*wait), *wait);
      } else {
        plan.ended.push_back(pod);
        plan.remove.push_back(pod);
      }
    } else {
      running.push_back(pod);
    }
  }
  if (!fit.may_stay) return;
  if (!surges(view.set)) {
    for (size_t i = 1; i < running.size(); ++i) plan.remove.push_back(running[i]);
  } else if (running.empty()) {
    if (fit.should_run) plan.create_on.push_back(node.name);
  } else if (running.size() > 1) {
    plan_surged(view, running, plan);
  }
}

// The new and the old pod of a node; false where there are several of one sort.
bool split(const DaemonView& view, const std::vector<Object>& pods, Object& fresh, Object& old) {
  for (const Object& pod : pods) {
    if (pod.deleting()) continue;
    Object& place = is_updated(view, pod) ? fresh : old;
    if (place) return false;
    place = pod;
  }
  return true;
}

using PodsByNode = std::map<std::string, std::vector<Object>>;

// Old pods are deleted as far as maxUnavailable allows; those that are not available count as down already.
DaemonPlan plan_in_place(const DaemonView& view, const PodsByNode& pods, int32_t most) {
  DaemonPlan plan;
  std::vector<Object> candidates;
  int32_t down = 0;
  for (const auto& [node, own] : pods) {
    Object fresh;
    Object old;
    if (!split(view, own, fresh, old) || static_cast<bool>(fresh) == static_cast<bool>(old)) {
      ++down;
    } else if (fresh) {
      down += !is_up(view, fresh);
    } else if (!is_up(view, old)) {
      plan.remove.push_back(old);
      ++down;
    } else {
      candidates.push_back(old);
    }
  }
  const auto room = static_cast<size_t>(std::max(0, most - down));
  candidates.resize(std::min(candidates.size(), room));
  plan.remove.insert(plan.remove.end(), candidates.begin(), candidates.end());
  return plan;
}

struct Surge {
  const DaemonView& view;
  const std::map<std::string_view, const DaemonNode*>& nodes;
  DaemonPlan plan;
  std::vector<Object> misplaced;
  std::vector<std::string> candidates;
  int32_t surged = 0;
  int32_t available = 0;

  void look_at(const std::string& name, const std::vector<Object>& own) {
    Object fresh;
    Object old;
    if (!split(view, own, fresh, old)) {
      ++surged;
      return;
    }
    const Object& counted = old ? old : fresh;
    available += counted && is_up(view, counted);
    if (!old) return;
    if (fresh) {
      if (is_up(view, fresh)) {
        plan.remove.push_back(old);
      } else {
        ++surged;
      }
      return;
    }
    const auto node = nodes.find(name);
    const bool belongs = node != nodes.end() && fit_on_node(view.set, *node->second).should_run;
    if (is_up(view, old)) {
      if (belongs) {
        candidates.push_back(name);
      } else {
        misplaced.push_back(old);
      }
    } else if (belongs) {
      plan.create_on.push_back(name);
    } else {
      plan.remove.push_back(old);
    }
  }
};

// New pods beside the old ones, at most maxSurge beyond what is down anyhow.
DaemonPlan plan_beside(const DaemonView& view, const PodsByNode& pods,
                       const std::map<std::string_view, const DaemonNode*>& nodes, int32_t most,
                       int32_t desired) {
  Surge surge{.view = view, .nodes = nodes, .plan = {}, .misplaced = {}, .candidates = {}};
  for (const auto& [name, own] : pods) surge.look_at(name, own);
  const auto room = static_cast<size_t>(std::max(0, most - surge.surged));
  surge.candidates.resize(std::min(surge.candidates.size(), room));
  const auto spare = static_cast<size_t>(std::max(0, surge.available - desired));
  surge.misplaced.resize(std::min(surge.misplaced.size(), spare));
  DaemonPlan& plan = surge.plan;
  plan.remove.insert(plan.remove.end(), surge.misplaced.begin(), surge.misplaced.end());
  plan.create_on.insert(plan.create_on.end(), surge.candidates.begin(), surge.candidates.end());
  return std::move(plan);
}

void cut(DaemonPlan& plan) {
  plan.create_on.resize(std::min(plan.create_on.size(), kBurstPods));
  plan.remove.resize(std::min(plan.remove.size(), kBurstPods));
}

}  // namespace

base::Result<DaemonSet> read_daemon_set(const Object& object) {
  DaemonSet out;
  out.object = object;
  const Value& spec = object["spec"];
  out.min_ready_seconds = static_cast<int32_t>(spec["minReadySeconds"].as_int());
  out.history_limit = spec["revisionHistoryLimit"].as_int(10);
  out.on_delete = spec["updateStrategy"]["type"].as_string() == "OnDelete";
  out.max_unavailable = spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
  out.max_surge = spec["updateStrategy"]["rollingUpdate"]["maxSurge"];
  TS_TRY(out.selector, kube::LabelSelector::from_json(spec["selector"], "spec.selector"));
  Value pod;
  pod.ref("metadata").set("name", object.name());
  pod.set("spec", spec["template"]["spec"]);
  add_tolerations(pod.ref("spec"));
  TS_TRY(kube::Pod decoded, kube::decode_pod(Object(std::move(pod))));
  out.node_name = std::move(decoded.node_name);
  out.node_selector = std::move(decoded.node_selector);
  out.affinity = std::move(decoded.affinity);
  out.tolerations = std::move(decoded.tolerations);
  return out;
}

DaemonFit fit_on_node(const DaemonSet& set, const DaemonNode& node) {
  if (!set.node_name.empty() && set.node_name != node.name) return {};
  if (!kube::matches_node(set.node_selector, set.affinity, node.labels, node.name)) return {};
  if (tolerates_all(set, node, true)) return {true, true};
  return {false, tolerates_all(set, node, false)};
}

std::string target_node(const Object& pod) {
  const Value& bound = pod.get("spec", "nodeName");
  if (!bound.as_string().empty()) return bound.str();
  const Value& terms =
      pod.get("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
              "nodeSelectorTerms");
  for (const Value& term : terms.items()) {
    for (const Value& field : term["matchFields"].items()) {
      if (field["key"].as_string() == "metadata.name" && field["operator"].as_string() == "In") {
        return field["values"].size() == 1 ? field["values"].at(0).str() : std::string();
      }
    }
  }
  return {};
}

std::optional<base::Duration> FailureBackoff::wait(const std::string& key, base::Time now) const {
  const auto at = entries_.find(key);
  if (at == entries_.end() || at->second.at + at->second.delay <= now) return std::nullopt;
  return at->second.delay;
}

void FailureBackoff::count(const std::string& key, base::Time now) {
  constexpr base::Duration kFirst = base::seconds(1);
  constexpr base::Duration kMost = base::seconds(15 * 60);
  std::erase_if(entries_, [&](const auto& each) { return each.second.at + kMost * 2 < now; });
  const auto [at, is_new] = entries_.try_emplace(key, Entry{kFirst, now});
  if (!is_new) at->second = {std::min(at->second.delay * 2, kMost), now};
}

std::string failure_key(const DaemonSet& set, std::string_view node) {
  return fmt::format("{}/{}/{}", set.object.uid(),
                     set.object.get("status", "observedGeneration").as_int(), node);
}

DaemonPlan plan_daemon_pods(const DaemonView& view, const FailureBackoff& backoff) {
  DaemonPlan plan;
  if (view.set.object.deleting()) return plan;
  PodsByNode pods = by_node(view.pods);
  for (const DaemonNode& node : view.nodes) {
    const auto own = pods.find(node.name);
    const bool exists = own != pods.end();
    plan_node(view, node, exists ? own->second : std::vector<Object>(), exists, backoff, plan);
    if (exists) pods.erase(own);
  }
  // Left over: pods for nodes that are gone. Those that are bound are collected with their node.
  for (const auto& [node, own] : pods) {
    for (const Object& pod : own) {
      if (pod.get("spec", "nodeName").as_string().empty() && !pod.deleting()) {
        plan.remove.push_back(pod);
      }
    }
  }
  cut(plan);
  return plan;
}

DaemonPlan plan_daemon_rollout(const DaemonView& view) {
  if (view.set.object.deleting() || view.set.on_delete) return {};
  PodsByNode pods = by_node(view.pods);
  std::map<std::string_view, const DaemonNode*> nodes;
  int32_t desired = 0;
  for (const DaemonNode& node : view.nodes) {
    nodes.emplace(node.name, &node);
    if (!fit_on_node(view.set, node).should_run) continue;
    ++desired;
    pods.try_emplace(node.name);
  }
  int32_t unavailable = count_of(view.set.max_unavailable, static_cast<size_t>(desired));
  const int32_t surge = count_of(view.set.max_surge, static_cast<size_t>(desired));
  if (desired > 0 && unavailable == 0 && surge == 0) unavailable = 1;
  DaemonPlan plan = surge == 0 ? plan_in_place(view, pods, unavailable)
                               : plan_beside(view, pods, nodes, surge, desired);
  cut(plan);
  return plan;
}

Value daemon_status(const DaemonView& view) {
  const PodsByNode pods = by_node(view.pods);
  int64_t desired = 0;
  int64_t scheduled = 0;
  int64_t misscheduled = 0;
  int64_t ready = 0;
  int64_t available = 0;
  int64_t updated = 0;
  for (const DaemonNode& node : view.nodes) {
    const auto own = pods.find(node.name);
    if (!fit_on_node(view.set, node).should_run) {
      misscheduled += own != pods.end();
      continue;
    }
    ++desired;
    if (own == pods.end()) continue;
    ++scheduled;
    const Object& pod = own->second.front();
    ready += is_ready(pod);
    available += is_up(view, pod);
    updated += is_updated(view, pod);
  }
  Value status = Value::object({{"currentNumberScheduled", scheduled},
                                {"numberMisscheduled", misscheduled},
                                {"desiredNumberScheduled", desired},
                                {"numberReady", ready},
                                {"observedGeneration", view.set.object.metadata()["generation"]}});
  if (updated != 0) status.set("updatedNumberScheduled", updated);
  if (available != 0) status.set("numberAvailable", available);
  if (desired != available) status.set("numberUnavailable", desired - available);
  const Value& before = view.set.object["status"];
  for (const char* kept : {"collisionCount", "conditions"}) {
    if (before.contains(kept)) status.set(kept, before[kept]);
  }
  return status;
}

Value daemon_pod(const DaemonSet& set, const Kind& kind, std::string_view node,
                 std::string_view hash, std::string_view name) {
  Value pod = pod_of_template(set.object.get("spec", "template"), set.object, kind, name);
  const std::string_view generation = set.object.annotation(kTemplateGeneration);
  Value& labels = pod.ref("metadata", "labels");
  if (!generation.empty()) labels.set(kPodGeneration, generation);
  labels.set(kRevisionHash, hash);
  Value& spec = pod.ref("spec");
  add_tolerations(spec);
  const Value here = Value::object(
      {{"key", "metadata.name"}, {"operator", "In"}, {"values", Value::array({Value(node)})}});
  const Value term = Value::object({{"matchFields", Value::array({here})}});
  spec.ref("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
      .set("nodeSelectorTerms", Value::array({term}));
  return pod;
}

}  // namespace tessera::apiserver::controller
