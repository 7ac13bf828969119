// Rules of a pod about nodes and about other pods, decoded; and which nodes match.
//
// Source:  Kubernetes API reference, Affinity, NodeSelector, TopologySpreadConstraint (v1.36);
//          k8s.io/component-helpers/scheduling/corev1/nodeaffinity (semantics).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "kube/labels.h"

namespace tessera::kube {

struct NodeRequirement {
  enum class Op : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };
  std::string key;
  Op op = Op::kIn;
  std::vector<std::string> values;
  bool operator==(const NodeRequirement&) const = default;
};

// All of `expressions` on labels and all of `fields` (only metadata.name) must hold; a term without
// any selects nothing.
struct NodeSelectorTerm {
  std::vector<NodeRequirement> expressions;
  std::vector<NodeRequirement> fields;
  bool operator==(const NodeSelectorTerm&) const = default;
};

struct PreferredNodeTerm {
  int32_t weight = 1;
  NodeSelectorTerm term;
  bool operator==(const PreferredNodeTerm&) const = default;
};

struct PodAffinityTerm {
  LabelSelector selector;
  bool selector_missing = false;  // no labelSelector: selects no pod
  std::vector<std::string>
      namespaces;  // with an absent namespace selector and none listed: the pod's own
  bool has_namespace_selector = false;
  LabelSelector namespace_selector;  // added to `namespaces`; {} selects all
  std::string topology_key;
  std::vector<std::string> match_label_keys;
  std::vector<std::string> mismatch_label_keys;
  bool operator==(const PodAffinityTerm&) const = default;
};

struct WeightedPodTerm {
  int32_t weight = 1;
  PodAffinityTerm term;
  bool operator==(const WeightedPodTerm&) const = default;
};

struct Affinity {
  bool has_required_node_terms = false;               // with none listed: no node
  std::vector<NodeSelectorTerm> required_node_terms;  // OR
  std::vector<PreferredNodeTerm> preferred_node_terms;
  std::vector<PodAffinityTerm> required_pods;
  std::vector<WeightedPodTerm> preferred_pods;
  std::vector<PodAffinityTerm> required_anti_pods;
  std::vector<WeightedPodTerm> preferred_anti_pods;
  bool operator==(const Affinity&) const = default;
};

struct TopologySpread {
  int32_t max_skew = 1;
  std::string topology_key;
  bool required = true;  // whenUnsatisfiable: DoNotSchedule; false: ScheduleAnyway
  LabelSelector selector;
  bool selector_missing = false;
  int32_t min_domains = 1;
  bool honor_node_affinity = true;
  bool honor_node_taints = false;
  std::vector<std::string> match_label_keys;
  bool operator==(const TopologySpread&) const = default;
};

bool matches(const NodeRequirement& requirement, std::optional<std::string_view> value);
bool matches(const NodeSelectorTerm& term, const StringMap& labels, std::string_view node_name);
// spec.nodeSelector and the required node terms together.
bool matches_node(const StringMap& node_selector, const Affinity& affinity, const StringMap& labels,
                  std::string_view node_name);

// spec.affinity and spec.topologySpreadConstraints; errors are kInvalid and name the path.
base::Result<Affinity> decode_affinity(const json::Value& affinity, std::string_view path);
base::Result<std::vector<TopologySpread>> decode_topology_spread(const json::Value& constraints,
                                                                 std::string_view path);

}  // namespace tessera::kube
