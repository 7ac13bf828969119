// Labels and what selects them: node affinity terms, pod label selectors, taints and tolerations,
// all of interned ids.
//
// Shape:   Labels are sorted by key. A NodeTerm is the AND of its expressions; a list of terms is
//          their OR; an empty term selects nothing.
// Source:  Kubernetes API reference, NodeSelectorRequirement, LabelSelector, Toleration (v1.36).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/core/interner.h"

namespace tessera::scheduler::core {

struct Label {
  StringId key;
  StringId value;
  auto operator<=>(const Label&) const = default;
};
using Labels = std::vector<Label>;

// The value of a label, or an invalid id.
StringId value_of(std::span<const Label> labels, StringId key);

enum class Op : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

struct Expression {
  StringId key;
  Op op = Op::kIn;
  std::vector<StringId> values;
  int64_t bound = 0;  // for kGt and kLt
  bool operator==(const Expression&) const = default;
};

bool matches(const Expression& expression, std::span<const Label> labels, const Interner& names);
bool matches_all(std::span<const Expression> expressions, std::span<const Label> labels,
                 const Interner& names);

struct NodeTerm {
  std::vector<Expression> expressions;
  std::vector<Expression> fields;  // matchFields: only metadata.name exists
  bool operator==(const NodeTerm&) const = default;
};
bool matches(const NodeTerm& term, std::span<const Label> labels, StringId node_name,
             const Interner& names);

struct PreferredTerm {
  int32_t weight = 1;  // 1 to 100
  NodeTerm term;
  bool operator==(const PreferredTerm&) const = default;
};

enum class Effect : uint8_t { kAny, kNoSchedule, kPreferNoSchedule, kNoExecute };

struct Taint {
  StringId key;
  StringId value;
  Effect effect = Effect::kNoSchedule;
  auto operator<=>(const Taint&) const = default;
};

struct Toleration {
  StringId key;         // invalid: every key
  bool exists = false;  // operator Exists: the value does not count
  StringId value;
  Effect effect = Effect::kAny;
  bool operator==(const Toleration&) const = default;
};
bool tolerates(std::span<const Toleration> tolerations, const Taint& taint);

// Which pods a rule between pods means, and the node label whose value makes a domain.
struct PodTerm {
  std::vector<StringId> namespaces;  // sorted; empty: all
  std::vector<Expression> selector;  // AND; empty: every pod
  StringId topology_key;
  bool operator==(const PodTerm&) const = default;
};
bool selects(const PodTerm& term, StringId pod_namespace, std::span<const Label> labels,
             const Interner& names);

uint64_t hash_of(std::span<const Expression> expressions, uint64_t seed);
uint64_t hash_of(const PodTerm& term);
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdULL;
  return x ^ (x >> 32);
}

}  // namespace tessera::scheduler::core
