#include "scheduler/core/cluster.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace tessera::scheduler::core {
namespace {

constexpr uint64_t kNeverChanged = std::numeric_limits<uint64_t>::max();
constexpr size_t kLogSizeMin = 4096;

int class_index(uint32_t class_bit) {
  return __builtin_ctz(class_bit);
}

}  // namespace

const Cluster::NodeState& Cluster::state(NodeId id) const {
  TS_CHECK(id.valid() && slot(id) < states_.size(), "no node slot {}", id.value);
  return states_[slot(id)];
}

Cluster::NodeState& Cluster::state(NodeId id) {
  return const_cast<NodeState&>(std::as_const(*this).state(id));
}

const PlacedPod& Cluster::pod(PodId id) const {
  TS_CHECK(id.valid() && static_cast<size_t>(id.value) < pods_.size(), "no pod slot {}", id.value);
  return pods_[static_cast<size_t>(id.value)];
}

bool Cluster::present(NodeId id) const {
  return id.valid() && slot(id) < states_.size() && states_[slot(id)].present;
}

NodeId Cluster::add_node(NodeSpec spec) {
  ++specs_version_;
  NodeId id(static_cast<int32_t>(states_.size()));
  if (!free_nodes_.empty()) {
    id = free_nodes_.back();
    free_nodes_.pop_back();
  } else {
    states_.emplace_back();
    loads_.emplace_back();
    last_change_.push_back(kNeverChanged);
    last_rules_change_.push_back(0);
  }
  NodeState& node = states_[slot(id)];
  node = NodeState();
  node.present = true;
  ++nodes_present_;
  node.spec = std::move(spec);
  TS_CHECK(node.spec.gpus >= 0 && node.spec.gpus <= kGpusPerNodeMax, "{} GPUs", node.spec.gpus);
  refresh(id, true);
  return id;
}

void Cluster::update_node(NodeId id, NodeSpec spec) {
  ++specs_version_;
  NodeState& node = state(id);
  TS_CHECK(node.present, "node slot {} is free", id.value);
  TS_CHECK(spec.gpus >= 0 && spec.gpus <= kGpusPerNodeMax, "{} GPUs", spec.gpus);
  if (node.spec == spec) return;
  bool relabelled = node.spec.labels != spec.labels;
  if (relabelled) {
    for (PodId pod : node.pods) {
      terms_.pod_removed(*this->pod(pod).request, node.spec.labels, names_);
    }
  }
  node.spec = std::move(spec);
  if (relabelled) {
    std::vector<PodId> pods = std::move(node.pods);
    node.pods.clear();  // each_pod() must not see those whose turn has not come
    for (PodId pod : pods) {
      terms_.pod_added(*this->pod(pod).request, node.spec.labels, names_,
                       [this](const auto& visit) { each_pod(visit); });
      node.pods.push_back(pod);
    }
  }
  refresh(id, true);
}

void Cluster::remove_node(NodeId id) {
  ++specs_version_;
  NodeState& node = state(id);
  TS_CHECK(node.present, "node slot {} is free", id.value);
  node.present = false;
  --nodes_present_;
  refresh(id, true);
  if (node.pods.empty()) free_nodes_.push_back(id);
}

PodId Cluster::add_pod(std::shared_ptr<const PodRequest> request, Placement placement) {
  const GpuAsk& gpu = request->shape.gpu;
  if (gpu.count > 0) {
    NodeState& node = state(placement.node);
    if (placement.milli == 0) placement.milli = milli_on(load(placement.node), gpu);
    if (placement.devices == 0) placement.devices = least_used_devices(node, gpu.count);
  }
  PodId id(static_cast<int32_t>(pods_.size()));
  if (free_pods_.empty()) {
    pods_.emplace_back();
  } else {
    id = free_pods_.back();
    free_pods_.pop_back();
  }
  pods_[static_cast<size_t>(id.value)] = {std::move(request), placement, 0};
  attach(id);
  return id;
}

void Cluster::remove_pod(PodId id) {
  TS_CHECK(pod(id).request != nullptr, "pod slot {} is free", id.value);
  detach(id);
  NodeId node = pod(id).placement.node;
  pods_[static_cast<size_t>(id.value)] = {};
  free_pods_.push_back(id);
  if (!state(node).present && state(node).pods.empty()) free_nodes_.push_back(node);
}

