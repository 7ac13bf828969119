#include "scheduler/core/filter.h"

#include <algorithm>

namespace tessera::scheduler::core {
namespace {

// What Kubernetes' own plugins weigh: node affinity 2, taint toleration 3, each over 100 points.
constexpr int32_t kAffinityWeight = 2;
constexpr int32_t kTaintPenalty = 300;
// More than the policies' scores differ, less than what users ask for.
constexpr int32_t kGpuNodePenalty = 150;

bool selector_matches(const Cluster& cluster, const NodeSpec& spec, const Shape& shape) {
  for (const Label& want : shape.node_selector) {
    if (value_of(spec.labels, want.key) != want.value) return false;
  }
  if (shape.required.empty()) return true;
  return std::any_of(shape.required.begin(), shape.required.end(), [&](const NodeTerm& term) {
    return matches(term, spec.labels, spec.name, cluster.names());
  });
}

// The first volume that the node cannot have; its reason.
Reason volume_trouble(const Cluster& cluster, const NodeSpec& spec, const Shape& shape) {
  for (const VolumeRule& rule : shape.volumes) {
    const bool holds = std::any_of(rule.terms.begin(), rule.terms.end(), [&](const NodeTerm& term) {
      return matches(term, spec.labels, spec.name, cluster.names());
    });
    if (holds) continue;
    switch (rule.why) {
      case VolumeRule::Why::kReach:
        return Reason::kVolumeReach;
      case VolumeRule::Why::kBind:
        return Reason::kVolumeBind;
      case VolumeRule::Why::kMissing:
        return Reason::kVolumeMissing;
    }
  }
  return Reason::kNone;
}

const Taint* untolerated(const NodeSpec& spec, const Shape& shape) {
  for (const Taint& taint : spec.taints) {
    if (taint.effect == Effect::kPreferNoSchedule) continue;
    if (!tolerates(shape.tolerations, taint)) return &taint;
  }
  return nullptr;
}

bool right_kind(const NodeLoad& node, const GpuAsk& gpu) {
  return !gpu.resource.valid() || gpu.resource == node.gpu_resource;
}

int64_t capacity_of(const NodeSpec& spec, ResourceId resource) {
  for (const ResourceAmount& have : spec.extended) {
    if (have.id == resource) return have.amount;
  }
  return 0;
}

bool gpus_fit(const NodeLoad& node, const GpuAsk& gpu) {
  if (!right_kind(node, gpu)) return false;
  if (gpu.whole()) return __builtin_popcount(node.gpu_idle) >= gpu.count;
  return gpu.count <= node.gpus && devices_fitting(node, gpu) >= gpu.count;
}

Finding gpu_shortage(const NodeLoad& node, const NodeSpec& spec, const GpuAsk& gpu) {
  Finding finding;
  if (gpu.count == 0 || gpus_fit(node, gpu)) return finding;
  finding.reason = gpu.whole() ? Reason::kInsufficientGpu : Reason::kInsufficientGpuShare;
  finding.resource = gpu.resource;
  int32_t healthy =
      spec.gpus - __builtin_popcount(spec.gpus_unhealthy & ((uint32_t{1} << spec.gpus) - 1));
  bool kind = right_kind(node, gpu) && milli_on(node, gpu) <= kMilliPerGpu;
  finding.never = !kind || gpu.count > healthy;
  finding.missing = gpu.count - (kind ? devices_fitting(node, gpu) : 0);
  return finding;
}

}  // namespace

Finding check_rules(const Cluster& cluster, NodeId node, const Shape& shape) {
  const NodeLoad& load = cluster.load(node);
  if (load.open && !load.tainted && !shape.has_node_rules()) return {};
  Finding finding;
  const NodeSpec& spec = cluster.spec(node);
  if (!cluster.present(node)) {
    finding.reason = Reason::kGone;
  } else if (!spec.ready) {
    finding.reason = Reason::kNotReady;
  } else if (spec.unschedulable && !shape.tolerates_cordon) {
    finding.reason = Reason::kUnschedulable;
  } else if (const Taint* taint = untolerated(spec, shape)) {
    finding.reason = Reason::kTaint;
    finding.taint = *taint;
  } else if (!selector_matches(cluster, spec, shape)) {
    finding.reason = Reason::kNodeAffinity;
  } else if (const Reason trouble = volume_trouble(cluster, spec, shape);
             trouble != Reason::kNone) {
    finding.reason = trouble;
  } else if (!shape.models.empty() &&
             !std::binary_search(shape.models.begin(), shape.models.end(), spec.model)) {
    finding.reason = Reason::kGpuModel;
  }
  return finding;
}

int32_t preference(const Cluster& cluster, NodeId node, const Shape& shape) {
  const NodeSpec& spec = cluster.spec(node);
  // Pods without GPUs leave the nodes that have some to those that need them.
  const int32_t away = shape.gpu.count == 0 && spec.model.valid() ? kGpuNodePenalty : 0;
  if (shape.preferred.empty() && !cluster.load(node).tainted) return -away;
  int64_t matched = 0;
  int64_t all = 0;
  for (const PreferredTerm& preferred : shape.preferred) {
    all += preferred.weight;
    if (matches(preferred.term, spec.labels, spec.name, cluster.names()))
      matched += preferred.weight;
  }
  int32_t points = all > 0 ? static_cast<int32_t>(kAffinityWeight * 100 * matched / all) : 0;
  for (const Taint& taint : spec.taints) {
    if (taint.effect != Effect::kPreferNoSchedule) continue;
    if (!tolerates(shape.tolerations, taint)) points -= kTaintPenalty;
  }
  return points - away;
}

int32_t devices_fitting(const NodeLoad& node, const GpuAsk& gpu) {
  if (gpu.whole()) return __builtin_popcount(node.gpu_idle);
  int32_t milli = milli_on(node, gpu);
  int32_t fitting = 0;
  for (size_t g = 0; g < node.gpus; ++g) fitting += node.gpu_free[g] >= milli;
  return fitting;
}

bool fits(const Cluster& cluster, NodeId node, const Shape& shape) {
  const NodeLoad& load = cluster.load(node);
  if (load.pods_free < 1 || shape.cpu_milli > load.cpu_free ||
      shape.memory_bytes > load.memory_free || shape.storage_bytes > load.storage_free) {
    return false;
  }
  if (shape.gpu.count > 0 && !gpus_fit(load, shape.gpu)) return false;
  return std::all_of(shape.extended.begin(), shape.extended.end(), [&](const ResourceAmount& want) {
    return want.amount == 0 || want.amount <= cluster.extended_free(node, want.id);
  });
}

std::vector<Finding> shortages(const Cluster& cluster, NodeId node, const Shape& shape) {
  const NodeLoad& load = cluster.load(node);
  const NodeSpec& spec = cluster.spec(node);
  std::vector<Finding> found;
  auto look = [&](Reason reason, int64_t want, int64_t have, int64_t capacity, ResourceId id) {
    if (want <= have) return;
    Finding finding;
    finding.reason = reason;
    finding.resource = id;
    finding.missing = want - have;
    finding.never = want > capacity;
    found.push_back(finding);
  };
  look(Reason::kTooManyPods, 1, load.pods_free, spec.pods_max, {});
  look(Reason::kInsufficientCpu, shape.cpu_milli, load.cpu_free, spec.cpu_milli, {});
  look(Reason::kInsufficientMemory, shape.memory_bytes, load.memory_free, spec.memory_bytes, {});
  look(Reason::kInsufficientStorage, shape.storage_bytes, load.storage_free, spec.storage_bytes,
       {});
  if (Finding gpu = gpu_shortage(load, spec, shape.gpu)) found.push_back(gpu);
  for (const ResourceAmount& want : shape.extended) {
    look(Reason::kInsufficientExtended, want.amount, cluster.extended_free(node, want.id),
         capacity_of(spec, want.id), want.id);
  }
  return found;
}

}  // namespace tessera::scheduler::core
