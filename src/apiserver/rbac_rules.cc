#include "apiserver/rbac_rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "apiserver/rbac_text.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using Strings = std::vector<std::string>;

Strings strings_of(const Value& list) {
  Strings out;
  out.reserve(list.size());
  for (const Value& item : list.items()) out.push_back(item.str());
  return out;
}

bool has(const Strings& list, std::string_view wanted) {
  return std::ranges::find(list, wanted) != list.end();
}

bool has_or_all(const Strings& list, std::string_view wanted) {
  return std::ranges::any_of(
      list, [&](const std::string& item) { return item == "*" || item == wanted; });
}

bool is_combined(std::string_view item, std::string_view resource, std::string_view subresource) {
  if (subresource.empty()) return item == resource;
  return item.size() == resource.size() + 1 + subresource.size() && item.starts_with(resource) &&
         item[resource.size()] == '/' && item.ends_with(subresource);
}

bool resource_matches(const Strings& list, std::string_view resource,
                      std::string_view subresource) {
  return std::ranges::any_of(list, [&](const std::string& item) {
    return item == "*" || is_combined(item, resource, subresource) ||
           (!subresource.empty() && is_combined(item, "*", subresource));
  });
}

// "/logs/*" stands for all that begins with "/logs/".
bool url_covers(std::string_view pattern, std::string_view path) {
  if (pattern == path) return true;
  if (!pattern.ends_with('*')) return false;
  while (pattern.ends_with('*')) pattern.remove_suffix(1);
  return path.starts_with(pattern);
}

bool url_matches(const Strings& list, std::string_view path) {
  return std::ranges::any_of(list, [&](const std::string& item) { return url_covers(item, path); });
}

bool resource_covers(const Strings& list, std::string_view resource) {
  if (has_or_all(list, resource)) return true;
  const size_t slash = resource.find('/');
  return slash != std::string_view::npos && has(list, "*" + std::string(resource.substr(slash)));
}

// `one` has at most one of each.
bool rule_covers(const PolicyRule& held, const PolicyRule& one) {
  if (!has_or_all(held.verbs, one.verbs[0])) return false;
  if (!one.urls.empty()) return url_matches(held.urls, one.urls[0]);
  if (!has_or_all(held.groups, one.groups[0])) return false;
  if (!resource_covers(held.resources, one.resources[0])) return false;
  return held.names.empty() || (!one.names.empty() && has(held.names, one.names[0]));
}

void break_down(const PolicyRule& rule, std::vector<PolicyRule>& out) {
  for (const std::string& group : rule.groups) {
    for (const std::string& resource : rule.resources) {
      for (const std::string& verb : rule.verbs) {
        if (rule.names.empty()) out.push_back({{verb}, {group}, {resource}, {}, {}});
        for (const std::string& name : rule.names) {
          out.push_back({{verb}, {group}, {resource}, {name}, {}});
        }
      }
    }
  }
  for (const std::string& url : rule.urls) {
    for (const std::string& verb : rule.verbs) out.push_back({{verb}, {}, {}, {}, {url}});
  }
}

}  // namespace

std::vector<PolicyRule> policy_rules(const Value& rules) {
  std::vector<PolicyRule> out;
  out.reserve(rules.size());
  for (const Value& rule : rules.items()) {
    out.push_back({strings_of(rule["verbs"]), strings_of(rule["apiGroups"]),
                   strings_of(rule["resources"]), strings_of(rule["resourceNames"]),
                   strings_of(rule["nonResourceURLs"])});
  }
  return out;
}

bool allows(const PolicyRule& rule, const Attributes& wanted) {
  if (!has_or_all(rule.verbs, wanted.verb)) return false;
  if (wanted.on_path) return url_matches(rule.urls, wanted.path);
  return has_or_all(rule.groups, wanted.group) &&
         resource_matches(rule.resources, wanted.resource, wanted.subresource) &&
         (rule.names.empty() || has(rule.names, wanted.name));
}

std::vector<PolicyRule> not_covered(const std::vector<PolicyRule>& held,
                                    const std::vector<PolicyRule>& granted) {
  std::vector<PolicyRule> parts;
  for (const PolicyRule& rule : granted) break_down(rule, parts);
  std::erase_if(parts, [&](const PolicyRule& one) {
    return std::ranges::any_of(held,
                               [&](const PolicyRule& rule) { return rule_covers(rule, one); });
  });
  return parts;
}

std::string compact_text(const std::vector<PolicyRule>& rules) {
  std::map<std::pair<std::string, std::string>, PolicyRule> joined;
  std::set<std::string> lines;
  for (const PolicyRule& rule : rules) {
    if (rule.groups.size() != 1 || rule.resources.size() != 1 || !rule.names.empty()) {
      lines.insert(rule_text(rule));
      continue;
    }
    const auto [at, fresh] = joined.try_emplace({rule.groups[0], rule.resources[0]}, rule);
    if (!fresh)
      at->second.verbs.insert(at->second.verbs.end(), rule.verbs.begin(), rule.verbs.end());
  }
  for (const auto& [key, rule] : joined) lines.insert(rule_text(rule));
  std::string out;
  for (const std::string& line : lines) out.append(out.empty() ? "" : "\n").append(line);
  return out;
}

}  // namespace tessera::apiserver
