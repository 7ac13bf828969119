// The changes of what_if.h: read from text, and made to a cluster that is nowhere.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "gpu/catalog.h"
#include "kube/quantity.h"
#include "scheduler/group_reading.h"
#include "scheduler/what_if_world.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using json::Value;
using kube::Object;

constexpr int64_t kNodesMax = 10'000;
constexpr int64_t kGpusMax = 32;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t found = text.find(at);
    out.push_back(text.substr(0, found));
    if (found == std::string_view::npos) return out;
    text.remove_prefix(found + 1);
  }
}

std::optional<int64_t> number(std::string_view text, int64_t low, int64_t high) {
  int64_t out = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (ec != std::errc() || end != text.data() + text.size() || out < low || out > high)
    return std::nullopt;
  return out;
}

std::string_view product_of(const Object& node) {
  const std::string_view nvidia = node.label("nvidia.com/gpu.product");
  return nvidia.empty() ? node.label("amd.com/gpu.product-name") : nvidia;
}

bool same_model(std::string_view a, std::string_view b) {
  const gpu::Model* one = gpu::find_model(a);
  return a == b || (one != nullptr && one == gpu::find_model(b));
}

int64_t gpus_of(const Object& node) {
  int64_t most = 0;
  for (const char* resource : {"nvidia.com/gpu", "amd.com/gpu"}) {
    const Value& amount = node.get("status", "capacity", resource);
    most = std::max(
        most, number(amount.is_string() ? amount.as_string() : std::string_view("0"), 0, 1'000'000)
                  .value_or(amount.as_int(0)));
  }
  return most;
}

// As new: ready, open, with all its devices well.
Object fresh(const Object& like, const std::string& name) {
  Value node = like.json();
  Value meta = Value::object({{"name", name}, {"uid", "planned-" + name}});
  meta.set("labels", like.metadata()["labels"]);
  meta.ref("labels").set("kubernetes.io/hostname", name);
  if (const auto indexes = like.annotation("tessera.dev/gpu-indexes"); !indexes.empty())
    meta.ref("annotations").set("tessera.dev/gpu-indexes", indexes);
  node.set("metadata", std::move(meta));
  node.ref("spec").erase("unschedulable");
  Value taints = Value::array();
  for (const Value& taint : like.get("spec", "taints").items()) {
    if (!taint["key"].as_string().starts_with("node.kubernetes.io/")) taints.push_back(taint);
  }
  node.ref("spec").set("taints", std::move(taints));
  const Value capacity = node.get("status", "capacity");
  for (const char* resource : {"nvidia.com/gpu", "amd.com/gpu"}) {
    if (capacity.contains(resource))
      node.ref("status", "allocatable").set(resource, capacity[resource]);
  }
  node.ref("status").set("conditions",
                         Value::array({Value::object({{"type", "Ready"}, {"status", "True"}})}));
  return Object(std::move(node));
}

// Nobody has such a node yet: a common one.
Object invented(const AddNodes& what) {
  const gpu::Model* model = gpu::find_model(what.model);
  const bool amd = model != nullptr && model->vendor == gpu::Vendor::kAmd;
  Value amounts = Value::object(
      {{"cpu", "96"}, {"memory", "1Ti"}, {"ephemeral-storage", "1Ti"}, {"pods", "110"}});
  amounts.set(amd ? "amd.com/gpu" : "nvidia.com/gpu", std::to_string(what.gpus));
  Value node = Value::object({{"apiVersion", "v1"}, {"kind", "Node"}});
  node.ref("metadata", "labels")
      .set(amd ? "amd.com/gpu.product-name" : "nvidia.com/gpu.product", what.model);
  node.ref("status").set("capacity", amounts);
  node.ref("status").set("allocatable", amounts);
  return Object(std::move(node));
}

