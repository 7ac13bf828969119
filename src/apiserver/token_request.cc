#include "apiserver/token_request.h"

#include <algorithm>
#include <utility>

#include "apiserver/api_errors.h"
#include "apiserver/auth.h"
#include "apiserver/node_access.h"
#include "apiserver/registry.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDefaultSeconds = 3600;
constexpr int64_t kSecondsMin = 600;
constexpr int64_t kSecondsMax = int64_t{1} << 32;

const Kind& request_kind() {
  static const Kind kKind = [] {
    Kind kind{.group = "authentication.k8s.io", .kind = "TokenRequest", .plural = "TokenRequest"};
    kind.schema = kube::find_kind_schema(kind.group, kind.version, kind.kind);
    return kind;
  }();
  return kKind;
}

base::Result<Value> decode_request(const Call& call) {
  Call inner;
  inner.kind = &request_kind();
  inner.validation = call.validation;
  Value body = call.request.body;
  if (!body.is_object()) body = Value::object();
  if (!body.contains("kind")) body.set("kind", "TokenRequest");
  if (!body.contains("apiVersion")) body.set("apiVersion", "authentication.k8s.io/v1");
  return decode_body(inner, body, Value());
}

void check_meta(const Value& request, const Call& call, FieldErrors& errors) {
  const Value& meta = request["metadata"];
  if (!meta["name"].as_string().empty() && meta["name"].as_string() != call.request.name) {
    errors.invalid("metadata.name", meta["name"],
                   "must match the service account name if specified");
  }
  if (!meta["namespace"].as_string().empty() && meta["namespace"].as_string() != call.request.ns) {
    errors.invalid("metadata.namespace", meta["namespace"],
                   "must match the service account namespace if specified");
  }
}

void check_spec(const Value& request, FieldErrors& errors) {
  const Value& seconds = request["spec"]["expirationSeconds"];
  if (seconds.as_int(kDefaultSeconds) < kSecondsMin) {
    errors.invalid("spec.expirationSeconds", seconds,
                   "may not specify a duration less than 10 minutes");
  }
  if (seconds.as_int(kDefaultSeconds) > kSecondsMax) {
    errors.invalid("spec.expirationSeconds", seconds,
                   "may not specify a duration larger than 2^32 seconds");
  }
}

struct Bound {
  std::string_view plural;
  bool namespaced = true;
  TokenBond TokenClaims::* claim = nullptr;
};

base::Result<Bound> bound_kind(const Value& ref) {
  const std::string_view kind = ref["kind"].as_string();
  if (ref["apiVersion"].as_string() == "v1") {
    if (kind == "Pod") return Bound{"pods", true, &TokenClaims::pod};
    if (kind == "Secret") return Bound{"secrets", true, &TokenClaims::secret};
    if (kind == "Node") return Bound{"nodes", false, &TokenClaims::node};
  }
  return base::error(bad_request(fmt::format("cannot bind token to object of type {}, Kind={}",
                                             ref["apiVersion"].as_string(), kind)));
}

base::Status bind_claims(const Core& core, const Call& call, const Value& ref,
                         TokenClaims& claims) {
  if (!ref.is_object()) return {};
  TS_TRY(const Bound bound, bound_kind(ref));
  const std::string_view ns = bound.namespaced ? std::string_view(call.request.ns) : "";
  const std::string_view name = ref["name"].as_string();
  const Value object = core.access->find("", bound.plural, ns, name);
  if (object.is_null()) {
    return base::error(Code::kNotFound, "{} \"{}\" not found", bound.plural, name);
  }
  const Value& uid = object["metadata"]["uid"];
  if (bound.claim == &TokenClaims::pod) {
    if (object["spec"]["serviceAccountName"].as_string() != call.request.name) {
      return base::error(bad_request(
          fmt::format("cannot bind token for serviceaccount \"{}\" to pod running with different "
                      "serviceaccount name.",
                      call.request.name)));
    }
    const std::string node = object["spec"]["nodeName"].str();
    claims.node = {node, core.access->find("", "nodes", "", node)["metadata"]["uid"].str()};
  }
  if (!ref["uid"].as_string().empty() && ref["uid"] != uid) {
    return base::error(
        Code::kConflict,
        "Operation cannot be fulfilled on {} \"{}\": the UID in the bound object reference ({}) "
        "does not match the UID in record. The object might have been deleted and then recreated",
        ref["kind"].as_string(), name, ref["uid"].as_string());
  }
  claims.*bound.claim = {std::string(name), uid.str()};
  return {};
}

