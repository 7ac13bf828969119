#include "kube/affinity.h"

#include <algorithm>
#include <charconv>

#include "kube/meta.h"

namespace tessera::kube {
namespace {

using base::Code;

std::optional<int64_t> whole_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<NodeRequirement::Op> op_of(std::string_view word) {
  using Op = NodeRequirement::Op;
  if (word == "In") return Op::kIn;
  if (word == "NotIn") return Op::kNotIn;
  if (word == "Exists") return Op::kExists;
  if (word == "DoesNotExist") return Op::kDoesNotExist;
  if (word == "Gt") return Op::kGt;
  if (word == "Lt") return Op::kLt;
  return std::nullopt;
}

base::Result<std::vector<NodeRequirement>> decode_requirements(const json::Value& list,
                                                               std::string_view path) {
  std::vector<NodeRequirement> out;
  for (const json::Value& item : list.items()) {
    const auto op = op_of(item["operator"].as_string());
    if (!op) {
      return base::error(
          Code::kInvalid,
          "{}[{}].operator: \"{}\" is not one of In, NotIn, Exists, DoesNotExist, Gt, "
          "Lt",
          path, out.size(), item["operator"].as_string());
    }
    out.push_back({item["key"].str(), *op, decode_strings(item["values"])});
  }
  return out;
}

base::Result<NodeSelectorTerm> decode_node_term(const json::Value& term, const std::string& path) {
  NodeSelectorTerm out;
  TS_TRY(out.expressions,
         decode_requirements(term["matchExpressions"], path + ".matchExpressions"));
  TS_TRY(out.fields, decode_requirements(term["matchFields"], path + ".matchFields"));
  return out;
}

base::Result<PodAffinityTerm> decode_pod_term(const json::Value& term, const std::string& path) {
  PodAffinityTerm out;
  out.selector_missing = term["labelSelector"].is_null();
  TS_TRY(out.selector, LabelSelector::from_json(term["labelSelector"], path + ".labelSelector"));
  out.namespaces = decode_strings(term["namespaces"]);
  out.has_namespace_selector = !term["namespaceSelector"].is_null();
  TS_TRY(out.namespace_selector,
         LabelSelector::from_json(term["namespaceSelector"], path + ".namespaceSelector"));
  out.topology_key = term["topologyKey"].as_string();
  out.match_label_keys = decode_strings(term["matchLabelKeys"]);
  out.mismatch_label_keys = decode_strings(term["mismatchLabelKeys"]);
  if (out.topology_key.empty()) {
    return base::error(Code::kInvalid, "{}.topologyKey: is empty; name a node label", path);
  }
  return out;
}

base::Status decode_pod_terms(const json::Value& affinity, const std::string& path,
                              std::vector<PodAffinityTerm>& required,
                              std::vector<WeightedPodTerm>& preferred) {
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  for (const json::Value& item : affinity[kRequired].items()) {
    TS_TRY(auto term,
           decode_pod_term(item, fmt::format("{}.{}[{}]", path, kRequired, required.size())));
    required.push_back(std::move(term));
  }
  for (const json::Value& item : affinity[kPreferred].items()) {
    TS_TRY(auto term,
           decode_pod_term(item["podAffinityTerm"], fmt::format("{}.{}[{}].podAffinityTerm", path,
                                                                kPreferred, preferred.size())));
    preferred.push_back({static_cast<int32_t>(item["weight"].as_int(1)), std::move(term)});
  }
  return {};
}

}  // namespace

bool matches(const NodeRequirement& requirement, std::optional<std::string_view> value) {
  using Op = NodeRequirement::Op;
  const auto listed = [&] {
    return std::ranges::find(requirement.values, *value) != requirement.values.end();
  };
  switch (requirement.op) {
    case Op::kIn:
      return value && listed();
    case Op::kNotIn:
      return !value || !listed();
    case Op::kExists:
      return value.has_value();
    case Op::kDoesNotExist:
      return !value;
    case Op::kGt:
    case Op::kLt:
      break;
  }
  if (!value || requirement.values.size() != 1) return false;
  const auto left = whole_number(*value);
  const auto right = whole_number(requirement.values[0]);
  if (!left || !right) return false;
  return requirement.op == Op::kGt ? *left > *right : *left < *right;
}

bool matches(const NodeSelectorTerm& term, const StringMap& labels, std::string_view node_name) {
  if (term.expressions.empty() && term.fields.empty()) return false;
  for (const NodeRequirement& r : term.expressions) {
    const auto found = labels.find(r.key);
    const bool there = found != labels.end();
    if (!matches(r, there ? std::optional<std::string_view>(found->second) : std::nullopt)) {
      return false;
    }
  }
  return std::ranges::all_of(term.fields, [&](const NodeRequirement& r) {
    return matches(r, r.key == "metadata.name" ? std::optional(node_name) : std::nullopt);
  });
}

bool matches_node(const StringMap& node_selector, const Affinity& affinity, const StringMap& labels,
                  std::string_view node_name) {
  for (const auto& [key, value] : node_selector) {
    const auto found = labels.find(key);
    if (found == labels.end() || found->second != value) return false;
  }
  if (!affinity.has_required_node_terms) return true;
  return std::ranges::any_of(affinity.required_node_terms,
                             [&](auto& term) { return matches(term, labels, node_name); });
}

base::Result<Affinity> decode_affinity(const json::Value& affinity, std::string_view path) {
  Affinity out;
  const std::string base_path(path);
  const json::Value& node = affinity["nodeAffinity"];
  const json::Value& required = node["requiredDuringSchedulingIgnoredDuringExecution"];
  out.has_required_node_terms = !required.is_null();
  for (const json::Value& term : required["nodeSelectorTerms"].items()) {
    TS_TRY(auto made,
           decode_node_term(term, fmt::format("{}.nodeAffinity.requiredDuringScheduling"
                                              "IgnoredDuringExecution.nodeSelectorTerms[{}]",
                                              path, out.required_node_terms.size())));
    out.required_node_terms.push_back(std::move(made));
  }
  for (const json::Value& term : node["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
    TS_TRY(auto made, decode_node_term(term["preference"],
                                       fmt::format("{}.nodeAffinity.preferredDuringScheduling"
                                                   "IgnoredDuringExecution[{}].preference",
                                                   path, out.preferred_node_terms.size())));
    out.preferred_node_terms.push_back(
        {static_cast<int32_t>(term["weight"].as_int(1)), std::move(made)});
  }
  TS_TRY_STATUS(decode_pod_terms(affinity["podAffinity"], base_path + ".podAffinity",
                                 out.required_pods, out.preferred_pods));
  TS_TRY_STATUS(decode_pod_terms(affinity["podAntiAffinity"], base_path + ".podAntiAffinity",
                                 out.required_anti_pods, out.preferred_anti_pods));
  return out;
}

base::Result<std::vector<TopologySpread>> decode_topology_spread(const json::Value& constraints,
                                                                 std::string_view path) {
  std::vector<TopologySpread> out;
  for (const json::Value& item : constraints.items()) {
    const std::string at = fmt::format("{}[{}]", path, out.size());
    TopologySpread made;
    made.max_skew = static_cast<int32_t>(item["maxSkew"].as_int(1));
    made.topology_key = item["topologyKey"].as_string();
    if (made.topology_key.empty()) {
      return base::error(Code::kInvalid, "{}.topologyKey: is empty; name a node label", at);
    }
    if (made.max_skew <= 0) {
      return base::error(Code::kInvalid, "{}.maxSkew: must be greater than zero", at);
    }
    made.required = item["whenUnsatisfiable"].as_string() != "ScheduleAnyway";
    made.selector_missing = item["labelSelector"].is_null();
    TS_TRY(made.selector, LabelSelector::from_json(item["labelSelector"], at + ".labelSelector"));
    made.min_domains = static_cast<int32_t>(item["minDomains"].as_int(1));
    made.honor_node_affinity = item["nodeAffinityPolicy"].as_string() != "Ignore";
    made.honor_node_taints = item["nodeTaintsPolicy"].as_string() == "Honor";
    made.match_label_keys = decode_strings(item["matchLabelKeys"]);
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace tessera::kube