base::Result<Object> like(const AddNodes& what, const WhatIfWorld& world,
                          std::vector<std::string>& notes) {
  if (!what.from.empty()) {
    const auto found = world.nodes().find(what.from);
    if (found == world.nodes().end())
      return base::error(
          Code::kNotFound,
          "--add-nodes: there is no node \"{}\" to be like: name one that exists, or "
          "give model=H200,gpus=8",
          what.from);
    return found->second;
  }
  Object best;
  for (const auto& [name, node] : world.nodes()) {
    const bool fits = what.model.empty() ||
                      (same_model(product_of(node), what.model) && gpus_of(node) == what.gpus);
    if (fits && (!best || gpus_of(node) > gpus_of(best))) best = node;
  }
  if (best) return best;
  if (what.model.empty())
    return base::error(Code::kNotFound,
                       "--add-nodes: there is no node to be like: give model=H200,gpus=8");
  notes.push_back(
      fmt::format("no node has {} {}: the new ones are taken to have 96 cores, 1Ti of "
                  "memory and no other labels",
                  what.gpus, what.model));
  return invented(what);
}

base::Status add_nodes(const AddNodes& what, WhatIfWorld& world, std::vector<std::string>& notes) {
  TS_TRY(const Object model, like(what, world, notes));
  const std::string base_name =
      model.name().empty() ? std::string("new") : fmt::format("{}-new", model.name());
  int64_t made = 0;
  for (int64_t i = 1; made < what.count; ++i) {
    const std::string name = fmt::format("{}-{}", base_name, i);
    if (world.nodes().contains(name)) continue;
    world.put(fresh(model, name));
    ++made;
  }
  return {};
}

// Where the dialect writes what a queue is promised.
base::Status set_one(Value& queue, std::string_view group, const std::string& resource,
                     const std::string& amount) {
  const auto quantity = kube::Quantity::parse(amount);
  if (!quantity || quantity->sign() < 0)
    return base::error(Code::kInvalid,
                       "--set-quota: {}: \"{}\" is no amount from 0: write it as 4, 500m or 64Gi",
                       resource, amount);
  if (group == "tessera.dev") {
    queue.ref("spec", "quota").set(resource, amount);
    return {};
  }
  if (group == "scheduling.volcano.sh") {
    queue.ref("spec", "deserved").set(resource == "gpu" ? "nvidia.com/gpu" : resource, amount);
    return {};
  }
  double value = quantity->approximate();
  if (resource == "cpu") value *= 1000;
  if (resource == "memory") value /= 1e6;
  if (resource != "gpu" && resource != "cpu" && resource != "memory")
    return base::error(Code::kInvalid,
                       "--set-quota: a queue of KAI has gpu, cpu and memory alone, not \"{}\"",
                       resource);
  queue.ref("spec", "resources", resource).set("quota", value);
  return {};
}

base::Status set_quota(const SetAmounts& what, WhatIfWorld& world) {
  Object found;
  std::set<std::string> names{"default"};
  for (const auto& [key, queue] : world.model().queues()) {
    names.emplace(queue.object.name());
    if (queue.object.name() == what.queue && !found) found = queue.object;
    // Of two of one name ours counts.
    if (queue.object.name() == what.queue && key.starts_with("tessera.dev/")) found = queue.object;
  }
  if (!found && what.queue != "default")
    return base::error(Code::kNotFound, "--set-quota: there is no queue \"{}\": there are {}",
                       what.queue, fmt::join(names, ", "));
  Value queue = found ? found.json()
                      : Value::object({{"apiVersion", "tessera.dev/v1alpha1"},
                                       {"kind", "Queue"},
                                       {"metadata", Value::object({{"name", "default"}})}});
  const std::string group(group_of(queue["apiVersion"].as_string()));
  for (const auto& [resource, amount] : what.amounts)
    TS_TRY_STATUS(set_one(queue, group, resource, amount));
  world.put(Object(std::move(queue)));
  return {};
}

bool is_or_owns(const WhatIfWorld& world, const Object& pod, std::string_view ns,
                std::string_view name) {
  if (pod.ns() != ns) return false;
  if (pod.name() == name) return true;
  const GroupSources sources = world.model().sources();
  const PodContext context = context_of(pod, sources);
  if (std::ranges::any_of(context.owners, [&](const Owner& o) { return o.name.name == name; }))
    return true;
  const PodEntry* entry = world.model().find(pod.key());
  const GroupEntry* group = entry == nullptr ? nullptr : world.model().group_with(*entry);
  return group != nullptr && group->reading.object.name == name;
}

