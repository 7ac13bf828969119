#include "scheduler/translate_rules.h"

#include <algorithm>
#include <charconv>

namespace tessera::scheduler {
namespace {

using base::Code;
using base::error;

core::Op op_of(kube::NodeRequirement::Op op) {
  switch (op) {
    case kube::NodeRequirement::Op::kIn:
      return core::Op::kIn;
    case kube::NodeRequirement::Op::kNotIn:
      return core::Op::kNotIn;
    case kube::NodeRequirement::Op::kExists:
      return core::Op::kExists;
    case kube::NodeRequirement::Op::kDoesNotExist:
      return core::Op::kDoesNotExist;
    case kube::NodeRequirement::Op::kGt:
      return core::Op::kGt;
    case kube::NodeRequirement::Op::kLt:
      return core::Op::kLt;
  }
  return core::Op::kIn;
}

core::Expression expression(const kube::NodeRequirement& from, core::Interner& names) {
  core::Expression out{names.string(from.key), op_of(from.op), {}, 0};
  for (const std::string& value : from.values) out.values.push_back(names.string(value));
  if ((out.op == core::Op::kGt || out.op == core::Op::kLt) && !from.values.empty()) {
    const std::string& text = from.values.front();
    std::from_chars(text.data(), text.data() + text.size(), out.bound);
  }
  std::ranges::sort(out.values);
  return out;
}

core::NodeTerm node_term(const kube::NodeSelectorTerm& from, core::Interner& names) {
  core::NodeTerm out;
  for (const auto& item : from.expressions) out.expressions.push_back(expression(item, names));
  for (const auto& item : from.fields) out.fields.push_back(expression(item, names));
  return out;
}

core::Expression expression(const kube::Requirement& from, core::Interner& names) {
  core::Expression out{names.string(from.key), core::Op::kExists, {}, 0};
  switch (from.op) {
    case kube::SelectorOp::kEquals:
    case kube::SelectorOp::kIn:
      out.op = core::Op::kIn;
      break;
    case kube::SelectorOp::kNotEquals:
    case kube::SelectorOp::kNotIn:
      out.op = core::Op::kNotIn;
      break;
    case kube::SelectorOp::kExists:
      out.op = core::Op::kExists;
      break;
    case kube::SelectorOp::kDoesNotExist:
      out.op = core::Op::kDoesNotExist;
      break;
    case kube::SelectorOp::kGreaterThan:
      out.op = core::Op::kGt;
      break;
    case kube::SelectorOp::kLessThan:
      out.op = core::Op::kLt;
      break;
  }
  for (const std::string& value : from.values) out.values.push_back(names.string(value));
  std::ranges::sort(out.values);
  return out;
}

// Label keys whose value on the pod itself narrows the selector (matchLabelKeys, mismatchLabelKeys).
void narrow(const std::vector<std::string>& keys, core::Op op, const kube::Pod& pod,
            std::vector<core::Expression>& selector, core::Interner& names) {
  for (const std::string& key : keys) {
    const auto it = pod.meta.labels.find(key);
    if (it == pod.meta.labels.end()) continue;
    selector.push_back({names.string(key), op, {names.string(it->second)}, 0});
  }
}

// Selects nothing: a key cannot both exist and not exist.
void select_nothing(std::vector<core::Expression>& selector, core::Interner& names) {
  const core::StringId key = names.string("tessera.dev/none");
  selector = {{key, core::Op::kExists, {}, 0}, {key, core::Op::kDoesNotExist, {}, 0}};
}

base::Result<core::PodTerm> pod_term(const kube::PodAffinityTerm& from, const kube::Pod& pod,
                                     core::Interner& names) {
  core::PodTerm out;
  out.topology_key = names.string(from.topology_key);
  if (from.has_namespace_selector && !from.namespace_selector.selects_everything()) {
    return error(
        Code::kInvalid,
        "spec.affinity: a namespaceSelector other than {{}} is not supported; list namespaces");
  }
  if (!from.has_namespace_selector) {
    for (const std::string& ns : from.namespaces) out.namespaces.push_back(names.string(ns));
    if (out.namespaces.empty()) out.namespaces.push_back(names.string(pod.meta.ns));
    std::ranges::sort(out.namespaces);
  }
  for (const auto& item : from.selector.requirements())
    out.selector.push_back(expression(item, names));
  narrow(from.match_label_keys, core::Op::kIn, pod, out.selector, names);
  narrow(from.mismatch_label_keys, core::Op::kNotIn, pod, out.selector, names);
  if (from.selector_missing || from.selector.selects_nothing()) select_nothing(out.selector, names);
  return out;
}

core::Effect effect_of(kube::TaintEffect effect) {
  switch (effect) {
    case kube::TaintEffect::kAny:
      return core::Effect::kAny;
    case kube::TaintEffect::kNoSchedule:
      return core::Effect::kNoSchedule;
    case kube::TaintEffect::kPreferNoSchedule:
      return core::Effect::kPreferNoSchedule;
    case kube::TaintEffect::kNoExecute:
      return core::Effect::kNoExecute;
  }
  return core::Effect::kAny;
}

void node_rules(const kube::Pod& pod, core::Shape& shape, core::Interner& names) {
  shape.node_selector = translate_labels(pod.node_selector, names);
  if (pod.affinity.has_required_node_terms) {
    for (const auto& term : pod.affinity.required_node_terms) {
      shape.required.push_back(node_term(term, names));
    }
    if (shape.required.empty()) shape.required.push_back({});  // no term listed: no node
  }
  for (const auto& term : pod.affinity.preferred_node_terms) {
    shape.preferred.push_back({term.weight, node_term(term.term, names)});
  }
  const kube::Taint cordon{"node.kubernetes.io/unschedulable", "", kube::TaintEffect::kNoSchedule};
  for (const kube::Toleration& from : pod.tolerations) {
    shape.tolerates_cordon = shape.tolerates_cordon || kube::tolerates(from, cordon);
    // Numeric comparison (Lt, Gt) is not known to the core: such a pod counts as not tolerating.
    const bool numeric =
        from.op == kube::Toleration::Op::kLt || from.op == kube::Toleration::Op::kGt;
    if (numeric) continue;
    core::Toleration out;
    if (!from.key.empty()) out.key = names.string(from.key);
    out.exists = from.op == kube::Toleration::Op::kExists;
    if (!out.exists) out.value = names.string(from.value);
    out.effect = effect_of(from.effect);
    shape.tolerations.push_back(out);
  }
}

}  // namespace

core::Labels translate_labels(const kube::StringMap& labels, core::Interner& names) {
  core::Labels out;
  out.reserve(labels.size());
  for (const auto& [key, value] : labels) out.push_back({names.string(key), names.string(value)});
  std::ranges::sort(out);
  return out;
}

std::vector<core::NodeTerm> translate_node_terms(const std::vector<kube::NodeSelectorTerm>& terms,
                                                 core::Interner& names) {
  std::vector<core::NodeTerm> out;
  out.reserve(terms.size());
  for (const auto& term : terms) out.push_back(node_term(term, names));
  return out;
}

core::Taint translate_taint(const kube::Taint& taint, core::Interner& names) {
  return {names.string(taint.key), names.string(taint.value), effect_of(taint.effect)};
}

base::Status translate_rules(const kube::Pod& pod, core::PodRequest& request,
                             core::Interner& names) {
  node_rules(pod, request.shape, names);
  for (const auto& term : pod.affinity.required_pods) {
    TS_TRY(core::PodTerm out, pod_term(term, pod, names));
    request.affinity.push_back(std::move(out));
  }
  for (const auto& term : pod.affinity.required_anti_pods) {
    TS_TRY(core::PodTerm out, pod_term(term, pod, names));
    request.anti_affinity.push_back(std::move(out));
  }
  for (const kube::TopologySpread& from : pod.spread) {
    core::SpreadRule rule;
    rule.max_skew = from.max_skew;
    rule.required = from.required;
    rule.term.topology_key = names.string(from.topology_key);
    rule.term.namespaces = {names.string(pod.meta.ns)};
    for (const auto& item : from.selector.requirements()) {
      rule.term.selector.push_back(expression(item, names));
    }
    narrow(from.match_label_keys, core::Op::kIn, pod, rule.term.selector, names);
    if (from.selector_missing) select_nothing(rule.term.selector, names);
    request.spread.push_back(std::move(rule));
  }
  return {};
}

}  // namespace tessera::scheduler