base::Status check_uid(const Value& request, const Value& account, const Call& call) {
  const std::string_view uid = request["metadata"]["uid"].as_string();
  if (uid.empty() || uid == account["metadata"]["uid"].as_string()) return {};
  return base::error(
      Code::kConflict,
      "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"{}\": the UID in the "
      "token request ({}) does not match the UID of the service account ({})",
      call.request.name, uid, account["metadata"]["uid"].as_string());
}

base::Status refuse_where_wrong(const FieldErrors& errors, std::string_view name) {
  if (errors.empty()) return {};
  return base::error(invalid(request_kind(), name, errors.causes()));
}

TokenClaims claims_of(Core& core, const Call& call, const Value& request, const Value& account) {
  TokenClaims claims;
  claims.issuer = core.access->issuer();
  claims.subject = account_user(call.request.ns, call.request.name);
  for (const Value& audience : request["spec"]["audiences"].items()) {
    claims.audiences.push_back(audience.str());
  }
  claims.id = core.uuid();
  claims.issued = claims.not_before = core.now().ns / kSecond;
  claims.expires = claims.issued + request["spec"]["expirationSeconds"].as_int();
  claims.ns = call.request.ns;
  claims.account = {call.request.name, account["metadata"]["uid"].str()};
  return claims;
}

base::Result<Value> answer(Core& core, const Call& call) {
  TS_TRY(Value request, decode_request(call));
  FieldErrors errors;
  check_meta(request, call, errors);
  TS_TRY_STATUS(refuse_where_wrong(errors, call.request.name));
  const Store::Found account = core.store->latest(call.kind, call.key());
  if (!account) return base::error(not_found(*call.kind, call.request.name));
  TS_TRY_STATUS(check_uid(request, account.object, call));
  TS_TRY_STATUS(admit_node_token(core, call));
  Value& meta = request.ref("metadata");
  meta = Value::object({{"name", call.request.name},
                        {"namespace", call.request.ns},
                        {"uid", account.object["metadata"]["uid"]},
                        {"creationTimestamp", base::to_rfc3339(core.now())}});
  Value& spec = request.ref("spec");
  if (!spec.contains("expirationSeconds")) spec.set("expirationSeconds", kDefaultSeconds);
  if (spec["audiences"].empty()) spec.set("audiences", Value::array({core.access->issuer()}));
  if (!spec.contains("boundObjectRef")) spec.set("boundObjectRef", Value());
  check_spec(request, errors);
  TS_TRY_STATUS(refuse_where_wrong(errors, ""));
  TokenClaims claims = claims_of(core, call, request, account.object);
  TS_TRY_STATUS(bind_claims(core, call, request["spec"]["boundObjectRef"], claims));
  TS_TRY(const http::SigningKey key, core.access->key());
  TS_TRY(const std::string token, write_token(key, claims));
  // A clock that is centuries ahead must not overflow.
  const base::Time end{std::min(claims.expires, INT64_MAX / kSecond) * kSecond};
  request.set("status",
              Value::object({{"token", token}, {"expirationTimestamp", base::to_rfc3339(end)}}));
  return request;
}

}  // namespace

void do_token(Core& core, const CallPtr& call) {
  auto out = answer(core, *call);
  if (!out) return fail(core, call, std::move(out).error());
  call->done({std::move(*out), 201, std::move(call->warnings)});
}

}  // namespace tessera::apiserver
