// Who may do what: roles and bindings, kept ready for decisions.
//
// Shape:   fed one object at a time (apply), in the order of the changes. The rights of a caller are put together at its
//          first question and kept until a role or binding changes. Members of system:masters may do anything.
// Errors:  a binding whose role is missing grants nothing; the denial says so.
// Threads: any.
// Source:  k8s.io/kubernetes pkg/registry/rbac/validation (order and wording); RBAC documentation (aggregation).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/api.h"
#include "apiserver/rbac_rules.h"
#include "kube/labels.h"

namespace tessera::apiserver {

using Rules = std::vector<PolicyRule>;

// One binding that holds for a caller.
struct Grant {
  std::string source;                  // RoleBinding "b/ns" of Role "r" to User "jane"
  std::shared_ptr<const Rules> rules;  // null: the role is missing
  std::string missing;                 // then: role.rbac.authorization.k8s.io "r" not found
};

struct Grants {
  std::vector<Grant> cluster;
  std::unordered_map<std::string, std::vector<Grant>> by_namespace;
};

struct Decision {
  bool allowed = false;
  std::string denied_because{};  // what kept roles from being read; mostly empty
  std::shared_ptr<const Grants> grants{};
  const Grant* by = nullptr;  // within `grants`; null for system:masters

  // As SubjectAccessReview gives it: "RBAC: allowed by ClusterRoleBinding ...".
  std::string reason() const;
};

bool is_master(const Caller& caller);

class Rbac {
 public:
  // `plural` is one of roles, clusterroles, rolebindings, clusterrolebindings; others are ignored. `after` null: deleted.
  void apply(std::string_view plural, const json::Value& before, const json::Value& after);

  Decision decide(const Caller& caller, const Attributes& wanted);

  struct RuleList {
    Rules rules;
    std::string errors;
  };
  // All that a caller may do in a namespace; empty: on the cluster only.
  RuleList rules_for(const Caller& caller, std::string_view ns);
  // The rules behind a binding's roleRef, or null where there is no such role.
  std::shared_ptr<const Rules> rules_of(std::string_view role_kind, std::string_view name,
                                        std::string_view ns);

  // What the rules of aggregated ClusterRoles should be, where they are not yet: name -> rules.
  std::map<std::string, json::Value> stale_aggregates();

 private:
  struct Role {
    json::Value rules;
    json::Value labels;
    std::vector<kube::LabelSelector> parts;  // not empty: aggregated
    std::shared_ptr<const Rules> parsed;
  };
  struct Subject {
    std::string key;   // 'u' and the user's name, or 'g' and the group's
    std::string text;  // as messages name it
  };
  struct Binding {
    std::string name;
    std::string ns;
    std::string role_kind;
    std::string role_name;
    std::vector<Subject> subjects;
  };
  using BindingPtr = std::shared_ptr<const Binding>;
  using Bindings = std::map<std::string, BindingPtr>;

  void apply_binding(const json::Value& before, const json::Value& after);
  static Binding read_binding(const json::Value& object);
  static Role read_role(const json::Value& object);
  json::Value aggregate(const std::string& name) const;
  void refresh_aggregates();
  const Role* find_role(std::string_view kind, std::string_view name, std::string_view ns) const;
  Grant grant_of(const Binding& binding, const Subject& subject) const;
  std::shared_ptr<const Grants> grants_of(const Caller& caller);
  std::shared_ptr<const Grants> make_grants(const Caller& caller);

  std::mutex mutex_;
  std::map<std::string, Role> roles_;  // by "namespace/name"
  std::map<std::string, Role> cluster_roles_;
  std::unordered_map<std::string, Bindings>
      by_subject_;  // subject key -> "namespace/name" -> binding
  bool aggregates_fresh_ = true;
  std::unordered_map<std::string, std::shared_ptr<const Grants>> known_;  // by user and groups
};

}  // namespace tessera::apiserver
