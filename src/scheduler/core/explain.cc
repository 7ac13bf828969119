#include "scheduler/core/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "scheduler/core/pod_rules.h"

namespace tessera::scheduler::core {
namespace {

// The words for a GPU request that names no resource.
constexpr std::string_view kShareResource = "tessera.dev/gpu-milli";
constexpr std::string_view kGpuResource = "nvidia.com/gpu";

std::string_view resource_text(Reason reason, ResourceId resource, const Interner& names) {
  switch (reason) {
    case Reason::kTooManyPods:
      return "pods";
    case Reason::kInsufficientCpu:
      return "cpu";
    case Reason::kInsufficientMemory:
      return "memory";
    case Reason::kInsufficientStorage:
      return "ephemeral-storage";
    case Reason::kInsufficientGpuShare:
      return kShareResource;
    case Reason::kInsufficientGpu:
      return resource.valid() ? names.text(resource) : kGpuResource;
    default:
      return names.text(resource);
  }
}

std::string words(const ReasonCount& count, const Interner& names) {
  switch (count.reason) {
    case Reason::kNotReady:
      return "node(s) were not ready";
    case Reason::kUnschedulable:
      return "node(s) were unschedulable";
    case Reason::kTaint:
      return fmt::format("node(s) had untolerated taint {{{}: {}}}", names.text(count.taint.key),
                         names.text(count.taint.value));
    case Reason::kNodeAffinity:
      return "node(s) didn't match Pod's node affinity/selector";
    case Reason::kVolumeReach:
      return "node(s) didn't match PersistentVolume's node affinity";
    case Reason::kVolumeBind:
      return "node(s) didn't find available persistent volumes to bind";
    case Reason::kVolumeMissing:
      return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
    case Reason::kGpuModel:
      return "node(s) didn't have an allowed GPU model";
    case Reason::kTooManyPods:
      return "Too many pods";
    case Reason::kSpread:
      return "node(s) didn't match pod topology spread constraints";
    case Reason::kSpreadLabel:
      return "node(s) didn't match pod topology spread constraints (missing required label)";
    case Reason::kAffinity:
      return "node(s) didn't match pod affinity rules";
    case Reason::kAntiAffinity:
      return "node(s) didn't match pod anti-affinity rules";
    case Reason::kExistingAntiAffinity:
      return "node(s) didn't satisfy existing pods anti-affinity rules";
    case Reason::kNone:
    case Reason::kGone:
      return "";
    default:
      return fmt::format("Insufficient {}", resource_text(count.reason, count.resource, names));
  }
}

void count(Verdict& verdict, const Finding& finding) {
  auto same = std::find_if(verdict.counts.begin(), verdict.counts.end(), [&](const ReasonCount& c) {
    return c.reason == finding.reason && c.resource == finding.resource &&
           c.taint.key == finding.taint.key && c.taint.value == finding.taint.value;
  });
  if (same == verdict.counts.end()) {
    same = verdict.counts.insert(same, {finding.reason, finding.taint, finding.resource, 0});
  }
  ++same->nodes;
}

// An empty node would not do either.
bool never_fits(const std::vector<Finding>& list) {
  return std::any_of(list.begin(), list.end(), [](const Finding& f) { return f.never; });
}

// Fewer amounts short is nearer; then fewer GPUs short.
bool nearer(const std::vector<Finding>& a, const std::vector<Finding>& b) {
  auto gpus = [](const auto& list) {
    int64_t missing = 0;
    for (const Finding& f : list) {
      if (f.reason == Reason::kInsufficientGpu || f.reason == Reason::kInsufficientGpuShare) {
        missing = sat_add(missing, f.missing);
      }
    }
    return missing;
  };
  if (never_fits(a) != never_fits(b)) return never_fits(b);
  if (a.size() != b.size()) return a.size() < b.size();
  return gpus(a) < gpus(b);
}

bool permanent(Reason reason) {
  return reason == Reason::kNodeAffinity || reason == Reason::kGpuModel;
}

// Counts one node; true where it could never hold the pod.
bool judge(Verdict& verdict, const Cluster& cluster, NodeId node, const PodRequest& request,
           const PodRules& rules) {
  if (Finding rule = check_rules(cluster, node, request.shape)) {
    count(verdict, rule);
    return permanent(rule.reason);
  }
  std::vector<Finding> missing = shortages(cluster, node, request.shape);
  if (missing.empty()) {
    Finding rule;
    rule.reason = rules.check(node);
    if (rule) count(verdict, rule);
    return false;
  }
  bool never = false;
  for (const Finding& finding : missing) {
    count(verdict, finding);
    never |= finding.never;
  }
  if (!verdict.nearest.valid() || nearer(missing, verdict.nearest_missing)) {
    verdict.nearest = node;
    verdict.nearest_missing = std::move(missing);
  }
  return never;
}

}  // namespace

Verdict explain(const Cluster& cluster, const PodRequest& request) {
  Verdict verdict;
  PodRules rules(cluster, request);
  int32_t hopeless = 0;
  for (size_t n = 0; n < cluster.node_slots(); ++n) {
    NodeId node(static_cast<int32_t>(n));
    if (!cluster.present(node)) continue;
    ++verdict.nodes;
    hopeless += judge(verdict, cluster, node, request, rules);
  }
  if (verdict.nodes > 0 && hopeless == verdict.nodes) verdict.code = base::Code::kNever;
  std::sort(verdict.counts.begin(), verdict.counts.end(), [](const auto& a, const auto& b) {
    if (a.nodes != b.nodes) return a.nodes > b.nodes;
    return std::tie(a.reason, a.resource, a.taint) < std::tie(b.reason, b.resource, b.taint);
  });
  return verdict;
}

std::string Verdict::message(const Interner& names) const {
  if (nodes == 0) return "no nodes available to schedule pods";
  std::vector<std::string> parts;
  for (const ReasonCount& c : counts)
    parts.push_back(fmt::format("{} {}", c.nodes, words(c, names)));
  std::sort(parts.begin(), parts.end());
  if (parts.empty()) return fmt::format("0/{} nodes are available.", nodes);
  return fmt::format("0/{} nodes are available: {}.", nodes, fmt::join(parts, ", "));
}

std::string Verdict::short_of(const Cluster& cluster) const {
  std::vector<std::string> parts;
  for (const Finding& f : nearest_missing) {
    std::string_view what = resource_text(f.reason, f.resource, cluster.names());
    switch (f.reason) {
      case Reason::kInsufficientCpu:
        parts.push_back(fmt::format("{}m {}", f.missing, what));
        break;
      case Reason::kInsufficientMemory:
      case Reason::kInsufficientStorage:
        parts.push_back(
            fmt::format("{}Mi {}", f.missing / (1 << 20) + (f.missing % (1 << 20) != 0), what));
        break;
      case Reason::kInsufficientGpuShare:
        parts.push_back(fmt::format("{} more GPU(s) with room for the share", f.missing));
        break;
      default:
        parts.push_back(fmt::format("{} {}", f.missing, what));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string Verdict::nearest_text(const Cluster& cluster) const {
  if (!nearest.valid() || !cluster.present(nearest)) return "";
  if (never_fits(nearest_missing)) return "no node could hold it, even when empty";
  return fmt::format("nearest: {}, short of {}", cluster.names().text(cluster.spec(nearest).name),
                     short_of(cluster));
}

}  // namespace tessera::scheduler::core
