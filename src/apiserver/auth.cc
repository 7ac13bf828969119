#include "apiserver/auth.h"

#include <algorithm>

#include "apiserver/node_access.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr std::string_view kIssuer = "https://kubernetes.default.svc";
constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";
constexpr size_t kVerifiedMax = 1024;

Value list_of(const std::vector<std::string>& items) {
  Value out = Value::array();
  for (const std::string& item : items) out.push_back(item);
  return out;
}

Caller caller_of(const TokenClaims& claims) {
  Caller out;
  out.user = claims.subject;
  out.groups = account_groups(claims.ns);
  out.groups.emplace_back("system:authenticated");
  out.uid = claims.account.uid;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out.extra["authentication.kubernetes.io/" + std::string(key)] = {value};
  };
  if (!claims.id.empty()) add("credential-id", "JTI=" + claims.id);
  add("pod-name", claims.pod.name);
  add("pod-uid", claims.pod.uid);
  add("node-name", claims.node.name);
  add("node-uid", claims.node.uid);
  return out;
}

// Gone for more than a minute, though still there.
bool long_deleted(const Value& object, base::Time now) {
  const std::string_view text = object["metadata"]["deletionTimestamp"].as_string();
  if (text.empty()) return false;
  const auto time = base::parse_rfc3339(text);
  return !time || now - base::seconds(60) > *time;
}

}  // namespace

bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

Value user_value(const Caller& caller) {
  Value out = Value::object({{"username", caller.user}});
  if (!caller.uid.empty()) out.set("uid", caller.uid);
  if (!caller.groups.empty()) out.set("groups", list_of(caller.groups));
  for (const auto& [key, values] : caller.extra) out.ref("extra").set(key, list_of(values));
  return out;
}

Access::Access(std::shared_ptr<const Store> store, const Kinds& kinds, const base::Clock& clock,
               std::string key_pem)
    : store_(std::move(store)), kinds_(kinds), clock_(clock), key_pem_(std::move(key_pem)) {}

void Access::load() {
  for (const char* plural : {"roles", "clusterroles", "rolebindings", "clusterrolebindings"}) {
    const Kind* kind = kinds_.find({std::string(kRbacGroup), "v1", plural});
    if (kind == nullptr) continue;
    const auto page = store_->list(kind, {});
    if (!page) continue;
    for (const Value& object : page->items) rbac_.apply(plural, Value(), object);
  }
}

void Access::on_change(const Store::Change& change) {
  if (change.kind->group == kRbacGroup)
    rbac_.apply(change.kind->plural, change.before, change.after);
}

void Access::accept_tokens(Tokens tokens) {
  const std::lock_guard lock(mutex_);
  tokens_ = std::move(tokens);
}

base::Result<http::SigningKey> Access::key() {
  const std::lock_guard lock(mutex_);
  if (!key_) {
    auto made = key_pem_.empty() ? http::SigningKey::make() : http::SigningKey::from_pem(key_pem_);
    if (!made) return base::error(made.error());
    key_ = std::move(*made);
  }
  return *key_;
}

std::string_view Access::issuer() const {
  return kIssuer;
}

Value Access::find(std::string_view group, std::string_view plural, std::string_view ns,
                   std::string_view name) const {
  const Kind* kind = kinds_.find({std::string(group), "v1", std::string(plural)});
  if (kind == nullptr) return {};
  return store_->durable(kind, store_key(*kind, ns, name)).object;
}

bool Access::any_pod(std::string_view ns, const std::function<bool(const Value&)>& that) const {
  const Kind* kind = kinds_.find({"", "v1", "pods"});
  if (kind == nullptr) return false;
  Store::Range range;
  range.prefix = std::string(ns) + "/";
  range.limit = 1;
  range.filter = that;
  const auto page = store_->list(kind, range);
  return page && !page->items.empty();
}

Decision Access::decide(const Caller& caller, const Attributes& wanted) {
  const auto node = node_of(caller);
  if (!node || is_master(caller)) return rbac_.decide(caller, wanted);
  NodeDecision first = node_decide(*this, *node, wanted);
  if (first.allowed) return Decision{.allowed = true};
  Decision second = rbac_.decide(caller, wanted);
  if (second.allowed || first.reason.empty()) return second;
  if (!second.denied_because.empty()) first.reason += "\n" + second.denied_because;
  second.denied_because = std::move(first.reason);
  return second;
}

base::Result<TokenClaims> Access::read_known(std::string_view token) {
  TS_TRY(const http::SigningKey key, this->key());
  std::string text(token);
  {
    const std::lock_guard lock(mutex_);
    const auto found = verified_.find(text);
    if (found != verified_.end()) return found->second;
  }
  TS_TRY(TokenClaims claims, read_token(key, token));
  if (claims.issuer != kIssuer) return base::error(Code::kUnauthorized, "invalid bearer token");
  const std::lock_guard lock(mutex_);
  if (verified_.size() >= kVerifiedMax) verified_.clear();
  verified_.emplace(std::move(text), claims);
  return claims;
}

base::Status Access::check_bond(std::string_view plural, std::string_view ns, const TokenBond& bond,
                                std::string_view what) const {
  if (bond.name.empty()) return {};
  const Value object = find("", plural, ns, bond.name);
  const std::string_view uid = object["metadata"]["uid"].as_string();
  if (object.is_null() || long_deleted(object, clock_.now())) {
    return base::error(Code::kUnauthorized, "service account token has been invalidated");
  }
  if (uid == bond.uid) return {};
  return base::error(Code::kUnauthorized,
                     "{} UID ({}) does not match service account {} ref claim "
                     "({})",
                     what, uid, what, bond.uid);
}

base::Status Access::check_bonds(const TokenClaims& claims) const {
  TS_TRY_STATUS(check_bond("serviceaccounts", claims.ns, claims.account, "service account"));
  TS_TRY_STATUS(check_bond("secrets", claims.ns, claims.secret, "secret"));
  TS_TRY_STATUS(check_bond("pods", claims.ns, claims.pod, "pod"));
  // The node of a pod's token only tells where the pod runs.
  return claims.pod.name.empty() ? check_bond("nodes", "", claims.node, "node") : base::Status();
}

base::Result<Access::Known> Access::authenticate(std::string_view token,
                                                 std::span<const std::string> audiences) {
  const std::string own(kIssuer);
  const std::span<const std::string> wanted = audiences.empty() ? std::span(&own, 1) : audiences;
  {
    const std::lock_guard lock(mutex_);
    const Caller* found = nullptr;
    for (const auto& [secret, caller] : tokens_) {
      if (!secret.empty() && same_secret(token, secret)) found = &caller;
    }
    if (found != nullptr) return Known{*found, {wanted.begin(), wanted.end()}};
  }
  TS_TRY(const TokenClaims claims, read_known(token));
  TS_TRY_STATUS(check_token_times(claims, clock_.now()));
  Known known;
  for (const std::string& audience : wanted) {
    if (std::ranges::find(claims.audiences, audience) != claims.audiences.end()) {
      known.audiences.push_back(audience);
    }
  }
  if (known.audiences.empty()) {
    return base::error(Code::kUnauthorized, "token audiences are not among those asked for");
  }
  TS_TRY_STATUS(check_bonds(claims));
  known.caller = caller_of(claims);
  return known;
}

}  // namespace tessera::apiserver
