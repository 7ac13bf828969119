#include "sim/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "gpu/catalog.h"
#include "gpu/mig.h"
#include "gpu/mig_name.h"
#include "json/yaml.h"
#include "kube/quantity.h"
#include "kube/validate_names.h"

namespace tessera::sim {
namespace {

using base::Code;
using base::error;
using json::Value;

constexpr std::string_view kGpu = "nvidia.com/gpu";

// FNV-1a, for device ids that stay the same for the same node and index.
uint64_t digest(std::string_view text, uint64_t seed) {
  uint64_t h = 0xcbf29ce484222325ULL ^ (seed * 0x9e3779b97f4a7c15ULL);
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h ^ (h >> 29);
}

std::string device_uuid(std::string_view node, int gpu, int instance) {
  const uint64_t a = digest(node, static_cast<uint64_t>(gpu * 64 + instance + 1));
  const uint64_t b = digest(node, a);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xffff,
                     b >> 48, b & 0xffffffffffffULL);
}

// Reads one group of equal nodes.
class GroupReader {
 public:
  GroupReader(const Value& group, std::string path) : group_(group), path_(std::move(path)) {}

  base::Result<FleetNode> read() {
    FleetNode node;
    TS_TRY_STATUS(keys());
    TS_TRY(node.name, text("name"));
    TS_TRY_STATUS(hardware(node));
    TS_TRY_STATUS(sizes(node));
    TS_TRY_STATUS(labels(node));
    TS_TRY_STATUS(taints(node));
    TS_TRY(mig_, mig_layouts(node));
    TS_TRY(const int64_t replicas, integer("replicas", 1, 1, 64));
    node.replicas = static_cast<int>(replicas);
    if (replicas > 1 && node.model == nullptr)
      return bad("replicas", "needs a model; add model: H200");
    if (replicas > 1 && !mig_.empty())
      return bad("replicas", "cannot stand beside mig; leave one out");
    return node;
  }
  base::Result<int64_t> count() { return integer("count", 1, 1, kFleetNodesMax); }

  // The devices of one node of the group.
  void add_devices(FleetNode& node) const {
    for (int gpu = 0; gpu < node.gpus; ++gpu) {
      const std::string uuid = "GPU-" + device_uuid(node.name, gpu, 0);
      const auto cut = mig_.find(gpu);
      if (cut != mig_.end()) {
        int instance = 0;
        for (const std::string& resource : cut->second) {
          node.devices.push_back({"MIG-" + device_uuid(node.name, gpu, ++instance), resource, gpu});
        }
      } else if (node.replicas > 1) {
        for (int r = 0; r < node.replicas; ++r) {
          node.devices.push_back({fmt::format("{}::{}", uuid, r), "nvidia.com/gpu.shared", gpu});
        }
      } else {
        const bool amd = node.model->vendor == gpu::Vendor::kAmd;
        node.devices.push_back({uuid, amd ? "amd.com/gpu" : std::string(kGpu), gpu});
      }
    }
  }

 private:
  template <class... Args>
  tl::unexpected<base::Error> bad(std::string_view key, fmt::format_string<Args...> format,
                                  Args&&... args) const {
    return error(Code::kBadRequest, "{}.{}: {}", path_, key,
                 fmt::format(format, std::forward<Args>(args)...));
  }

  base::Status keys() const {
    static const std::set<std::string_view> known = {"name",     "count",  "model", "gpus",
                                                     "cpu",      "memory", "pods",  "mig",
                                                     "replicas", "labels", "taints"};
    if (!group_.is_object()) return error(Code::kBadRequest, "{}: must be a mapping", path_);
    for (const json::Member& member : group_.members()) {
      if (!known.contains(member.name())) {
        return bad(member.name(), "no such key; keys are {}", fmt::join(known, ", "));
      }
    }
    return {};
  }

  base::Result<std::string> text(std::string_view key) const {
    const Value& v = group_[key];
    if (!v.is_string() || v.as_string().empty()) return bad(key, "must be a name");
    if (auto problems = kube::check_dns1123_label(v.as_string()); !problems.empty()) {
      return bad(key, "\"{}\" is no node name: {}", v.as_string().substr(0, 80), problems[0]);
    }
    return v.str();
  }

