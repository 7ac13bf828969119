#include "sim/invariants.h"

#include <algorithm>
#include <charconv>

#include "kube/node.h"
#include "kube/pod.h"
#include "kube/pod_resources.h"

namespace tessera::sim {
namespace {

using base::Code;
using base::error;
using kube::Object;

std::vector<int> indexes(std::string_view text) {
  std::vector<int> out;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int value = 0;
    const auto [next, ec] = std::from_chars(at, end, value);
    if (ec != std::errc()) break;
    out.push_back(value);
    at = next < end ? next + 1 : next;
  }
  return out;
}

// Thousandths of each GPU that the binding gave the pod.
std::map<int, int64_t> charged(const Object& pod) {
  std::map<int, int64_t> out;
  int64_t milli = 1000;
  const std::string_view text = pod.annotation("tessera.dev/share-milli");
  std::from_chars(text.data(), text.data() + text.size(), milli);
  for (const int gpu : indexes(pod.annotation("tessera.dev/gpus"))) out[gpu] = milli;
  return out;
}

std::set<std::string> device_ids(const Object& pod) {
  std::set<std::string> out;
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::Value& container : pod.get("status", list).items()) {
      for (const json::Value& resource : container["allocatedResourcesStatus"].items()) {
        for (const json::Value& device : resource["resources"].items()) {
          out.insert(device["resourceID"].str());
        }
      }
    }
  }
  return out;
}

}  // namespace

base::Status Invariants::see_version(std::string_view resource, const kube::WatchEvent& event) {
  uint64_t version = 0;
  const std::string_view text = event.object.resource_version();
  std::from_chars(text.data(), text.data() + text.size(), version);
  uint64_t& newest = newest_.try_emplace(std::string(resource)).first->second;
  if (version <= newest && event.type != kube::WatchEvent::Type::kAdded) {
    return error(Code::kInternal, "resource version of {} went from {} to {} with {}", resource,
                 newest, version, event.object.key());
  }
  newest = std::max(newest, version);
  return {};
}

base::Status Invariants::see_node(const kube::WatchEvent& event, base::Time now) {
  const std::string name(event.object.name());
  if (event.type == kube::WatchEvent::Type::kDeleted) {
    nodes_[name].present = false;  // its pods are still there
    return {};
  }
  TS_TRY(const kube::Node node, kube::decode_node(event.object));
  NodeFacts& facts = nodes_[name];
  facts.capacity = node.capacity;
  facts.present = true;
  if (node.unschedulable && !facts.cordoned) facts.cordoned_at = now;
  facts.cordoned = node.unschedulable;
  std::map<int, base::Time> sick;
  for (const int gpu : indexes(event.object.annotation("tessera.dev/unhealthy-gpus"))) {
    const auto before = facts.sick_since.find(gpu);
    sick[gpu] = before != facts.sick_since.end() ? before->second : now;
  }
  facts.sick_since = std::move(sick);
  return {};
}

base::Status Invariants::see_pod(const kube::WatchEvent& event, base::Time now) {
  const Object& object = event.object;
  const std::string key = object.key();
  const auto before = pods_.find(key);
  if (event.type == kube::WatchEvent::Type::kDeleted) {
    if (before == pods_.end()) return {};
    leave(key, before->second);
    pods_.erase(before);
    return {};
  }
  TS_TRY(const kube::Pod pod, kube::decode_pod(object));
  PodFacts facts;
  facts.uid = pod.meta.uid;
  facts.node = pod.node_name;
  facts.requests = kube::pod_requests(pod);
  facts.devices = device_ids(object);
  facts.gpu_milli = charged(object);
  facts.finished = pod.finished();
  for (const json::Value& owner : object.metadata()["ownerReferences"].items())
    facts.of_daemon |= owner["kind"].as_string() == "DaemonSet";
  const bool same = before != pods_.end() && before->second.uid == facts.uid;
  if (same && !before->second.node.empty() && before->second.node != facts.node) {
    return error(Code::kInternal, "pod {} moved from {} to {}", key, before->second.node,
                 facts.node);
  }
  if (same && before->second.finished && !facts.finished) {
    return error(Code::kInternal, "pod {} came back after it was finished", key);
  }
  const bool newly_bound = !facts.node.empty() && (!same || before->second.node.empty());
  if (facts.finished && (!same || !before->second.finished)) ++finished_;
  if (newly_bound) {
    ++bound_;
    TS_TRY_STATUS(check_binding(key, facts, now));
  }
  if (before != pods_.end()) leave(key, before->second);
  if (facts.node.empty()) {
    pods_[key] = std::move(facts);
    return {};
  }
  nodes_[facts.node].pods.insert(key);
  const std::string node = facts.node;
  pods_[key] = std::move(facts);
  return check_node(node);
}

