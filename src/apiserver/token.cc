#include "apiserver/token.h"

#include <fmt/core.h>

#include <utility>

#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr size_t kTokenBytesMax = 32 << 10;
constexpr int64_t kLeeway = 60;
constexpr int64_t kLatest = int64_t{1} << 53;  // beyond it a JSON number is no whole second

tl::unexpected<base::Error> no_token(std::string_view why) {
  return base::error(Code::kUnauthorized, "{}", why);
}

void set_bond(Value& into, std::string_view key, const TokenBond& bond) {
  if (bond.name.empty()) return;
  Value out = Value::object({{"name", bond.name}});
  if (!bond.uid.empty()) out.set("uid", bond.uid);
  into.set(key, std::move(out));
}

TokenBond bond_of(const Value& value) {
  if (value["name"].as_string().empty()) return {};
  return {value["name"].str(), value["uid"].str()};
}

Value claims_value(const TokenClaims& claims) {
  Value audiences = Value::array();
  for (const std::string& audience : claims.audiences) audiences.push_back(audience);
  Value own = Value::object({{"namespace", claims.ns}});
  set_bond(own, "serviceaccount", claims.account);
  set_bond(own, "pod", claims.pod);
  set_bond(own, "secret", claims.secret);
  set_bond(own, "node", claims.node);
  return Value::object({{"aud", std::move(audiences)},
                        {"exp", claims.expires},
                        {"iat", claims.issued},
                        {"iss", claims.issuer},
                        {"jti", claims.id},
                        {"kubernetes.io", std::move(own)},
                        {"nbf", claims.not_before},
                        {"sub", claims.subject}});
}

TokenClaims claims_of(const Value& value) {
  TokenClaims out;
  out.issuer = value["iss"].str();
  out.subject = value["sub"].str();
  const Value& audiences = value["aud"];
  if (audiences.is_string()) out.audiences.push_back(audiences.str());
  for (const Value& audience : audiences.items()) out.audiences.push_back(audience.str());
  out.id = value["jti"].str();
  out.issued = value["iat"].as_int();
  out.not_before = value["nbf"].as_int();
  out.expires = value["exp"].as_int();
  const Value& own = value["kubernetes.io"];
  out.ns = own["namespace"].str();
  out.account = bond_of(own["serviceaccount"]);
  out.pod = bond_of(own["pod"]);
  out.secret = bond_of(own["secret"]);
  out.node = bond_of(own["node"]);
  return out;
}

}  // namespace

base::Result<std::string> write_token(const http::SigningKey& key, const TokenClaims& claims) {
  const Value header = Value::object({{"alg", "ES256"}, {"kid", key.id()}, {"typ", "JWT"}});
  std::string text =
      http::base64url(header.dump()) + "." + http::base64url(claims_value(claims).dump());
  TS_TRY(const std::string signature, key.sign(text));
  return text.append(".").append(http::base64url(signature));
}

base::Result<TokenClaims> read_token(const http::SigningKey& key, std::string_view text) {
  const size_t first = text.find('.');
  const size_t second = first == std::string_view::npos ? first : text.find('.', first + 1);
  if (text.size() > kTokenBytesMax || second == std::string_view::npos) {
    return no_token("invalid bearer token");
  }
  const auto header_bytes = http::unbase64url(text.substr(0, first));
  const auto body_bytes = http::unbase64url(text.substr(first + 1, second - first - 1));
  const auto signature = http::unbase64url(text.substr(second + 1));
  if (!header_bytes || !body_bytes || !signature) return no_token("invalid bearer token");
  const auto header = json::parse(*header_bytes, {.bytes_max = kTokenBytesMax, .depth_max = 8});
  // The algorithm is ours to choose, not the token's: "none" and all others are refused.
  if (!header || (*header)["alg"].as_string() != "ES256") return no_token("invalid bearer token");
  if (!key.verify(text.substr(0, second), *signature)) {
    return no_token("invalid signature: the token was signed by another key");
  }
  const auto body = json::parse(*body_bytes, {.bytes_max = kTokenBytesMax, .depth_max = 8});
  if (!body) return no_token("invalid bearer token");
  TokenClaims claims = claims_of(*body);
  if (claims.ns.empty() || claims.account.name.empty() ||
      claims.subject != account_user(claims.ns, claims.account.name)) {
    return no_token("the token names no service account");
  }
  return claims;
}

base::Status check_token_times(const TokenClaims& claims, base::Time now) {
  const int64_t at = now.ns / 1'000'000'000;
  if (claims.expires > kLatest || at - kLeeway > claims.expires) {
    return no_token("service account token has expired");
  }
  if (at + kLeeway < claims.not_before) return no_token("service account token is not valid yet");
  if (at + kLeeway < claims.issued) {
    return no_token("service account token is issued in the future");
  }
  return {};
}

Value token_key_set(const http::SigningKey& key) {
  Value out = Value::object({{"alg", "ES256"},
                             {"crv", "P-256"},
                             {"kid", key.id()},
                             {"kty", "EC"},
                             {"use", "sig"},
                             {"x", http::base64url(key.x())},
                             {"y", http::base64url(key.y())}});
  return Value::object({{"keys", Value::array({std::move(out)})}});
}

Value token_issuer_document(std::string_view issuer, std::string_view keys_url) {
  return Value::object({{"issuer", issuer},
                        {"jwks_uri", keys_url},
                        {"response_types_supported", Value::array({"id_token"})},
                        {"subject_types_supported", Value::array({"public"})},
                        {"id_token_signing_alg_values_supported", Value::array({"ES256"})}});
}

std::string account_user(std::string_view ns, std::string_view name) {
  return fmt::format("system:serviceaccount:{}:{}", ns, name);
}

std::vector<std::string> account_groups(std::string_view ns) {
  return {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", ns)};
}

}  // namespace tessera::apiserver