  base::Result<int64_t> integer(std::string_view key, int64_t otherwise, int64_t low,
                                int64_t high) const {
    const Value& v = group_[key];
    if (v.is_null()) return otherwise;
    if (!v.is_int() || v.as_int() < low || v.as_int() > high) {
      return bad(key, "must be a whole number from {} to {}, not {}", low, high,
                 v.dump().substr(0, 40));
    }
    return v.as_int();
  }

  base::Result<kube::Quantity> quantity(std::string_view key, std::string_view otherwise) const {
    const Value& v = group_[key];
    const std::string raw = v.is_null()     ? std::string(otherwise)
                            : v.is_string() ? v.str()
                                            : v.dump();
    auto parsed = kube::Quantity::parse(raw);
    if (!parsed)
      return bad(key, "\"{}\" is no quantity; write 64, 1500m or 512Gi", raw.substr(0, 40));
    if (parsed->sign() <= 0) return bad(key, "must be more than 0, not {}", raw);
    return *parsed;
  }

  base::Status hardware(FleetNode& node) const {
    if (group_.contains("model")) {
      auto model = gpu::model_named(group_["model"].as_string());
      if (!model) return bad("model", "{}", model.error().message);
      node.model = *model;
    }
    const int usual = node.model != nullptr ? node.model->server().gpus : 0;
    TS_TRY(const int64_t gpus, integer("gpus", usual, node.model != nullptr ? 1 : 0, 16));
    if (gpus > 0 && node.model == nullptr) return bad("gpus", "needs a model; add model: H200");
    node.gpus = static_cast<int>(gpus);
    return {};
  }

