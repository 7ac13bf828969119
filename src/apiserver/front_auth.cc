#include "apiserver/front_auth.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "apiserver/rbac_text.h"
#include "kube/labels.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using base::Code;

constexpr std::string_view kAuthenticated = "system:authenticated";
constexpr std::string_view kUnauthenticated = "system:unauthenticated";
constexpr std::string_view kAnonymous = "system:anonymous";
constexpr std::string_view kAuthenticationGroup = "authentication.k8s.io";

bool in_group(const Caller& caller, std::string_view group) {
  return std::ranges::find(caller.groups, group) != caller.groups.end();
}

std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  for (size_t i = 0; i < kScheme.size(); ++i) {
    if ((authorization[i] | 0x20) != (kScheme[i] | 0x20)) return {};
  }
  authorization.remove_prefix(kScheme.size());
  while (authorization.starts_with(' ')) authorization.remove_prefix(1);
  return authorization;
}

Caller known(Caller caller, const http::Request& request) {
  if (!in_group(caller, kAuthenticated)) caller.groups.emplace_back(kAuthenticated);
  caller.user_agent = request.header("user-agent");
  return caller;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// %-escapes decoded; the text as it is where one is broken.
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) return std::string(text);
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// What the headers ask for.
struct Mask {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::string>> extra;
  bool asked = false;
};

Mask read_mask(const http::Request& request) {
  constexpr std::string_view kExtra = "impersonate-extra-";
  Mask mask;
  for (const auto& [name, value] : request.headers) {
    if (!name.starts_with("impersonate-")) continue;
    mask.asked = true;
    if (name == "impersonate-user" && mask.user.empty()) mask.user = value;
    if (name == "impersonate-uid" && mask.uid.empty()) mask.uid = value;
    if (name == "impersonate-group") mask.groups.push_back(value);
    if (name.starts_with(kExtra)) {
      mask.extra.emplace_back(unescaped(std::string_view(name).substr(kExtra.size())), value);
    }
  }
  return mask;
}

std::string quoted_list(std::span<const std::string> words) {
  if (words.empty()) return "[]string(nil)";
  return fmt::format("[]string{{\"{}\"}}", fmt::join(words, "\", \""));
}

// What was asked for, as Kubernetes prints it.
std::string text_of(const Mask& mask) {
  std::string extra = "map[string][]string(nil)";
  if (!mask.extra.empty()) {
    std::map<std::string, std::vector<std::string>> sorted;
    for (const auto& [key, value] : mask.extra) sorted[key].push_back(value);
    extra = "map[string][]string{";
    for (const auto& [key, values] : sorted) {
      extra +=
          fmt::format("{}\"{}\":{}", extra.ends_with('{') ? "" : ", ", key, quoted_list(values));
    }
    extra += '}';
  }
  return fmt::format("&user.DefaultInfo{{Name:\"{}\", UID:\"{}\", Groups:{}, Extra:{}}}", mask.user,
                     mask.uid, quoted_list(mask.groups), extra);
}

// Namespace and name of "system:serviceaccount:<namespace>:<name>".
std::optional<std::pair<std::string_view, std::string_view>> account_of(std::string_view user) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (!user.starts_with(kPrefix)) return std::nullopt;
  user.remove_prefix(kPrefix.size());
  const size_t colon = user.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == user.size()) {
    return std::nullopt;
  }
  return std::pair(user.substr(0, colon), user.substr(colon + 1));
}

base::Status may_act(Access& access, const Caller& caller, std::string_view group,
                     std::string_view resource, std::string_view name,
                     std::string_view subresource = {}, std::string_view ns = {}) {
  Attributes wanted;
  wanted.verb = "impersonate";
  wanted.group = group;
  wanted.resource = resource;
  wanted.subresource = subresource;
  wanted.ns = ns;
  wanted.name = name;
  const Decision decision = access.rbac().decide(caller, wanted);
  if (decision.allowed) return {};
  return base::error(denial(caller, wanted, decision.reason()));
}

base::Status may_wear(Access& access, const Caller& caller, const Mask& mask) {
  if (is_master(caller)) return {};
  if (const auto account = account_of(mask.user)) {
    const auto& [ns, name] = *account;
    TS_TRY_STATUS(may_act(access, caller, "", "serviceaccounts", name, "", ns));
  } else {
    TS_TRY_STATUS(may_act(access, caller, "", "users", mask.user));
  }
  for (const std::string& group : mask.groups) {
    TS_TRY_STATUS(may_act(access, caller, "", "groups", group));
  }
  for (const auto& [key, value] : mask.extra) {
    TS_TRY_STATUS(may_act(access, caller, kAuthenticationGroup, "userextras", value, key));
  }
  if (mask.uid.empty()) return {};
  return may_act(access, caller, kAuthenticationGroup, "uids", mask.uid);
}