base::Status evict_named(const std::string& text, const std::string& default_ns,
                         WhatIfWorld& world) {
  const size_t slash = text.find('/');
  const std::string ns = slash == std::string::npos ? default_ns : text.substr(0, slash);
  const std::string name = slash == std::string::npos ? text : text.substr(slash + 1);
  std::vector<std::string> keys;
  for (const auto& [key, pod] : world.pods()) {
    if (!world.node_of(key).empty() && is_or_owns(world, pod, ns, name)) keys.push_back(key);
  }
  if (keys.empty())
    return base::error(Code::kNotFound,
                       "--evict: namespace \"{}\" has no pod with a place, and no group or owner "
                       "of such, of the name \"{}\"",
                       ns, name);
  for (const std::string& key : keys) world.evict(key, "Asked", "--evict " + text);
  return {};
}

bool stays_on_its_node(const Object& pod) {
  if (!pod.annotation("kubernetes.io/config.mirror").empty()) return true;
  return std::ranges::any_of(pod.metadata()["ownerReferences"].items(), [](const Value& owner) {
    const std::string_view kind = owner["kind"].as_string();
    return owner["controller"].as_bool() && (kind == "DaemonSet" || kind == "Node");
  });
}

base::Status drain(const std::string& name, WhatIfWorld& world) {
  const auto found = world.nodes().find(name);
  if (found == world.nodes().end())
    return base::error(Code::kNotFound, "--drain: there is no node \"{}\": name one that exists",
                       name);
  Value node = found->second.json();
  node.ref("spec").set("unschedulable", true);
  world.put(Object(std::move(node)));
  std::vector<std::string> keys;
  for (const auto& [key, pod] : world.pods()) {
    if (world.node_of(key) == name && !stays_on_its_node(pod)) keys.push_back(key);
  }
  for (const std::string& key : keys) world.evict(key, "Asked", "--drain " + name);
  return {};
}

}  // namespace

base::Result<AddNodes> parse_add_nodes(std::string_view text) {
  AddNodes out;
  const auto wrong = [&](std::string_view what) {
    return base::error(Code::kInvalid,
                       "--add-nodes {}: {}: write it as 2, 2:NODE or 2:model=H200,gpus=8", text,
                       what);
  };
  const size_t colon = text.find(':');
  const auto count = number(text.substr(0, colon), 1, kNodesMax);
  if (!count) return wrong(fmt::format("the number of nodes is not one from 1 to {}", kNodesMax));
  out.count = *count;
  if (colon == std::string_view::npos) return out;
  const std::string_view rest = text.substr(colon + 1);
  if (rest.empty()) return wrong("nothing stands behind the colon");
  if (rest.find('=') == std::string_view::npos) {
    out.from = rest;
    return out;
  }
  for (const std::string_view item : split(rest, ',')) {
    const size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
    if (key == "model" && !value.empty()) {
      out.model = value;
    } else if (key == "gpus") {
      const auto gpus = number(value, 1, kGpusMax);
      if (!gpus) return wrong(fmt::format("gpus is not a number from 1 to {}", kGpusMax));
      out.gpus = *gpus;
    } else {
      return wrong(fmt::format("\"{}\" says nothing", item));
    }
  }
  if (out.model.empty()) return wrong("model is missing");
  return out;
}

base::Result<SetAmounts> parse_set_amounts(std::string_view text) {
  const auto wrong = [&] {
    return base::error(Code::kInvalid,
                       "--set-quota {}: write it as QUEUE=gpu:8 or "
                       "QUEUE=gpu:8,cpu:64",
                       text);
  };
  SetAmounts out;
  const size_t equals = text.find('=');
  out.queue = text.substr(0, equals);
  if (equals == std::string_view::npos || out.queue.empty()) return wrong();
  for (const std::string_view item : split(text.substr(equals + 1), ',')) {
    const size_t colon = item.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == item.size()) return wrong();
    out.amounts.emplace_back(item.substr(0, colon), item.substr(colon + 1));
  }
  return out;
}

base::Status apply(const Changes& changes, WhatIfWorld& world, std::vector<std::string>& notes) {
  for (const AddNodes& each : changes.add_nodes) TS_TRY_STATUS(add_nodes(each, world, notes));
  for (const SetAmounts& each : changes.quotas) TS_TRY_STATUS(set_quota(each, world));
  for (const std::string& each : changes.evict) TS_TRY_STATUS(evict_named(each, changes.ns, world));
  for (const std::string& each : changes.drain) TS_TRY_STATUS(drain(each, world));
  return {};
}

}  // namespace tessera::scheduler
