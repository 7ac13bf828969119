// A cluster that is nowhere: what is decided happens at once.

#include "scheduler/what_if_world.h"

#include <fmt/format.h>

#include <algorithm>

#include "kube/pod_phase.h"

namespace tessera::scheduler {
namespace {

using json::Value;
using kube::Object;

// A controller that makes another pod where one is gone; a daemon's does so on its own node alone.
bool comes_back(const Object& pod) {
  return std::ranges::any_of(pod.metadata()["ownerReferences"].items(), [](const Value& owner) {
    return owner["controller"].as_bool() && owner["kind"].as_string() != "Node";
  });
}

}  // namespace

WhatIfWorld::WhatIfWorld(const Snapshot& snapshot, const WhatIfOptions& options)
    : options_(options), model_(model_of(snapshot, options.model, options.now, &volumes_)) {
  for (const Object& object : snapshot.objects) {
    if (object.kind() != "Pod" || kube::has_ended(object)) continue;
    pods_[object.key()] = object;
    // Time stands still, and it would never end.
    if (object.deleting()) remove(object.key());
  }
}

void WhatIfWorld::put(const Object& object) {
  tell(model_, volumes_, object, options_.now);
  if (object.kind() == "Pod") pods_[object.key()] = object;
}

Object WhatIfWorld::find(std::string_view group, std::string_view kind, std::string_view ns,
                         std::string_view name) const {
  return model_.object(group, kind, ns, name);
}

std::vector<Object> WhatIfWorld::priority_classes() const {
  std::vector<Object> out;
  model_.each_object("scheduling.k8s.io", "PriorityClass",
                     [&](const Object& found) { out.push_back(found); });
  return out;
}

std::string WhatIfWorld::node_of(const std::string& pod) const {
  const auto found = pods_.find(pod);
  return found == pods_.end() ? std::string() : found->second.get("spec", "nodeName").str();
}

void WhatIfWorld::remove(const std::string& pod) {
  model_.on_pod(pod, {}, options_.now);
  pods_.erase(pod);
}

void WhatIfWorld::evict(const std::string& key, std::string_view reason, std::string why) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  const Object pod = found->second;
  PlannedEviction out{key, node_of(key), std::string(reason), std::move(why), {}, comes_back(pod)};
  evictions_.push_back(out);
  remove(key);
  if (!out.comes_back) return;
  Value next = pod.json();
  Value& meta = next.ref("metadata");
  meta.set("uid", fmt::format("planned-again-{}", ++made_));
  meta.set("creationTimestamp", base::to_rfc3339(options_.now));
  meta.erase("deletionTimestamp");
  for (const std::string_view key_of : kPlacementAnnotations) meta.ref("annotations").erase(key_of);
  next.ref("spec").erase("nodeName");
  next.set("status", Value::object({{"phase", "Pending"}}));
  put(Object(std::move(next)));
}

void WhatIfWorld::bind(const BindDecision& decision) {
  const auto found = pods_.find(decision.pod);
  if (found == pods_.end()) return;
  Value pod = found->second.json();
  pod.ref("spec").set("nodeName", model_.node_name(decision.placement.node));
  for (const auto& [key, value] : model_.annotations_of(decision))
    pod.ref("metadata", "annotations").set(key, value);
  const Value placed = Value::object({{"type", "PodScheduled"},
                                      {"status", "True"},
                                      {"lastTransitionTime", base::to_rfc3339(options_.now)}});
  pod.ref("status").set("conditions", Value::array({placed}));
  put(Object(std::move(pod)));
}

bool WhatIfWorld::settle() {
  int quiet = 0;
  for (int round = 0; round < kRoundsMax; ++round) {
    volumes_.consider(model_, options_.now);
    const Decisions decisions = model_.cycle(options_.now);
    for (const BindDecision& each : decisions.binds) bind(each);
    for (const EvictDecision& each : decisions.evicts) {
      if (options_.evictions) evict(each.pod, queueing::name_of(each.reason), each.why);
      if (!options_.evictions) model_.evict_failed(each.pod, options_.now);
    }
    // What was freed by the last one may be given out by the next.
    quiet = decisions.binds.empty() && decisions.evicts.empty() ? quiet + 1 : 0;
    if (quiet == 2) return true;
  }
  return false;
}

}  // namespace tessera::scheduler