// Nothing but the name of a kubelet: its group is known.
bool is_node_alone(const Mask& mask) {
  constexpr std::string_view kPrefix = "system:node:";
  if (!mask.user.starts_with(kPrefix) || !mask.groups.empty()) return false;
  if (!mask.uid.empty() || !mask.extra.empty()) return false;
  return kube::check_dns1123_subdomain(std::string_view(mask.user).substr(kPrefix.size())).empty();
}

Caller masked(const Mask& mask) {
  Caller out;
  out.user = mask.user;
  out.uid = mask.uid;
  out.groups = mask.groups;
  const auto account = account_of(mask.user);
  if (account && mask.groups.empty()) out.groups = account_groups(account->first);
  for (const auto& [key, value] : mask.extra) out.extra[key].push_back(value);
  if (out.user == kAnonymous) {
    if (!in_group(out, kUnauthenticated)) out.groups.emplace_back(kUnauthenticated);
  } else if (!in_group(out, kAuthenticated) && !in_group(out, kUnauthenticated)) {
    out.groups.emplace_back(kAuthenticated);
  }
  return out;
}

}  // namespace

bool is_open_path(std::span<const std::string> segments) {
  static constexpr std::array<std::string_view, 4> kOpen = {"healthz", "livez", "readyz",
                                                            "version"};
  return segments.size() == 1 && std::ranges::find(kOpen, segments[0]) != kOpen.end();
}

base::Result<Caller> authenticate(const http::Request& request, Access& access, bool open) {
  if (!request.peer_common_name.empty()) {
    Caller caller;
    caller.user = request.peer_common_name;
    caller.groups = request.peer_organizations;
    return known(std::move(caller), request);
  }
  const std::string_view authorization = request.header("authorization");
  if (authorization.empty() && open && !request.peer_refused) {
    Caller caller;
    caller.user = kAnonymous;
    caller.groups = {std::string(kUnauthenticated)};
    caller.user_agent = request.header("user-agent");
    return caller;
  }
  const std::string_view token = bearer_token(authorization);
  if (!token.empty()) {
    // Why a token is not taken is for its owner to find out with a TokenReview.
    if (auto found = access.authenticate(token, {}))
      return known(std::move(found->caller), request);
  }
  return base::error(Code::kUnauthorized, "Unauthorized");
}

base::Result<Caller> impersonate(const http::Request& request, Caller caller, Access& access) {
  const Mask mask = read_mask(request);
  if (!mask.asked) return caller;
  if (mask.user.empty()) {
    return base::error(Code::kBadRequest, "requested {} without impersonating a user name",
                       text_of(mask));
  }
  TS_TRY_STATUS(may_wear(access, caller, mask));
  Caller other = masked(mask);
  if (is_master(caller) && is_node_alone(mask))
    other.groups = {"system:nodes", other.groups.back()};
  other.user_agent = std::move(caller.user_agent);
  return other;
}

Attributes attributes_of(const Operation& operation, std::string& name, std::string& node) {
  const kube::Request& request = operation.request;
  Attributes out;
  out.verb = operation.verb;
  out.group = request.gvr.group;
  out.resource = request.gvr.resource;
  out.subresource = request.subresource;
  out.ns = request.ns;
  name = request.name;
  if (name.empty() && (out.verb == "list" || out.verb == "watch")) {
    if (const auto fields = kube::FieldSelector::parse(request.option("fieldSelector"))) {
      name = fields->exact("metadata.name").value_or(std::string_view());
      node = fields->exact("spec.nodeName").value_or(std::string_view());
    }
  }
  out.name = name;
  out.on_node = node;
  if (out.group.empty() && out.resource == "namespaces" && !request.name.empty()) out.ns = out.name;
  return out;
}

base::Result<Decision> authorize(Access& access, const Caller& caller, const Operation& operation) {
  if (is_master(caller)) return Decision{.allowed = true};
  std::string name;
  std::string node;
  const Attributes wanted = attributes_of(operation, name, node);
  Decision decision = access.decide(caller, wanted);
  if (decision.allowed) return decision;
  return base::error(denial(caller, wanted, decision.reason()));
}

base::Result<Decision> authorize_path(Access& access, const Caller& caller, std::string_view method,
                                      std::string_view path) {
  if (is_master(caller)) return Decision{.allowed = true};
  std::string verb(method);
  for (char& c : verb) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  Attributes wanted;
  wanted.verb = verb;
  wanted.path = path;
  wanted.on_path = true;
  Decision decision = access.decide(caller, wanted);
  if (decision.allowed) return decision;
  return base::error(denial(caller, wanted, decision.reason()));
}

}  // namespace tessera::apiserver