  base::Status sizes(FleetNode& node) const {
    const int gpus = std::max(node.gpus, 1);
    TS_TRY(const kube::Quantity cpu,
           quantity("cpu", node.gpus > 0 ? fmt::format("{}", gpus * 16) : "32"));
    TS_TRY(const kube::Quantity memory, quantity("memory", fmt::format("{}Gi", gpus * 128)));
    node.cpu_milli = cpu.milli_value();
    node.memory_bytes = memory.value();
    if (node.cpu_milli > 4'096'000) return bad("cpu", "is more than 4096 cores");
    if (node.memory_bytes > (int64_t{1} << 50)) return bad("memory", "is more than 1Pi");
    TS_TRY(node.pods_max, integer("pods", 110, 1, 10'000));
    return {};
  }

  base::Status labels(FleetNode& node) const {
    const Value& v = group_["labels"];
    if (!v.is_null() && !v.is_object()) return bad("labels", "must be a mapping of names to text");
    for (const json::Member& member : v.members()) {
      const std::string at = fmt::format("labels.{}", member.name());
      auto problems = kube::check_qualified_name(member.name());
      if (problems.empty() && !member.value.is_string())
        problems = {"the value must be text; quote it"};
      if (problems.empty()) problems = kube::check_label_value(member.value.as_string());
      if (!problems.empty()) return bad(at, "{}", problems[0]);
      node.labels.emplace(member.name(), member.value.str());
    }
    return {};
  }

  base::Status taints(FleetNode& node) const {
    const Value& v = group_["taints"];
    if (!v.is_null() && !v.is_array()) return bad("taints", "must be a list");
    for (size_t i = 0; i < v.size(); ++i) {
      const Value& taint = v.at(i);
      const std::string_view effect = taint["effect"].as_string();
      for (const json::Member& member : taint.members()) {
        const std::string_view key = member.name();
        if (key == "key" || key == "value" || key == "effect") continue;
        return bad(fmt::format("taints[{}].{}", i, key),
                   "no such key; keys are key, value, effect");
      }
      if (auto problems = kube::check_qualified_name(taint["key"].as_string()); !problems.empty()) {
        return bad(fmt::format("taints[{}].key", i), "{}", problems[0]);
      }
      const Value& value = taint["value"];
      auto problems = kube::check_label_value(value.as_string());
      if (!value.is_null() && !value.is_string()) problems = {"must be text; quote it"};
      if (!problems.empty()) return bad(fmt::format("taints[{}].value", i), "{}", problems[0]);
      if (effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute") {
        return bad(fmt::format("taints[{}].effect", i),
                   "must be NoSchedule, PreferNoSchedule or NoExecute");
      }
    }
    node.taints = v;
    return {};
  }

  using Layouts = std::map<int, std::vector<std::string>>;  // GPU -> resource of each instance

  base::Result<Layouts> mig_layouts(const FleetNode& node) const {
    Layouts out;
    const Value& v = group_["mig"];
    if (v.is_null()) return out;
    if (v.empty())
      return bad("mig", "must map profiles to counts, or list GPUs with their profiles");
    if (node.model == nullptr || node.model->mig == nullptr) {
      return bad("mig", "{} cannot be cut into MIG instances",
                 node.model != nullptr ? node.model->name : "a node without a GPU model");
    }
    if (v.is_object()) {
      for (int gpu = 0; gpu < node.gpus; ++gpu) {
        TS_TRY(out[gpu], mig_layout(node, v, "mig"));
      }
      return out;
    }
    for (size_t i = 0; i < v.size(); ++i) {
      const std::string at = fmt::format("mig[{}]", i);
      if (v.at(i)["gpus"].empty()) return bad(at + ".gpus", "must list the GPUs that are cut so");
      for (const Value& gpu : v.at(i)["gpus"].items()) {
        if (!gpu.is_int() || gpu.as_int() < 0 || gpu.as_int() >= node.gpus) {
          return bad(at + ".gpus", "{} is no GPU of this node; they are 0 to {}", gpu.dump(),
                     node.gpus - 1);
        }
        TS_TRY(out[static_cast<int>(gpu.as_int())],
               mig_layout(node, v.at(i)["profiles"], at + ".profiles"));
      }
    }
    return out;
  }

  base::Result<std::vector<std::string>> mig_layout(const FleetNode& node, const Value& profiles,
                                                    std::string_view at) const {
    if (profiles.empty()) return bad(at, "must map profiles to counts, as {{1g.18gb: 7}}");
    std::vector<gpu::ProfileCount> wanted;
    std::vector<std::string> resources;
    for (const json::Member& member : profiles.members()) {
      const int64_t n = member.value.as_int(-1);
      if (n < 0 || n > 8) return bad(at, "{}: the count must be 0 to 8", member.name());
      auto profile = gpu::parse_profile_name(member.name());
      if (!profile) return bad(at, "{}", profile.error().message);
      wanted.push_back({std::string(member.name()), static_cast<int>(n)});
      for (int64_t k = 0; k < n; ++k) resources.push_back(gpu::resource_name(*profile));
    }
    auto layout = gpu::fit(*node.model, wanted);
    if (!layout) return bad(at, "{}", layout.error().message);
    return resources;
  }

  const Value& group_;
  std::string path_;
  Layouts mig_;
};

base::Status read_rack(const Value& rack, const std::string& path, Fleet& fleet,
                       std::map<std::string, int>& next_index) {
  for (const json::Member& member : rack.members()) {
    const std::string_view key = member.name();
    if (key != "name" && key != "zone" && key != "block" && key != "nodes") {
      return error(Code::kBadRequest, "{}.{}: no such key; keys are name, zone, block, nodes", path,
                   key);
    }
  }
  for (const char* key : {"zone", "block"}) {
    const Value& value = rack[key];
    if (value.is_null()) continue;
    if (!value.is_string() || value.as_string().empty() ||
        !kube::check_label_value(value.as_string()).empty()) {
      return error(Code::kBadRequest, "{}.{}: must be a name, as z1", path, key);
    }
  }
  const std::string name = rack["name"].str();
  if (auto problems = kube::check_label_value(name); name.empty() || !problems.empty()) {
    return error(Code::kBadRequest, "{}.name: must name the rack, as r1", path);
  }
  if (!rack["nodes"].is_array() || rack["nodes"].empty())
    return error(Code::kBadRequest, "{}.nodes: must list nodes", path);
  for (size_t i = 0; i < rack["nodes"].size(); ++i) {
    const std::string at = fmt::format("{}.nodes[{}]", path, i);
    GroupReader reader(rack["nodes"].at(i), at);
    TS_TRY(FleetNode node, reader.read());
    TS_TRY(const int64_t count, reader.count());
    if (static_cast<int64_t>(fleet.nodes.size()) + count > kFleetNodesMax) {
      return error(Code::kBadRequest, "{}.count: the fleet would have more than {} nodes", at,
                   kFleetNodesMax);
    }
    node.rack = name;
    node.labels.emplace("tessera.dev/rack", name);
    if (!rack["zone"].is_null())
      node.labels.emplace("topology.kubernetes.io/zone", rack["zone"].str());
    if (!rack["block"].is_null()) node.labels.emplace("tessera.dev/block", rack["block"].str());
    const std::string prefix = node.name;
    for (int64_t k = 0; k < count; ++k) {
      FleetNode one = node;
      one.name = fmt::format("{}-{}", prefix, next_index[prefix]++);
      reader.add_devices(one);
      fleet.nodes.push_back(std::move(one));
    }
  }
  return {};
}

void add_gpu_labels(const FleetNode& node, Value& labels) {
  const gpu::Model& model = *node.model;
  const gpu::Board& board = model.boards.front();
  const std::string product(board.labels.empty() ? model.name : board.labels.front());
  const bool amd = model.vendor == gpu::Vendor::kAmd;
  if (amd) {
    labels.set("amd.com/gpu.product-name", product);
    labels.set("amd.com/gpu.vram", fmt::format("{}G", model.memory.value / 1024));
    return;
  }
  bool cut = false;
  for (const Device& device : node.devices) cut |= device.resource.starts_with("nvidia.com/mig-");
  labels.set("nvidia.com/gpu.present", "true");
  labels.set("nvidia.com/gpu.product", product);
  labels.set("nvidia.com/gpu.count", fmt::format("{}", node.gpus));
  labels.set("nvidia.com/gpu.memory", fmt::format("{}", model.memory.value));
  labels.set("nvidia.com/gpu.family", std::string(model.family));
  labels.set("nvidia.com/gpu.compute.major", fmt::format("{}", model.capability_major));
  labels.set("nvidia.com/gpu.compute.minor", fmt::format("{}", model.capability_minor));
  labels.set("nvidia.com/gpu.replicas", fmt::format("{}", cut ? 0 : node.replicas));
  labels.set("nvidia.com/gpu.sharing-strategy", node.replicas > 1 ? "time-slicing" : "none");
  labels.set("nvidia.com/mig.capable", model.mig != nullptr ? "true" : "false");
  if (cut) labels.set("nvidia.com/mig.strategy", "mixed");
}

// Which physical GPUs are whole, where that is not simply all: "2,3" beside two that are cut.
std::string whole_gpus(const FleetNode& node) {
  std::string out;
  int count = 0;
  for (const Device& device : node.devices) {
    if (device.resource != kGpu && device.resource != "amd.com/gpu") continue;
    out += fmt::format("{}{}", out.empty() ? "" : ",", device.gpu);
    ++count;
  }
  return count == node.gpus ? "" : out;
}

Value condition(std::string_view type, std::string_view status, std::string_view reason,
                std::string_view message, const std::string& now) {
  return Value::object({{"type", type},
                        {"status", status},
                        {"reason", reason},
                        {"message", message},
                        {"lastHeartbeatTime", now},
                        {"lastTransitionTime", now}});
}

Value conditions(const std::string& now) {
  return Value::array(
      {condition("MemoryPressure", "False", "KubeletHasSufficientMemory",
                 "kubelet has sufficient memory available", now),
       condition("DiskPressure", "False", "KubeletHasNoDiskPressure",
                 "kubelet has no disk pressure", now),
       condition("PIDPressure", "False", "KubeletHasSufficientPID",
                 "kubelet has sufficient PID available", now),
       condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", now)});
}

}  // namespace

int Fleet::gpus() const {
  int total = 0;
  for (const FleetNode& node : nodes) total += node.gpus;
  return total;
}

base::Result<Fleet> parse_fleet(std::string_view yaml) {
  TS_TRY(const Value root, json::parse_yaml(yaml));
  if (!root.is_object())
    return error(Code::kBadRequest, "a fleet is a mapping with name and racks");
  for (const json::Member& member : root.members()) {
    if (member.name() != "name" && member.name() != "racks") {
      return error(Code::kBadRequest, "{}: no such key; keys are name, racks", member.name());
    }
  }
  if (!root["racks"].is_array() || root["racks"].empty())
    return error(Code::kBadRequest, "racks: must list racks with nodes");
  Fleet fleet;
  if (root.contains("name") && !root["name"].is_string()) {
    return error(Code::kBadRequest, "name: must be text; quote it");
  }
  fleet.name = root.contains("name") ? root["name"].str() : "fleet";
  std::map<std::string, int> next_index;
  for (size_t i = 0; i < root["racks"].size(); ++i) {
    TS_TRY_STATUS(read_rack(root["racks"].at(i), fmt::format("racks[{}]", i), fleet, next_index));
  }
  return fleet;
}

Fleet default_fleet(int nodes) {
  // Of every rack of 8: four H200; two A100, one of them cut; one L40S with time-slicing; one CPU node.
  std::string yaml = "name: default\nracks:\n";
  for (int done = 0; done < nodes; done += 8) {
    const int left = std::min(8, nodes - done);
    yaml += fmt::format("  - name: r{}\n    zone: z{}\n    nodes:\n", done / 8 + 1, done / 24 + 1);
    const int h200 = std::max(1, left / 2);
    yaml += fmt::format("      - {{name: h200, count: {}, model: H200, cpu: 192, memory: 2Ti}}\n",
                        h200);
    const std::string_view rest[] = {
        "      - {name: a100, model: A100-80, cpu: 128, memory: 1Ti}\n",
        "      - {name: a100-mig, model: A100-80, cpu: 128, memory: 1Ti, mig: {1g.10gb: 2, "
        "2g.20gb: 1, 3g.40gb: 1}}\n",
        "      - {name: l40s, model: L40S, gpus: 4, cpu: 96, memory: 768Gi, replicas: 4}\n",
        "      - {name: cpu, cpu: 64, memory: 512Gi}\n"};
    for (int i = 0; i < left - h200; ++i) yaml += rest[i];
  }
  auto fleet = parse_fleet(yaml);
  return fleet ? std::move(*fleet) : Fleet{};
}

Value node_resources(const FleetNode& node,
                     const std::map<std::string, int64_t, std::less<>>& devices) {
  Value out =
      Value::object({{"cpu", node.cpu_milli % 1000 == 0 ? fmt::format("{}", node.cpu_milli / 1000)
                                                        : fmt::format("{}m", node.cpu_milli)},
                     {"memory", fmt::format("{}Ki", node.memory_bytes / 1024)},
                     {"ephemeral-storage", "1Ti"},
                     {"pods", fmt::format("{}", node.pods_max)}});
  for (const auto& [resource, count] : devices) out.set(resource, fmt::format("{}", count));
  return out;
}

Value node_object(const FleetNode& node, base::Time now) {
  Value labels = Value::object({{"kubernetes.io/hostname", node.name},
                                {"kubernetes.io/os", "linux"},
                                {"kubernetes.io/arch", "amd64"}});
  for (const auto& [key, value] : node.labels) labels.set(key, value);
  if (node.model != nullptr) add_gpu_labels(node, labels);
  if (!node.trace_model.empty()) labels.set("nvidia.com/gpu.product", node.trace_model);
  const DevicePool pool(node.devices, node.gpus);
  const Value resources = node_resources(node, pool.capacity());
  Value meta = Value::object({{"name", node.name}, {"labels", std::move(labels)}});
  if (const std::string whole = whole_gpus(node); !whole.empty()) {
    meta.ref("annotations", "tessera.dev/gpu-indexes") = whole;
  }
  Value spec = Value::object();
  if (!node.taints.empty()) spec.set("taints", node.taints);
  return Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Node"},
       {"metadata", std::move(meta)},
       {"spec", std::move(spec)},
       {"status",
        Value::object({{"capacity", resources},
                       {"allocatable", resources},
                       {"conditions", conditions(base::to_rfc3339(now))},
                       {"addresses", Value::array({Value::object(
                                         {{"type", "Hostname"}, {"address", node.name}})})},
                       {"nodeInfo", Value::object({{"kubeletVersion", "v1.36.3-tessera-sim"},
                                                   {"architecture", "amd64"},
                                                   {"operatingSystem", "linux"},
                                                   {"osImage", "simulated"},
                                                   {"kernelVersion", "simulated"},
                                                   {"containerRuntimeVersion", "simulated://1"},
                                                   {"bootID", ""},
                                                   {"machineID", ""},
                                                   {"systemUUID", ""},
                                                   {"kubeProxyVersion", ""}})}})}});
}

}  // namespace tessera::sim
