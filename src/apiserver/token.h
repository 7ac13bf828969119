// Service account tokens: JSON Web Tokens, signed by the key of the data folder.
//
// Format:  RFC 7519, compact, ES256. Claims iss, sub, aud, exp, iat, nbf, jti and "kubernetes.io": {namespace,
//          serviceaccount, pod, secret, node}, each of the last four {name, uid}.
// Units:   times in seconds since the epoch.
// Errors:  kUnauthorized: not a token of ours, and why.
// Threads: pure.
// Source:  k8s.io/kubernetes pkg/serviceaccount (claims, jwt).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "http/signing_key.h"
#include "json/value.h"

namespace tessera::apiserver {

// What a token is bound to; an empty name: nothing.
struct TokenBond {
  std::string name{};
  std::string uid{};
  bool operator==(const TokenBond&) const = default;
};

struct TokenClaims {
  std::string issuer{};
  std::string subject{};  // system:serviceaccount:<namespace>:<name>
  std::vector<std::string> audiences{};
  std::string id{};  // jti
  int64_t issued = 0;
  int64_t not_before = 0;
  int64_t expires = 0;
  std::string ns{};
  TokenBond account{};
  TokenBond pod{};
  TokenBond secret{};
  TokenBond node{};
  bool operator==(const TokenClaims&) const = default;
};

base::Result<std::string> write_token(const http::SigningKey& key, const TokenClaims& claims);
// Checks form and signature, not the times.
base::Result<TokenClaims> read_token(const http::SigningKey& key, std::string_view text);
// kUnauthorized for a token of another time; clocks may differ by a minute.
base::Status check_token_times(const TokenClaims& claims, base::Time now);

// The public keys as a JSON Web Key Set (RFC 7517), and the discovery document that leads to them.
json::Value token_key_set(const http::SigningKey& key);
json::Value token_issuer_document(std::string_view issuer, std::string_view keys_url);

// "system:serviceaccount:" and so on.
std::string account_user(std::string_view ns, std::string_view name);
std::vector<std::string> account_groups(std::string_view ns);

}  // namespace tessera::apiserver
