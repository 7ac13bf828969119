#include "apiserver/rbac.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "apiserver/rbac_text.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kKnownMax = 4096;
constexpr int kAggregateDepthMax = 8;

std::string key_of(std::string_view ns, std::string_view name) {
  return std::string(ns).append("/").append(name);
}

std::string key_of(const Value& object) {
  return key_of(object["metadata"]["namespace"].as_string(),
                object["metadata"]["name"].as_string());
}

// An aggregate of one error is that error, of several a list; each text once.
std::string aggregate_text(const std::vector<std::string>& errors) {
  std::vector<std::string> once;
  for (const std::string& error : errors) {
    if (std::ranges::find(once, error) == once.end()) once.push_back(error);
  }
  if (once.size() == 1) return once[0];
  std::string out;
  for (const std::string& error : once) out.append(out.empty() ? "" : ", ").append(error);
  return once.empty() ? out : "[" + out + "]";
}

std::string identity_of(const Caller& caller) {
  std::string out = std::to_string(caller.user.size()) + ":" + caller.user;
  for (const std::string& group : caller.groups) {
    out.append(std::to_string(group.size())).append(":").append(group);
  }
  return out;
}

// Runs f on each grant that counts in a namespace, until it answers false.
template <class F>
void each_grant(const Grants& grants, std::string_view ns, F f) {
  for (const Grant& grant : grants.cluster) {
    if (!f(grant)) return;
  }
  if (ns.empty()) return;
  const auto local = grants.by_namespace.find(std::string(ns));
  if (local == grants.by_namespace.end()) return;
  for (const Grant& grant : local->second) {
    if (!f(grant)) return;
  }
}

}  // namespace

bool is_master(const Caller& caller) {
  return std::ranges::find(caller.groups, "system:masters") != caller.groups.end();
}

std::string Decision::reason() const {
  if (by != nullptr) return "RBAC: allowed by " + by->source;
  return denied_because;
}

void Rbac::apply(std::string_view plural, const Value& before, const Value& after) {
  const bool role = plural == "roles" || plural == "clusterroles";
  if (!role && plural != "rolebindings" && plural != "clusterrolebindings") return;
  const std::lock_guard lock(mutex_);
  known_.clear();
  if (!role) return apply_binding(before, after);
  auto& table = plural == "roles" ? roles_ : cluster_roles_;
  const std::string key = key_of(after.is_null() ? before : after);
  aggregates_fresh_ = aggregates_fresh_ && plural == "roles";
  if (after.is_null()) {
    table.erase(key);
  } else {
    table[key] = read_role(after);
  }
}

Rbac::Role Rbac::read_role(const Value& object) {
  Role role;
  role.rules = object["rules"];
  role.labels = object["metadata"]["labels"];
  for (const Value& selector : object["aggregationRule"]["clusterRoleSelectors"].items()) {
    auto parsed = kube::LabelSelector::from_json(selector, "clusterRoleSelectors");
    // What cannot be read selects nothing, so that the role still counts as aggregated.
    role.parts.push_back(parsed ? std::move(*parsed) : kube::LabelSelector::nothing());
  }
  role.parsed = std::make_shared<const Rules>(policy_rules(role.rules));
  return role;
}

Rbac::Binding Rbac::read_binding(const Value& object) {
  Binding binding;
  binding.name = object["metadata"]["name"].str();
  binding.ns = object["metadata"]["namespace"].str();
  binding.role_kind = object["roleRef"]["kind"].str();
  binding.role_name = object["roleRef"]["name"].str();
  for (const Value& subject : object["subjects"].items()) {
    const std::string_view kind = subject["kind"].as_string();
    const std::string name = subject["name"].str();
    if (kind == "ServiceAccount") {
      std::string ns = subject["namespace"].str();
      if (ns.empty()) ns = binding.ns;
      if (ns.empty()) continue;
      binding.subjects.push_back({fmt::format("usystem:serviceaccount:{}:{}", ns, name),
                                  "ServiceAccount " + go_quote(name + "/" + ns)});
    } else if (kind == "User" || kind == "Group") {
      binding.subjects.push_back({(kind == "User" ? "u" : "g") + name,
                                  std::string(kind).append(" ").append(go_quote(name))});
    }
  }
  return binding;
}

void Rbac::apply_binding(const Value& before, const Value& after) {
  if (!before.is_null()) {
    for (const Subject& subject : read_binding(before).subjects) {
      const auto found = by_subject_.find(subject.key);
      if (found == by_subject_.end()) continue;
      found->second.erase(key_of(before));
      if (found->second.empty()) by_subject_.erase(found);
    }
  }
  if (after.is_null()) return;
  const auto binding = std::make_shared<const Binding>(read_binding(after));
  for (const Subject& subject : binding->subjects) {
    by_subject_[subject.key][key_of(after)] = binding;
  }
}

// The rules of all ClusterRoles that the selectors choose, each once. A part may be aggregated itself.
Value Rbac::aggregate(const std::string& name) const {
  Value out = Value::array();
  std::set<std::string> seen = {name};
  std::vector<std::pair<std::string, int>> todo = {{name, 0}};
  std::set<std::string> lines;
  while (!todo.empty()) {
    const auto [at, depth] = todo.back();
    todo.pop_back();
    const Role& role = cluster_roles_.at(at);
    if (role.parts.empty()) {
      for (const Value& rule : role.rules.items()) {
        if (lines.insert(rule.dump()).second) out.push_back(rule);
      }
      continue;
    }
    if (depth == kAggregateDepthMax) continue;
    std::vector<std::pair<std::string, int>> next;
    for (const kube::LabelSelector& selector : role.parts) {
      for (const auto& [key, other] : cluster_roles_) {
        if (!selector.matches(other.labels) || !seen.insert(key).second) continue;
        next.emplace_back(key, depth + 1);
      }
    }
    todo.insert(todo.end(), next.rbegin(), next.rend());
  }
  return out;
}