void Cluster::restore_pod(PodId id, std::shared_ptr<const PodRequest> request,
                          Placement placement) {
  TS_CHECK(!free_pods_.empty() && free_pods_.back() == id, "pod slot {} was taken", id.value);
  if (const NodeState& node = state(placement.node); !node.present && node.pods.empty()) {
    TS_CHECK(free_nodes_.back() == placement.node, "node slot {} was taken", placement.node.value);
    free_nodes_.pop_back();
  }
  add_pod(std::move(request), placement);
}

void Cluster::update_devices(PodId id, uint32_t devices) {
  Placement& placement = pods_[static_cast<size_t>(id.value)].placement;
  const PodRequest& request = *pod(id).request;
  NodeState& node = state(placement.node);
  charge(node, request, placement, -1);
  placement.devices = devices;
  charge(node, request, placement, 1);
  refresh(placement.node, false);
}

void Cluster::attach(PodId id) {
  PlacedPod& placed = pods_[static_cast<size_t>(id.value)];
  NodeState& node = state(placed.placement.node);
  charge(node, *placed.request, placed.placement, 1);
  terms_.pod_added(*placed.request, node.spec.labels, names_,
                   [this](const auto& visit) { each_pod(visit); });
  placed.index_on_node = static_cast<uint32_t>(node.pods.size());
  node.pods.push_back(id);
  ++pods_present_;
  refresh(placed.placement.node, false);
}

void Cluster::detach(PodId id) {
  PlacedPod& placed = pods_[static_cast<size_t>(id.value)];
  NodeState& node = state(placed.placement.node);
  charge(node, *placed.request, placed.placement, -1);
  terms_.pod_removed(*placed.request, node.spec.labels, names_);
  PodId last = node.pods.back();
  node.pods[placed.index_on_node] = last;
  pods_[static_cast<size_t>(last.value)].index_on_node = placed.index_on_node;
  node.pods.pop_back();
  --pods_present_;
  refresh(placed.placement.node, false);
}

void Cluster::charge(NodeState& node, const PodRequest& request, const Placement& placement,
                     int sign) {
  auto apply = [sign](ExactSum& sum, int64_t amount) {
    sign > 0 ? sum.add(amount) : sum.sub(amount);
  };
  const Shape& shape = request.shape;
  apply(node.cpu_used, shape.cpu_milli);
  apply(node.memory_used, shape.memory_bytes);
  apply(node.storage_used, shape.storage_bytes);
  node.pods_used += sign;
  for (const ResourceAmount& r : shape.extended) {
    auto at = std::find_if(node.extended_used.begin(), node.extended_used.end(),
                           [&](const auto& used) { return used.first == r.id; });
    if (at == node.extended_used.end()) {
      at = node.extended_used.insert(at, {r.id, ExactSum()});
    }
    apply(at->second, r.amount);
  }
  for (uint32_t rest = placement.devices; rest != 0; rest &= rest - 1) {
    int device = __builtin_ctz(rest);
    if (device < kGpusPerNodeMax)
      node.gpu_used[static_cast<size_t>(device)] += sign * placement.milli;
  }
  if (uint32_t bit = class_of(shape.gpu))
    node.class_pods[static_cast<size_t>(class_index(bit))] += sign;
}

uint32_t Cluster::least_used_devices(const NodeState& node, int64_t count) const {
  uint32_t chosen = 0;
  for (int64_t i = 0; i < std::min<int64_t>(count, node.spec.gpus); ++i) {
    int best = -1;
    for (int device = 0; device < node.spec.gpus; ++device) {
      if (chosen >> device & 1) continue;
      if (best < 0 ||
          node.gpu_used[static_cast<size_t>(device)] < node.gpu_used[static_cast<size_t>(best)]) {
        best = device;
      }
    }
    chosen |= uint32_t{1} << best;
  }
  return chosen;
}

