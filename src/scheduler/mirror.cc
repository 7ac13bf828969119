#include "scheduler/mirror.h"

#include <algorithm>
#include <vector>

#include "base/log.h"

namespace tessera::scheduler {
namespace {

// What a placement depends on is unchanged: spec, labels and annotations.
bool same_ask(const kube::Object& a, const kube::Object& b) {
  return a["spec"] == b["spec"] && a.metadata()["labels"] == b.metadata()["labels"] &&
         a.metadata()["annotations"] == b.metadata()["annotations"];
}

}  // namespace

bool Mirror::on_node(const kube::Object& before, const kube::Object& after) {
  const std::string name((after ? after : before).name());
  const auto known = by_name_.find(name);
  if (!after) {
    if (known == by_name_.end()) return false;
    cluster_.remove_node(known->second);
    nodes_.erase(known->second);
    names_.erase(known->second);
    by_name_.erase(known);
    return false;
  }
  auto node = kube::decode_node(after);
  if (!node) {
    base::log_warn("node skipped name={} reason=\"{}\"", name, node.error().message);
    return false;
  }
  NodeView view = translate_node(*node, cluster_.names());
  if (known == by_name_.end()) {
    const core::NodeId id = cluster_.add_node(view.spec);
    by_name_.emplace(name, id);
    names_.emplace(id, name);
    nodes_.emplace(id, std::move(view));
    place_waiting_for(name);
    return true;
  }
  NodeView& old = nodes_.at(known->second);
  const bool changed = !(old.spec == view.spec);
  if (changed) cluster_.update_node(known->second, view.spec);
  old = std::move(view);
  return changed;
}

// Pods that were seen bound before their node was.
void Mirror::place_waiting_for(const std::string& node_name) {
  std::vector<std::string> keys;
  for (const auto& [key, pod] : pods_) {
    if (pod.node_name == node_name) keys.push_back(key);
  }
  std::ranges::sort(keys);
  for (const std::string& key : keys) {
    Tracked& pod = pods_.at(key);
    release(pod);
    confirm(pod, node_name);
  }
}

Tracked* Mirror::find(const std::string& key) {
  const auto it = pods_.find(key);
  return it != pods_.end() ? &it->second : nullptr;
}

base::Result<core::PodRequest> Mirror::request_of(const kube::Object& pod) {
  TS_TRY(const kube::Pod decoded, kube::decode_pod(pod));
  if (!decoded.node_name.empty()) return translate_bound_pod(decoded, cluster_.names());
  return translate_pod(decoded, cluster_.names());
}

Tracked& Mirror::track(const kube::Object& pod) {
  const std::string key = pod.key();
  auto [it, added] = pods_.try_emplace(key);
  Tracked& entry = it->second;
  if (added) entry.arrival = ++arrivals_;
  // A placed pod keeps the request that it was charged with.
  if (!entry.placed && (added || !same_ask(entry.asked, pod))) {
    auto request = request_of(pod);
    entry.request =
        request ? std::make_shared<const core::PodRequest>(std::move(*request)) : nullptr;
    entry.problem = request ? "" : request.error().message;
    entry.asked = pod;
  }
  entry.object = pod;
  entry.uid = pod.uid();
  return entry;
}

void Mirror::confirm(Tracked& pod, const std::string& node_name) {
  pod.node_name = node_name;
  if (pod.assumed) --assumed_;
  pod.assumed = false;
  const auto node = by_name_.find(node_name);
  if (node == by_name_.end() || !pod.request) return;
  const NodeView& view = nodes_.at(node->second);
  const core::Placement seen = placement_of(pod.object, view, node->second, *pod.request);
  if (pod.placed && pod.node == node->second) {
    if (seen.devices != 0) cluster_.update_devices(*pod.placed, seen.devices);
    return;
  }
  release(pod);
  pod.placed = cluster_.add_pod(pod.request, seen);
  pod.node = node->second;
}

void Mirror::assume(Tracked& pod, const core::Placement& placement) {
  pod.placed = cluster_.add_pod(pod.request, placement);
  pod.node = placement.node;
  pod.assumed = true;
  ++assumed_;
}

bool Mirror::release(Tracked& pod) {
  if (pod.assumed) --assumed_;
  pod.assumed = false;
  if (!pod.placed) return false;
  cluster_.remove_pod(*pod.placed);
  pod.placed.reset();
  pod.node = core::NodeId();
  return true;
}

bool Mirror::forget(const std::string& key) {
  const auto it = pods_.find(key);
  if (it == pods_.end()) return false;
  const bool freed = release(it->second);
  pods_.erase(it);
  return freed;
}

}  // namespace tessera::scheduler
