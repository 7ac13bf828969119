// Who calls, and what they may: what the API server asks itself, and what reviews ask of it.
//
// Shape:   one Access per Api: the rights (Rbac), and the tokens that it issues and knows. Bound tokens are held against
//          the live objects at every use; their signatures are checked once and remembered.
// Errors:  kUnauthorized with the reason that a token is not taken.
// Threads: any.
// Source:  Kubernetes authentication and authorization documentation; k8s.io/kubernetes pkg/serviceaccount (validator).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apiserver/rbac.h"
#include "apiserver/store.h"
#include "apiserver/token.h"

namespace tessera::apiserver {

using Tokens = std::vector<std::pair<std::string, Caller>>;

class Access {
 public:
  // `key_pem` empty: a key of its own, made at first use, whose tokens end with the process.
  Access(std::shared_ptr<const Store> store, const Kinds& kinds, const base::Clock& clock,
         std::string key_pem);

  Rbac& rbac() { return rbac_; }
  // Whether somebody may: the rules for nodes (node_access.h), then RBAC.
  Decision decide(const Caller& caller, const Attributes& wanted);
  // The rights as they are in the store; then on_change for each change.
  void load();
  void on_change(const Store::Change& change);

  struct Known {
    Caller caller;
    std::vector<std::string> audiences;  // of those asked for
  };
  // `audiences` empty: the server's own.
  base::Result<Known> authenticate(std::string_view token, std::span<const std::string> audiences);
  // Tokens that are known as they are; secrets are compared in constant time.
  void accept_tokens(Tokens tokens);

  base::Result<http::SigningKey> key();
  std::string_view issuer() const;
  // The newest durable state, or null.
  json::Value find(std::string_view group, std::string_view plural, std::string_view ns,
                   std::string_view name) const;
  // Whether `that` holds for some pod of a namespace, as they are durable. It is called under the store's lock.
  bool any_pod(std::string_view ns, const std::function<bool(const json::Value&)>& that) const;

 private:
  base::Result<TokenClaims> read_known(std::string_view token);
  base::Status check_bond(std::string_view plural, std::string_view ns, const TokenBond& bond,
                          std::string_view what) const;
  base::Status check_bonds(const TokenClaims& claims) const;

  const std::shared_ptr<const Store> store_;
  const Kinds& kinds_;
  const base::Clock& clock_;
  Rbac rbac_;
  std::mutex mutex_;
  std::string key_pem_;
  std::optional<http::SigningKey> key_;
  Tokens tokens_;
  std::unordered_map<std::string, TokenClaims> verified_;  // by the token's text
};

// What Kind::virtual_create gets.
struct VirtualCreate {
  const Caller& caller;
  Access& access;
  json::Value object;  // decoded
  std::string_view ns;
  base::Time now;
};

// {"username":..., "uid":..., "groups":[...], "extra":{...}}.
json::Value user_value(const Caller& caller);

// Takes as long for a near miss as for a far one.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace tessera::apiserver
