#include "scheduler/translate.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "gpu/catalog.h"
#include "gpu/sharing.h"
#include "kube/pod_resources.h"
#include "scheduler/translate_rules.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using base::error;

constexpr std::string_view kGpuResources[] = {"nvidia.com/gpu", "amd.com/gpu"};

bool is_gpu_resource(std::string_view name) {
  return std::ranges::find(kGpuResources, name) != std::end(kGpuResources);
}

const std::string* find(const kube::StringMap& map, std::string_view key) {
  const auto it = map.find(key);
  return it != map.end() ? &it->second : nullptr;
}

std::string_view text_at(const kube::StringMap& map, std::string_view key) {
  const std::string* found = find(map, key);
  return found != nullptr ? std::string_view(*found) : std::string_view();
}

std::vector<int> parse_indexes(std::string_view text) {
  std::vector<int> out;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int index = -1;
    const auto [next, ec] = std::from_chars(at, end, index);
    if (ec != std::errc() || index < 0) break;
    out.push_back(index);
    at = next < end ? next + 1 : next;
  }
  return out;
}

base::Result<int64_t> integer(std::string_view text, std::string_view key, int64_t low,
                              int64_t high) {
  int64_t out = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (ec != std::errc() || end != text.data() + text.size() || out < low || out > high) {
    return error(Code::kInvalid, "annotation {}: \"{}\" is not a whole number from {} to {}", key,
                 text.substr(0, 40), low, high);
  }
  return out;
}

