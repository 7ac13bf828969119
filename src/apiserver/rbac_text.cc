#include "apiserver/rbac_text.h"

#include <fmt/core.h>

#include "json/value.h"

namespace tessera::apiserver {
namespace {

// What a caller sent must not become markup where a browser shows the message.
std::string without_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string denial_text(const Caller& caller, const Attributes& wanted) {
  const std::string user = go_quote(caller.user);
  if (wanted.on_path) {
    return fmt::format("User {} cannot {} path {}", user, wanted.verb, go_quote(wanted.path));
  }
  std::string resource(wanted.resource);
  if (!wanted.subresource.empty()) resource.append("/").append(wanted.subresource);
  const std::string where = wanted.ns.empty() ? std::string("at the cluster scope")
                                              : "in the namespace " + go_quote(wanted.ns);
  return fmt::format("User {} cannot {} resource {} in API group {} {}", user, wanted.verb,
                     go_quote(resource), go_quote(wanted.group), where);
}

}  // namespace

std::string go_quote(std::string_view text) {
  return json::Value(text).dump();
}

std::string go_list(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const std::string& item : list) out.append(out.size() > 1 ? " " : "").append(go_quote(item));
  return out + "]";
}

std::string rule_text(const PolicyRule& rule) {
  std::string out = "{";
  const auto add = [&](std::string_view name, const std::vector<std::string>& list) {
    if (list.empty()) return;
    out.append(out.size() > 1 ? ", " : "").append(name).append(":").append(go_list(list));
  };
  add("APIGroups", rule.groups);
  add("Resources", rule.resources);
  add("NonResourceURLs", rule.urls);
  add("ResourceNames", rule.names);
  add("Verbs", rule.verbs);
  return out + "}";
}

base::Error denial(const Caller& caller, const Attributes& wanted, std::string_view reason) {
  std::string text = without_markup(denial_text(caller, wanted));
  if (!reason.empty()) text.append(": ").append(reason);
  if (wanted.on_path) return {base::Code::kForbidden, "forbidden: " + text, {}};
  std::string object(wanted.resource);
  if (!wanted.group.empty()) object.append(".").append(wanted.group);
  if (!wanted.name.empty()) object.append(" ").append(go_quote(wanted.name));
  return {base::Code::kForbidden, object + " is forbidden: " + text, {}};
}

}  // namespace tessera::apiserver
