#include "apiserver/front_auth.h"

#include <algorithm>

namespace tessera::apiserver {
namespace {

using base::Code;

constexpr std::string_view kAuthenticated = "system:authenticated";

// Takes as long for a near miss as for a far one.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
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
  if (std::ranges::find(caller.groups, kAuthenticated) == caller.groups.end()) {
    caller.groups.emplace_back(kAuthenticated);
  }
  caller.user_agent = request.header("user-agent");
  return caller;
}

bool is_master(const Caller& caller) {
  return std::ranges::find(caller.groups, "system:masters") != caller.groups.end();
}

bool is_discovery(std::string_view method, std::string_view path) {
  if (method != "GET" && method != "HEAD") return false;
  for (const std::string_view root : {"/api", "/apis", "/openapi"}) {
    if (path == root || (path.starts_with(root) && path[root.size()] == '/')) return true;
  }
  return false;
}

}  // namespace

base::Result<Caller> authenticate(const http::Request& request, const Tokens& tokens) {
  if (!request.peer_common_name.empty()) {
    return known({request.peer_common_name, request.peer_organizations, {}}, request);
  }
  const std::string_view token = bearer_token(request.header("authorization"));
  const Caller* found = nullptr;
  for (const auto& [secret, caller] : tokens) {
    if (!secret.empty() && same_secret(token, secret)) found = &caller;
  }
  if (token.empty() || found == nullptr) return base::error(Code::kUnauthorized, "Unauthorized");
  return known(*found, request);
}

base::Result<Caller> impersonate(const http::Request& request, Caller caller) {
  Caller other;
  bool asked = false;
  for (const auto& [name, value] : request.headers) {
    if (!name.starts_with("impersonate-")) continue;
    asked = true;
    if (name == "impersonate-user") other.user = value;
    if (name == "impersonate-group") other.groups.push_back(value);
  }
  if (!asked) return caller;
  if (other.user.empty()) {
    return base::error(
        Code::kBadRequest,
        "requested impersonation without impersonating a user: send Impersonate-User");
  }
  if (!is_master(caller)) {
    return base::error(
        Code::kForbidden,
        "users \"{}\" is forbidden: User \"{}\" cannot impersonate resource \"users\" "
        "in API group \"\" at the cluster scope",
        other.user, caller.user);
  }
  return known(std::move(other), request);
}

base::Status authorize(const Caller& caller, const Operation& operation) {
  if (is_master(caller)) return {};
  const kube::Request& request = operation.request;
  const std::string& group = request.gvr.group;
  const std::string& plural = request.gvr.resource;
  std::string resource = plural;
  if (!request.subresource.empty()) resource.append("/").append(request.subresource);
  std::string object = group.empty() ? plural : fmt::format("{}.{}", plural, group);
  if (!request.name.empty()) object += fmt::format(" \"{}\"", request.name);
  const std::string where = request.ns.empty() ? "at the cluster scope"
                                               : fmt::format("in the namespace \"{}\"", request.ns);
  return base::error(
      Code::kForbidden,
      "{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}", object,
      caller.user, operation.verb, resource, request.gvr.group, where);
}

base::Status authorize_path(const Caller& caller, std::string_view method, std::string_view path) {
  if (is_master(caller) || is_discovery(method, path)) return {};
  std::string verb(method);
  for (char& c : verb) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return base::error(Code::kForbidden, "forbidden: User \"{}\" cannot {} path \"{}\"", caller.user,
                     verb, path);
}

}  // namespace tessera::apiserver