// One name for one product, whatever a label or a user calls it; names outside the catalogue stay as they are.
core::ModelId model_id(std::string_view text, core::Interner& names) {
  const gpu::Model* model = gpu::find_model(text);
  return names.model(model != nullptr ? model->name : text);
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

struct Share {
  int64_t count = 1;
  std::optional<int32_t> milli;
  int64_t memory_mib = 0;
};

// The share that the annotations ask for; nothing where there is none.
base::Result<std::optional<Share>> share_of(const kube::StringMap& annotations) {
  const std::string* milli = find(annotations, "tessera.dev/gpu-milli");
  const std::string* fraction = find(annotations, "gpu-fraction");
  const std::string* memory = find(annotations, "gpu-memory");
  const int asked = (milli != nullptr) + (fraction != nullptr) + (memory != nullptr);
  if (asked == 0) return std::optional<Share>();
  if (asked > 1) {
    return error(Code::kInvalid,
                 "annotations tessera.dev/gpu-milli, gpu-fraction and gpu-memory exclude each "
                 "other; keep one");
  }
  Share share;
  if (milli != nullptr) {
    TS_TRY(const int64_t value, integer(*milli, "tessera.dev/gpu-milli", 1, core::kMilliPerGpu));
    share.milli = static_cast<int32_t>(value);
  } else if (fraction != nullptr) {
    auto value = gpu::parse_gpu_fraction(*fraction);
    if (!value) return error(value.error().in("annotation gpu-fraction"));
    share.milli = static_cast<int32_t>(value->value);
  } else {
    auto value = gpu::parse_gpu_memory(*memory);
    if (!value) return error(value.error().in("annotation gpu-memory"));
    share.memory_mib = value->value;
  }
  for (const char* key : {"tessera.dev/gpu-count", "gpu-fraction-num-devices"}) {
    if (const std::string* count = find(annotations, key)) {
      TS_TRY(share.count, integer(*count, key, 1, core::kGpusPerNodeMax));
    }
  }
  return std::optional<Share>(share);
}

void add_extended(core::Shape& shape, core::ResourceId id, int64_t amount) {
  if (amount > 0) shape.extended.push_back({id, amount});
}

// Amounts of the containers; GPUs of a second vendor are an error, and then not counted.
base::Status translate_amounts(const kube::Pod& pod, core::Shape& shape, core::Interner& names) {
  base::Status out;
  for (const auto& [name, amount] : kube::pod_requests(pod)) {
    if (name == "cpu") {
      shape.cpu_milli = std::max<int64_t>(amount.milli_value(), 0);
    } else if (name == "memory") {
      shape.memory_bytes = std::max<int64_t>(amount.value(), 0);
    } else if (name == "ephemeral-storage") {
      shape.storage_bytes = std::max<int64_t>(amount.value(), 0);
    } else if (is_gpu_resource(name)) {
      if (amount.is_zero()) continue;
      if (shape.gpu.resource.valid()) {
        out = error(Code::kInvalid, "a pod cannot ask for GPUs of two vendors; ask for one");
        continue;
      }
      shape.gpu.count = amount.value();
      shape.gpu.resource = names.resource(name);
    } else {
      add_extended(shape, names.resource(name), amount.value());
    }
  }
  std::ranges::sort(shape.extended, {}, &core::ResourceAmount::id);
  return out;
}

base::Status translate_share(const kube::Pod& pod, core::Shape& shape) {
  TS_TRY(const std::optional<Share> share, share_of(pod.meta.annotations));
  if (!share) return {};
  if (shape.gpu.resource.valid()) {
    return error(
        Code::kInvalid,
        "the pod asks for whole GPUs and, by annotation, for a share of one; keep one of them");
  }
  shape.gpu.count = share->count;
  shape.gpu.milli = share->milli.value_or(core::kMilliPerGpu);
  shape.gpu.memory_mib = share->memory_mib;
  return {};
}

void translate_models(const kube::Pod& pod, core::Shape& shape, core::Interner& names) {
  const std::string* wanted = find(pod.meta.annotations, "tessera.dev/gpu-model");
  if (wanted == nullptr) return;
  std::string_view rest = *wanted;
  while (!rest.empty()) {
    const size_t cut = rest.find('|');
    const std::string_view one = trimmed(rest.substr(0, cut));
    if (!one.empty()) shape.models.push_back(model_id(one, names));
    rest = cut == std::string_view::npos ? std::string_view() : rest.substr(cut + 1);
  }
  std::ranges::sort(shape.models);
  const auto twice = std::ranges::unique(shape.models);
  shape.models.erase(twice.begin(), twice.end());
}

// Whole devices of the node, their model and which of them are sick.
void translate_devices(const kube::Node& node, NodeView& view, core::Interner& names) {
  core::NodeSpec& spec = view.spec;
  for (const std::string_view resource : kGpuResources) {
    const int64_t capacity = kube::amount_of(node.capacity, resource).value();
    if (capacity <= 0) continue;
    spec.gpu_resource = names.resource(resource);
    const int64_t allocatable = kube::amount_of(node.allocatable, resource).value();
    view.gpu_index = parse_indexes(text_at(node.meta.annotations, "tessera.dev/gpu-indexes"));
    const bool listed = static_cast<int64_t>(view.gpu_index.size()) == capacity;
    const std::vector<int> sick =
        parse_indexes(text_at(node.meta.annotations, "tessera.dev/unhealthy-gpus"));
    spec.gpus = static_cast<int32_t>(std::min<int64_t>(capacity, core::kGpusPerNodeMax));
    view.gpu_index.resize(static_cast<size_t>(spec.gpus));
    for (int i = 0; i < spec.gpus; ++i) {
      auto& index = view.gpu_index[static_cast<size_t>(i)];
      if (!listed) index = i;
      if (std::ranges::find(sick, index) != sick.end()) spec.gpus_unhealthy |= uint32_t{1} << i;
    }
    // Fewer are allocatable than the named ones explain: without a word on which, it is the last ones.
    const auto usable = static_cast<int>(std::clamp<int64_t>(allocatable, 0, spec.gpus));
    for (int i = spec.gpus - 1; i >= 0; --i) {
      if (spec.gpus - std::popcount(spec.gpus_unhealthy) <= usable) break;
      spec.gpus_unhealthy |= uint32_t{1} << i;
    }
    break;
  }
  const std::string* product = find(node.meta.labels, "nvidia.com/gpu.product");
  if (product == nullptr) product = find(node.meta.labels, "amd.com/gpu.product-name");
  if (product != nullptr) spec.model = model_id(*product, names);
  if (const std::string* memory = find(node.meta.labels, "nvidia.com/gpu.memory")) {
    auto mib = integer(*memory, "nvidia.com/gpu.memory", 1, int64_t{1} << 24);
    if (mib) spec.gpu_memory_mib = *mib;
  }
  if (product != nullptr) {
    const gpu::Model* model = gpu::find_model(*product);
    if (model != nullptr) spec.gpu_memory_mib = model->usable_memory().value;
  }
}

}  // namespace

