// The rules of RBAC: what one rule allows, and whether some rules hold all that others grant.
//
// Threads: pure.
// Source:  k8s.io/api rbac/v1 (PolicyRule); k8s.io/kubernetes pkg/apis/rbac/v1 evaluation_helpers;
//          k8s.io/component-helpers auth/rbac/validation (Covers).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace tessera::apiserver {

struct PolicyRule {
  std::vector<std::string> verbs{};
  std::vector<std::string> groups{};
  std::vector<std::string> resources{};  // "pods", "pods/log", "*", "*/scale"
  std::vector<std::string> names{};      // empty: all
  std::vector<std::string> urls{};       // "/healthz", "/healthz/*", "*"
  bool operator==(const PolicyRule&) const = default;
  auto operator<=>(const PolicyRule&) const = default;
};

// What somebody wants to do, on a resource or on a path.
struct Attributes {
  std::string_view verb{};
  std::string_view group{};
  std::string_view resource{};
  std::string_view subresource{};
  std::string_view ns{};
  std::string_view name{};
  std::string_view on_node{};  // what a list of pods is limited to
  std::string_view path{};
  bool on_path = false;  // wants `path`, not a resource
};

// The `rules` member of a Role or ClusterRole.
std::vector<PolicyRule> policy_rules(const json::Value& rules);

bool allows(const PolicyRule& rule, const Attributes& wanted);

// What `granted` would give that `held` does not, broken down to one verb on one resource or path each.
std::vector<PolicyRule> not_covered(const std::vector<PolicyRule>& held,
                                    const std::vector<PolicyRule>& granted);
// One line a rule, sorted, verbs of the same resource together: {APIGroups:[""], Resources:["pods"], Verbs:["get"]}.
std::string compact_text(const std::vector<PolicyRule>& rules);

}  // namespace tessera::apiserver