void Invariants::leave(const std::string& key, const PodFacts& pod) {
  if (!pod.node.empty()) nodes_[pod.node].pods.erase(key);
}

base::Status Invariants::check_binding(const std::string& key, const PodFacts& pod,
                                       base::Time now) const {
  const auto it = nodes_.find(pod.node);
  if (it == nodes_.end() || !it->second.present) {
    return error(Code::kInternal, "pod {} bound to {}, no such node", key, pod.node);
  }
  const NodeFacts& node = it->second;
  if (node.cordoned && !pod.of_daemon && now - node.cordoned_at > grace_) {
    return error(Code::kInternal, "pod {} bound to {}, cordoned since {}", key, pod.node,
                 base::to_rfc3339(node.cordoned_at));
  }
  for (const auto& [gpu, milli] : pod.gpu_milli) {
    const auto sick = node.sick_since.find(gpu);
    if (sick != node.sick_since.end() && now - sick->second > grace_) {
      return error(Code::kInternal, "pod {} bound to GPU {} of {}, sick since {}", key, gpu,
                   pod.node, base::to_rfc3339(sick->second));
    }
  }
  return {};
}

base::Status Invariants::check_node(const std::string& name) const {
  const NodeFacts& node = nodes_.at(name);
  TS_TRY_STATUS(check_devices(name, node));
  return check_resources(name, node);
}

base::Status Invariants::check_devices(const std::string& name, const NodeFacts& node) const {
  std::map<std::string, std::string> owner;
  std::map<int, int64_t> milli;
  for (const std::string& key : node.pods) {
    const PodFacts& pod = pods_.at(key);
    if (pod.finished) continue;
    for (const std::string& device : pod.devices) {
      const auto [it, first] = owner.emplace(device, key);
      if (!first) {
        return error(Code::kInternal, "device {} of {} is held by {} and {}", device, name,
                     it->second, key);
      }
    }
    for (const auto& [gpu, share] : pod.gpu_milli) {
      milli[gpu] += share;
      if (milli[gpu] > 1000) {
        return error(Code::kInternal, "GPU {} of {} is given out {} thousandths, with {}", gpu,
                     name, milli[gpu], key);
      }
    }
  }
  return {};
}

base::Status Invariants::check_resources(const std::string& name, const NodeFacts& node) const {
  kube::ResourceList sum;
  int64_t pods = 0;
  for (const std::string& key : node.pods) {
    if (pods_.at(key).finished) continue;
    kube::add_to(sum, pods_.at(key).requests);
    ++pods;
  }
  if (const int64_t most = kube::amount_of(node.capacity, "pods").value(); pods > most) {
    return error(Code::kInternal, "{} has {} pods, at most {}", name, pods, most);
  }
  for (const auto& [resource, amount] : sum) {
    const kube::Quantity& capacity = kube::amount_of(node.capacity, resource);
    if (amount > capacity) {
      return error(Code::kInternal, "{} of {}: {} requested of {}", resource, name,
                   amount.to_string(), capacity.to_string());
    }
  }
  return {};
}

}  // namespace tessera::sim
