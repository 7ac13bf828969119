#include "scheduler/core/selector.h"

#include <algorithm>

namespace tessera::scheduler::core {
namespace {

bool has_value(const Expression& e, StringId value) {
  return std::find(e.values.begin(), e.values.end(), value) != e.values.end();
}

bool compares(const Expression& e, StringId value, const Interner& names) {
  auto number = names.number(value);
  if (!number) return false;
  return e.op == Op::kGt ? *number > e.bound : *number < e.bound;
}

bool matches_value(const Expression& e, StringId value, const Interner& names) {
  switch (e.op) {
    case Op::kIn:
      return value.valid() && has_value(e, value);
    case Op::kNotIn:
      return !value.valid() || !has_value(e, value);
    case Op::kExists:
      return value.valid();
    case Op::kDoesNotExist:
      return !value.valid();
    case Op::kGt:
    case Op::kLt:
      return value.valid() && compares(e, value, names);
  }
  return false;
}

}  // namespace

StringId value_of(std::span<const Label> labels, StringId key) {
  auto at = std::lower_bound(labels.begin(), labels.end(), key,
                             [](const Label& label, StringId k) { return label.key < k; });
  return at != labels.end() && at->key == key ? at->value : StringId();
}

bool matches(const Expression& expression, std::span<const Label> labels, const Interner& names) {
  return matches_value(expression, value_of(labels, expression.key), names);
}

bool matches_all(std::span<const Expression> expressions, std::span<const Label> labels,
                 const Interner& names) {
  return std::all_of(expressions.begin(), expressions.end(),
                     [&](const Expression& e) { return matches(e, labels, names); });
}

bool matches(const NodeTerm& term, std::span<const Label> labels, StringId node_name,
             const Interner& names) {
  if (term.expressions.empty() && term.fields.empty()) return false;
  return matches_all(term.expressions, labels, names) &&
         std::all_of(term.fields.begin(), term.fields.end(),
                     [&](const Expression& e) { return matches_value(e, node_name, names); });
}

bool tolerates(std::span<const Toleration> tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& t) {
    if (t.effect != Effect::kAny && t.effect != taint.effect) return false;
    if (t.key.valid() && t.key != taint.key) return false;
    return t.exists || (t.key.valid() && t.value == taint.value);
  });
}

bool selects(const PodTerm& term, StringId pod_namespace, std::span<const Label> labels,
             const Interner& names) {
  if (!term.namespaces.empty() &&
      !std::binary_search(term.namespaces.begin(), term.namespaces.end(), pod_namespace)) {
    return false;
  }
  return matches_all(term.selector, labels, names);
}

uint64_t hash_of(std::span<const Expression> expressions, uint64_t seed) {
  for (const Expression& e : expressions) {
    seed = mix(seed, static_cast<uint64_t>(e.key.value) * 8 + static_cast<uint64_t>(e.op));
    seed = mix(seed, static_cast<uint64_t>(e.bound));
    for (StringId value : e.values) seed = mix(seed, static_cast<uint64_t>(value.value));
  }
  return mix(seed, expressions.size());
}

uint64_t hash_of(const PodTerm& term) {
  uint64_t seed = static_cast<uint64_t>(term.topology_key.value);
  for (StringId ns : term.namespaces) seed = mix(seed, static_cast<uint64_t>(ns.value));
  return hash_of(term.selector, seed);
}

}  // namespace tessera::scheduler::core