void Cluster::refresh(NodeId id, bool rules_changed) {
  const NodeState& node = states_[slot(id)];
  const NodeSpec& spec = node.spec;
  NodeLoad& load = loads_[slot(id)];
  load.cpu_free = node.cpu_used.free_of(spec.cpu_milli);
  load.memory_free = node.memory_used.free_of(spec.memory_bytes);
  load.storage_free = node.storage_used.free_of(spec.storage_bytes);
  load.pods_free = std::max<int64_t>(0, spec.pods_max - node.pods_used);
  load.gpus = static_cast<uint8_t>(spec.gpus);
  load.gpu_state = 0;
  load.gpu_free_total = 0;
  load.gpu_idle = 0;
  for (size_t g = 0; g < kGpusPerNodeMax; ++g) {
    bool usable = g < load.gpus && (spec.gpus_unhealthy >> g & 1) == 0;
    int free = usable ? std::max(0, kMilliPerGpu - node.gpu_used[g]) : 0;
    load.gpu_free[g] = static_cast<int16_t>(free);
    load.gpu_free_total += free;
    load.gpu_state += gpu_state_of(free);
    if (free == kMilliPerGpu) load.gpu_idle |= uint32_t{1} << g;
  }
  load.classes = 0;
  for (size_t c = 0; c < node.class_pods.size(); ++c) {
    if (node.class_pods[c] > 0) load.classes |= uint32_t{1} << c;
  }
  if (rules_changed) {
    load.model = spec.model;
    load.gpu_resource = spec.gpu_resource;
    load.gpu_memory_mib = static_cast<int32_t>(
        std::min<int64_t>(spec.gpu_memory_mib, std::numeric_limits<int32_t>::max()));
    load.open = node.present && spec.ready && !spec.unschedulable;
    load.tainted = !spec.taints.empty();
  }
  log_change(id, rules_changed);
}

void Cluster::log_change(NodeId id, bool rules_changed) {
  if (log_.size() >= std::max(kLogSizeMin, 4 * loads_.size())) {
    size_t keep = log_.size() / 2;
    log_begin_ += log_.size() - keep;
    log_.erase(log_.begin(), log_.end() - static_cast<std::ptrdiff_t>(keep));
  }
  uint64_t at = log_position();
  log_.push_back(static_cast<uint32_t>(id.value));
  last_change_[slot(id)] = at;
  if (rules_changed) last_rules_change_[slot(id)] = at;
}

int64_t Cluster::extended_free(NodeId id, ResourceId resource) const {
  const NodeState& node = state(id);
  auto by_id = [](const ResourceAmount& r, ResourceId want) { return r.id < want; };
  const auto& have = node.spec.extended;
  auto at = std::lower_bound(have.begin(), have.end(), resource, by_id);
  if (at == have.end() || at->id != resource) return 0;
  for (const auto& [used_id, used] : node.extended_used) {
    if (used_id == resource) return used.free_of(at->amount);
  }
  return at->amount;
}

void Cluster::each_pod(const std::function<void(const PodRequest&, const Labels&)>& visit) const {
  for (const NodeState& node : states_) {
    for (PodId id : node.pods) visit(*pod(id).request, node.spec.labels);
  }
}

std::shared_ptr<const TermCounts> Cluster::term_counts(const PodTerm& term) const {
  return terms_.counts(term, names_, [this](const auto& visit) { each_pod(visit); });
}

uint64_t Cluster::state_hash() const {
  uint64_t h = mix(nodes_present_, pods_present_);
  for (size_t n = 0; n < states_.size(); ++n) {
    const NodeLoad& load = loads_[n];
    h = mix(h, static_cast<uint64_t>(states_[n].present) * 2 + load.open);
    h = mix(h, static_cast<uint64_t>(load.cpu_free));
    h = mix(h, static_cast<uint64_t>(load.memory_free));
    h = mix(h, static_cast<uint64_t>(load.storage_free));
    h = mix(h, static_cast<uint64_t>(load.pods_free));
    for (int16_t free : load.gpu_free) h = mix(h, static_cast<uint64_t>(free));
    h = mix(h, load.classes);
    uint64_t extended = 0;  // a sum: the order in which resources were first used does not count
    for (const auto& [id, used] : states_[n].extended_used) {
      if (used == ExactSum()) continue;
      extended += mix(static_cast<uint64_t>(id.value), static_cast<uint64_t>(used.saturated()));
    }
    h = mix(h, extended);
  }
  for (size_t p = 0; p < pods_.size(); ++p) {
    if (pods_[p].request == nullptr) continue;
    const Placement& at = pods_[p].placement;
    h = mix(h, p << 32 | static_cast<uint32_t>(at.node.value));
    h = mix(h, static_cast<uint64_t>(at.devices) << 32 | static_cast<uint32_t>(at.milli));
    h = mix(h, core::hash_of(pods_[p].request->shape));
  }
  return h;
}

}  // namespace tessera::scheduler::core
