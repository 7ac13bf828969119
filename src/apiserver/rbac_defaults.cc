#include "apiserver/rbac_defaults.h"

#include <algorithm>

#include "apiserver/rbac.h"
#include "base/check.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using Words = std::vector<std::string_view>;

Words split(std::string_view text, char by) {
  Words out;
  while (!text.empty()) {
    const size_t end = text.find(by);
    if (end != 0) out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

Value list_of(std::string_view text) {
  Value out = Value::array();
  for (const std::string_view word : split(text, ',')) out.push_back(word == "core" ? "" : word);
  return out;
}

Value object_of(std::string_view kind, std::string_view ns, std::string_view name) {
  Value out = Value::object({{"apiVersion", "rbac.authorization.k8s.io/v1"}, {"kind", kind}});
  Value& meta = out.ref("metadata");
  meta.set("name", name);
  if (!ns.empty()) meta.set("namespace", ns);
  meta.ref("labels").set("kubernetes.io/bootstrapping", "rbac-defaults");
  meta.ref("annotations").set("rbac.authorization.kubernetes.io/autoupdate", "true");
  return out;
}

// "namespace/name", or a name alone; slashes do not stand in the names themselves.
std::pair<std::string_view, std::string_view> split_name(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {{}, text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

Value subject_of(std::string_view word) {
  const size_t colon = word.find(':');
  const std::string_view kind = word.substr(0, colon);
  const std::string_view name = word.substr(colon + 1);
  if (kind == "account") {
    const auto [ns, account] = split_name(name);
    return Value::object({{"kind", "ServiceAccount"}, {"name", account}, {"namespace", ns}});
  }
  return Value::object({{"apiGroup", "rbac.authorization.k8s.io"},
                        {"kind", kind == "user" ? "User" : "Group"},
                        {"name", name}});
}

DefaultRole role_of(const Words& words) {
  const auto [ns, name] = split_name(words[1]);
  DefaultRole out{ns.empty() ? "clusterroles" : "roles",
                  object_of(ns.empty() ? "ClusterRole" : "Role", ns, name)};
  out.object.set("rules", Value::array());
  return out;
}

DefaultRole binding_of(const Words& words) {
  const auto [ns, name] = split_name(words[1]);
  DefaultRole out{ns.empty() ? "clusterrolebindings" : "rolebindings",
                  object_of(ns.empty() ? "ClusterRoleBinding" : "RoleBinding", ns, name)};
  out.object.set("roleRef", Value::object({{"apiGroup", "rbac.authorization.k8s.io"},
                                           {"kind", ns.empty() ? "ClusterRole" : "Role"},
                                           {"name", words[2]}}));
  Value subjects = Value::array();
  for (size_t i = 3; i < words.size(); ++i) subjects.push_back(subject_of(words[i]));
  if (!subjects.empty()) out.object.set("subjects", std::move(subjects));
  return out;
}

void add_line(const Words& words, Value& role) {
  if (words[0] == "label") {
    role.ref("metadata", "labels").set(words[1], "true");
  } else if (words[0] == "aggregate") {
    Value selector = Value::object({{"matchLabels", Value::object({{words[1], "true"}})}});
    role.ref("aggregationRule", "clusterRoleSelectors").push_back(std::move(selector));
  } else if (words[0] == "url") {
    role.ref("rules").push_back(
        Value::object({{"verbs", list_of(words[1])}, {"nonResourceURLs", list_of(words[2])}}));
  } else {
    TS_CHECK(words[0] == "may" && words.size() >= 4, "rbac.roles: {}", words[0]);
    Value rule = Value::object({{"verbs", list_of(words[1])},
                                {"apiGroups", list_of(words[2])},
                                {"resources", list_of(words[3])}});
    if (words.size() > 4) rule.set("resourceNames", list_of(words[4]));
    role.ref("rules").push_back(std::move(rule));
  }
}

// The rules of aggregated roles, so that none has to be written a second time.
void aggregate(std::vector<DefaultRole>& roles) {
  Rbac rbac;
  for (const DefaultRole& role : roles) rbac.apply(role.plural, Value(), role.object);
  const auto aggregates = rbac.stale_aggregates();
  for (DefaultRole& role : roles) {
    const auto found = aggregates.find(role.object["metadata"]["name"].str());
    if (found != aggregates.end() && role.plural == "clusterroles") {
      role.object.set("rules", found->second);
    }
  }
}

void add_members(const Value& wanted, Value& out, std::string_view field) {
  for (const json::Member& one : wanted["metadata"][field].members()) {
    if (out["metadata"][field].contains(one.name())) continue;
    out.ref("metadata", field).set(one.name(), one.value);
  }
}

// Items of a list that are not there yet.
void add_items(const Value& wanted, Value& list) {
  for (const Value& one : wanted.items()) {
    const auto items = list.items();
    if (std::ranges::find(items, one) == items.end()) list.push_back(one);
  }
}

Value words_of(const std::vector<std::string>& words) {
  Value out = Value::array();
  for (const std::string& word : words) out.push_back(word);
  return out;
}

Value rule_of(const PolicyRule& rule) {
  Value out = Value::object({{"verbs", words_of(rule.verbs)}});
  if (!rule.groups.empty()) out.set("apiGroups", words_of(rule.groups));
  if (!rule.resources.empty()) out.set("resources", words_of(rule.resources));
  if (!rule.names.empty()) out.set("resourceNames", words_of(rule.names));
  if (!rule.urls.empty()) out.set("nonResourceURLs", words_of(rule.urls));
  return out;
}

}  // namespace

Value reconciled(const Value& found, const Value& wanted) {
  const Value& update =
      found["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"];
  if (update.as_string() == "false") return found;
  Value out = found;
  add_members(wanted, out, "labels");
  add_members(wanted, out, "annotations");
  const Value& selectors = wanted["aggregationRule"]["clusterRoleSelectors"];
  if (!selectors.empty()) {  // its rules are put together from others
    add_items(selectors, out.ref("aggregationRule", "clusterRoleSelectors"));
    return out;
  }
  if (wanted.contains("rules")) {
    const auto missing = not_covered(policy_rules(found["rules"]), policy_rules(wanted["rules"]));
    for (const PolicyRule& rule : missing) out.ref("rules").push_back(rule_of(rule));
  }
  if (wanted.contains("subjects")) add_items(wanted["subjects"], out.ref("subjects"));
  return out;
}

std::vector<DefaultRole> default_roles(std::string_view text) {
  std::vector<DefaultRole> out;
  for (const std::string_view line : split(text, '\n')) {
    const Words words = split(line, ' ');
    if (words.empty() || words[0].starts_with('#')) continue;
    if (words[0] == "role") {
      out.push_back(role_of(words));
    } else if (words[0] == "bind") {
      out.push_back(binding_of(words));
    } else {
      add_line(words, out.back().object);
    }
  }
  aggregate(out);
  return out;
}

}  // namespace tessera::apiserver