NodeView translate_node(const kube::Node& node, core::Interner& names) {
  NodeView view;
  core::NodeSpec& spec = view.spec;
  spec.name = names.string(node.meta.name);
  spec.unschedulable = node.unschedulable;
  spec.ready = node.ready();
  translate_devices(node, view, names);
  for (const auto& [name, amount] : node.allocatable) {
    if (name == "cpu") {
      spec.cpu_milli = amount.milli_value();
    } else if (name == "memory") {
      spec.memory_bytes = amount.value();
    } else if (name == "ephemeral-storage") {
      spec.storage_bytes = amount.value();
    } else if (name == "pods") {
      spec.pods_max = amount.value();
    } else if (!is_gpu_resource(name)) {
      spec.extended.push_back({names.resource(name), std::max<int64_t>(amount.value(), 0)});
    }
  }
  std::ranges::sort(spec.extended, {}, &core::ResourceAmount::id);
  spec.labels = translate_labels(node.meta.labels, names);
  const std::string_view replicas = text_at(node.meta.labels, "nvidia.com/gpu.replicas");
  if (const auto count = integer(replicas, "", 1, 1000)) view.replicas_per_gpu = *count;
  for (const kube::Taint& taint : node.taints) spec.taints.push_back(translate_taint(taint, names));
  return view;
}

base::Result<core::PodRequest> translate_pod(const kube::Pod& pod, core::Interner& names) {
  core::PodRequest request;
  request.pod_namespace = names.string(pod.meta.ns);
  request.labels = translate_labels(pod.meta.labels, names);
  request.priority = pod.priority;
  TS_TRY_STATUS(translate_amounts(pod, request.shape, names));
  TS_TRY_STATUS(translate_share(pod, request.shape));
  translate_models(pod, request.shape, names);
  TS_TRY_STATUS(translate_rules(pod, request, names));
  TS_TRY_STATUS(core::check(request));
  return request;
}

core::PodRequest translate_bound_pod(const kube::Pod& pod, core::Interner& names) {
  if (auto full = translate_pod(pod, names)) return std::move(*full);
  core::PodRequest request;
  request.pod_namespace = names.string(pod.meta.ns);
  request.labels = translate_labels(pod.meta.labels, names);
  request.priority = pod.priority;
  // Both may stop early; what they have read by then counts.
  (void)translate_amounts(pod, request.shape, names);
  (void)translate_share(pod, request.shape);
  return request;
}

core::Placement placement_of(const kube::Object& pod, const NodeView& node, core::NodeId id,
                             const core::PodRequest& request) {
  const core::GpuAsk& ask = request.shape.gpu;
  core::Placement out{id, 0, ask.memory_mib > 0 ? 0 : ask.milli};  // 0: as the node's model says
  if (ask.count == 0) return out;
  // How much is what the pod asks for, never what an annotation says now: its owner can edit those.
  for (const int gpu : parse_indexes(pod.annotation("tessera.dev/gpus"))) {
    const auto it = std::ranges::find(node.gpu_index, gpu);
    if (it != node.gpu_index.end()) out.devices |= uint32_t{1} << (it - node.gpu_index.begin());
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> binding_annotations(
    const core::Placement& placement, const NodeView& node, const core::PodRequest& request) {
  std::vector<std::pair<std::string, std::string>> out;
  if (placement.devices == 0) return out;
  std::string gpus;
  int count = 0;
  for (size_t i = 0; i < node.gpu_index.size(); ++i) {
    if ((placement.devices >> i & 1) == 0) continue;
    gpus += fmt::format("{}{}", gpus.empty() ? "" : ",", node.gpu_index[i]);
    ++count;
  }
  out.emplace_back("tessera.dev/gpus", gpus);
  // Whole GPUs asked for by the extended resource are the device plugin's; all else is a share.
  if (!request.shape.gpu.resource.valid()) {
    out.emplace_back("tessera.dev/share-milli", fmt::format("{}", placement.milli));
    out.emplace_back("tessera.dev/share-gpus", fmt::format("{}", count));
  }
  return out;
}

}  // namespace tessera::scheduler