void Rbac::refresh_aggregates() {
  if (aggregates_fresh_) return;
  aggregates_fresh_ = true;
  for (auto& [name, role] : cluster_roles_) {
    if (role.parts.empty()) continue;
    role.parsed = std::make_shared<const Rules>(policy_rules(aggregate(name)));
  }
}

std::map<std::string, Value> Rbac::stale_aggregates() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Value> out;
  for (const auto& [key, role] : cluster_roles_) {
    if (role.parts.empty()) continue;
    Value rules = aggregate(key);
    if (!(rules == role.rules) && !(rules.empty() && role.rules.empty())) {
      out.emplace(key.substr(1), std::move(rules));
    }
  }
  return out;
}

const Rbac::Role* Rbac::find_role(std::string_view kind, std::string_view name,
                                  std::string_view ns) const {
  if (kind != "Role" && kind != "ClusterRole") return nullptr;
  const auto& table = kind == "Role" ? roles_ : cluster_roles_;
  const auto found = table.find(key_of(kind == "Role" ? ns : "", name));
  return found == table.end() ? nullptr : &found->second;
}

Grant Rbac::grant_of(const Binding& binding, const Subject& subject) const {
  Grant grant;
  const bool cluster = binding.ns.empty();
  grant.source = fmt::format("{} {} of {} {} to {}", cluster ? "ClusterRoleBinding" : "RoleBinding",
                             go_quote(cluster ? binding.name : binding.name + "/" + binding.ns),
                             binding.role_kind, go_quote(binding.role_name), subject.text);
  if (const Role* role = find_role(binding.role_kind, binding.role_name, binding.ns)) {
    grant.rules = role->parsed;
  } else {
    grant.missing = fmt::format("{}.rbac.authorization.k8s.io {} not found",
                                binding.role_kind == "Role" ? "role" : "clusterrole",
                                go_quote(binding.role_name));
  }
  return grant;
}

std::shared_ptr<const Grants> Rbac::make_grants(const Caller& caller) {
  refresh_aggregates();
  Bindings mine;
  std::vector<std::string> keys = {"u" + caller.user};
  for (const std::string& group : caller.groups) keys.push_back("g" + group);
  for (const std::string& key : keys) {
    const auto found = by_subject_.find(key);
    if (found != by_subject_.end()) mine.insert(found->second.begin(), found->second.end());
  }
  auto grants = std::make_shared<Grants>();
  for (const auto& [key, binding] : mine) {
    const auto subject = std::ranges::find_if(binding->subjects, [&](const Subject& one) {
      return std::ranges::find(keys, one.key) != keys.end();
    });
    auto& list = binding->ns.empty() ? grants->cluster : grants->by_namespace[binding->ns];
    list.push_back(grant_of(*binding, *subject));
  }
  return grants;
}

std::shared_ptr<const Grants> Rbac::grants_of(const Caller& caller) {
  std::string identity = identity_of(caller);
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(identity);
  if (found != known_.end()) return found->second;
  if (known_.size() >= kKnownMax) known_.clear();
  return known_.emplace(std::move(identity), make_grants(caller)).first->second;
}

Decision Rbac::decide(const Caller& caller, const Attributes& wanted) {
  Decision decision;
  if (is_master(caller)) {
    decision.allowed = true;
    return decision;
  }
  decision.grants = grants_of(caller);
  std::vector<std::string> errors;
  each_grant(*decision.grants, wanted.on_path ? std::string_view() : wanted.ns,
             [&](const Grant& grant) {
               if (grant.rules == nullptr) {
                 errors.push_back(grant.missing);
                 return true;
               }
               for (const PolicyRule& rule : *grant.rules) {
                 if (!allows(rule, wanted)) continue;
                 decision.allowed = true;
                 decision.by = &grant;
                 return false;
               }
               return true;
             });
  if (!decision.allowed && !errors.empty()) {
    decision.denied_because = "RBAC: " + aggregate_text(errors);
  }
  return decision;
}

Rbac::RuleList Rbac::rules_for(const Caller& caller, std::string_view ns) {
  RuleList out;
  std::vector<std::string> errors;
  const auto grants = grants_of(caller);
  each_grant(*grants, ns, [&](const Grant& grant) {
    if (grant.rules == nullptr) {
      errors.push_back(grant.missing);
    } else {
      out.rules.insert(out.rules.end(), grant.rules->begin(), grant.rules->end());
    }
    return true;
  });
  out.errors = aggregate_text(errors);
  return out;
}

std::shared_ptr<const Rules> Rbac::rules_of(std::string_view role_kind, std::string_view name,
                                            std::string_view ns) {
  const std::lock_guard lock(mutex_);
  refresh_aggregates();
  const Role* role = find_role(role_kind, name, ns);
  return role == nullptr ? nullptr : role->parsed;
}

}  // namespace tessera::apiserver
