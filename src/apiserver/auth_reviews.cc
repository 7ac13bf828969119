#include "apiserver/auth_reviews.h"

#include <algorithm>
#include <utility>

#include "apiserver/api_errors.h"
#include "apiserver/auth.h"
#include "apiserver/registry.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using base::Result;
using json::Value;

std::vector<std::string> strings_of(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.push_back(item.str());
  return out;
}

Value list_of(const std::vector<std::string>& items) {
  Value out = Value::array();
  for (const std::string& item : items) out.push_back(item);
  return out;
}

// Views into the review's spec.
Attributes attributes_of(const Value& spec) {
  Attributes out;
  const Value& resource = spec["resourceAttributes"];
  if (!resource.is_object()) {
    const Value& path = spec["nonResourceAttributes"];
    out.verb = path["verb"].as_string();
    out.path = path["path"].as_string();
    out.on_path = true;
    return out;
  }
  out.verb = resource["verb"].as_string();
  out.group = resource["group"].as_string();
  out.resource = resource["resource"].as_string();
  out.subresource = resource["subresource"].as_string();
  out.ns = resource["namespace"].as_string();
  out.name = resource["name"].as_string();
  return out;
}

void check_targets(const Value& spec, FieldErrors& errors) {
  const bool resource = spec["resourceAttributes"].is_object();
  const bool path = spec["nonResourceAttributes"].is_object();
  if (resource && path) {
    errors.invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"],
                   "cannot be specified in combination with resourceAttributes");
  } else if (!resource && !path) {
    errors.invalid("spec.resourceAttributes", Value(),
                   "exactly one of nonResourceAttributes or resourceAttributes must be specified");
  }
}

void check_subject(const Value& spec, FieldErrors& errors) {
  if (!spec["user"].as_string().empty() || !spec["groups"].empty()) return;
  errors.invalid("spec.user", spec["user"].str(),
                 "at least one of user or group must be specified");
}

void check_meta(const Value& review, bool with_namespace, FieldErrors& errors) {
  Value meta = review["metadata"];
  if (!meta.is_object()) return;
  meta.erase("managedFields");
  if (meta["creationTimestamp"].is_null()) meta.erase("creationTimestamp");
  if (with_namespace) meta.erase("namespace");
  if (meta.empty()) return;
  errors.invalid("metadata", meta,
                 with_namespace ? "must be empty except for namespace" : "must be empty");
}

base::Status refuse_where_wrong(std::string_view name, const FieldErrors& errors) {
  if (errors.empty()) return {};
  Kind kind;
  kind.group = "authorization.k8s.io";
  kind.kind = name;
  return base::error(invalid(kind, "", errors.causes()));
}

Value decided(VirtualCreate& call, const Caller& subject) {
  const Decision decision = call.access.decide(subject, attributes_of(call.object["spec"]));
  Value status = Value::object({{"allowed", decision.allowed}});
  if (const std::string reason = decision.reason(); !reason.empty()) status.set("reason", reason);
  call.object.set("status", std::move(status));
  if (!call.object["metadata"].is_object()) call.object.set("metadata", Value::object());
  return call.object;
}

Caller subject_of(const Value& spec) {
  Caller out;
  out.user = spec["user"].str();
  out.groups = strings_of(spec["groups"]);
  out.uid = spec["uid"].str();
  return out;
}

Result<Value> subject_access(VirtualCreate& call) {
  FieldErrors errors;
  const Value& spec = call.object["spec"];
  check_targets(spec, errors);
  check_subject(spec, errors);
  check_meta(call.object, false, errors);
  TS_TRY_STATUS(refuse_where_wrong("SubjectAccessReview", errors));
  return decided(call, subject_of(spec));
}

Result<Value> local_subject_access(VirtualCreate& call) {
  FieldErrors errors;
  const Value& spec = call.object["spec"];
  check_targets(spec, errors);
  check_subject(spec, errors);
  check_meta(call.object, true, errors);
  const Value& ns = spec["resourceAttributes"]["namespace"];
  if (spec["resourceAttributes"].is_object() && ns.as_string() != call.ns) {
    errors.invalid("spec.resourceAttributes.namespace", ns.str(), "must match metadata.namespace");
  }
  if (spec["nonResourceAttributes"].is_object()) {
    errors.invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"],
                   "disallowed on this kind of request");
  }
  TS_TRY_STATUS(refuse_where_wrong("LocalSubjectAccessReview", errors));
  call.object.ref("metadata").set("namespace", call.ns);
  return decided(call, subject_of(call.object["spec"]));
}

Result<Value> self_subject_access(VirtualCreate& call) {
  FieldErrors errors;
  check_targets(call.object["spec"], errors);
  check_meta(call.object, false, errors);
  TS_TRY_STATUS(refuse_where_wrong("SelfSubjectAccessReview", errors));
  return decided(call, call.caller);
}

Result<Value> self_subject_rules(VirtualCreate& call) {
  const std::string ns = call.object["spec"]["namespace"].str();
  if (ns.empty()) return base::error(bad_request("no namespace on request"));
  const Rbac::RuleList list = call.access.rbac().rules_for(call.caller, ns);
  Value resources = Value::array();
  Value urls = Value::array();
  for (const PolicyRule& rule : list.rules) {
    if (!rule.resources.empty()) {
      Value one = Value::object({{"verbs", list_of(rule.verbs)},
                                 {"apiGroups", list_of(rule.groups)},
                                 {"resources", list_of(rule.resources)}});
      if (!rule.names.empty()) one.set("resourceNames", list_of(rule.names));
      resources.push_back(std::move(one));
    }
    if (!rule.urls.empty()) {
      urls.push_back(
          Value::object({{"verbs", list_of(rule.verbs)}, {"nonResourceURLs", list_of(rule.urls)}}));
    }
  }
  Value status = Value::object({{"resourceRules", std::move(resources)},
                                {"nonResourceRules", std::move(urls)},
                                {"incomplete", false}});
  if (!list.errors.empty()) status.set("evaluationError", list.errors);
  return Value::object({{"apiVersion", call.object["apiVersion"]},
                        {"kind", call.object["kind"]},
                        {"metadata", Value::object()},
                        {"spec", Value::object()},
                        {"status", std::move(status)}});
}

Result<Value> self_subject(VirtualCreate& call) {
  Value status = Value::object({{"userInfo", user_value(call.caller)}});
  return Value::object(
      {{"apiVersion", call.object["apiVersion"]},
       {"kind", call.object["kind"]},
       {"metadata", Value::object({{"creationTimestamp", base::to_rfc3339(call.now)}})},
       {"status", std::move(status)}});
}

Result<Value> token_review(VirtualCreate& call) {
  const std::string token = call.object["spec"]["token"].str();
  if (token.empty()) {
    return base::error(bad_request("token is required for TokenReview in authentication"));
  }
  const std::vector<std::string> audiences = strings_of(call.object["spec"]["audiences"]);
  const auto known = call.access.authenticate(token, audiences);
  Value status = Value::object();
  if (known) {
    Caller caller = known->caller;
    if (std::ranges::find(caller.groups, "system:authenticated") == caller.groups.end()) {
      caller.groups.emplace_back("system:authenticated");
    }
    status = Value::object({{"authenticated", true},
                            {"user", user_value(caller)},
                            {"audiences", list_of(known->audiences)}});
  } else {
    constexpr std::string_view kGeneral = "invalid bearer token";
    const std::string& why = known.error().message;
    status =
        Value::object({{"user", Value::object()},
                       {"error", why == kGeneral ? why : fmt::format("[{}, {}]", kGeneral, why)}});
  }
  call.object.set("status", std::move(status));
  if (!call.object["metadata"].is_object()) call.object.set("metadata", Value::object());
  return call.object;
}

void add(Kinds& kinds, std::string_view group, std::string_view name,
         Result<Value> (*create)(VirtualCreate&), bool namespaced = false) {
  Kind kind;
  kind.group = std::string(group) + ".k8s.io";
  kind.kind = name;
  kind.singular = name;
  for (char& c : kind.singular) c = static_cast<char>(c | 0x20);
  kind.plural = kind.singular + "s";
  kind.namespaced = namespaced;
  kind.virtual_create = create;
  kinds.add(std::move(kind));
}

}  // namespace

void add_review_kinds(Kinds& kinds) {
  add(kinds, "authentication", "SelfSubjectReview", self_subject);
  add(kinds, "authentication", "TokenReview", token_review);
  add(kinds, "authorization", "LocalSubjectAccessReview", local_subject_access, true);
  add(kinds, "authorization", "SelfSubjectAccessReview", self_subject_access);
  add(kinds, "authorization", "SelfSubjectRulesReview", self_subject_rules);
  add(kinds, "authorization", "SubjectAccessReview", subject_access);
}

void do_virtual_create(Core& core, const CallPtr& call) {
  auto object = decode_body(*call, call->request.body, Value());
  if (!object) return fail(core, call, std::move(object).error());
  const std::string_view ns = (*object)["metadata"]["namespace"].as_string();
  if (!ns.empty() && ns != call->request.ns) {
    return fail(core, call,
                bad_request("the namespace of the provided object does not match the namespace "
                            "sent on the request"));
  }
  VirtualCreate review{call->caller, *core.access, std::move(*object), call->request.ns,
                       core.now()};
  auto out = call->kind->virtual_create(review);
  if (!out) return fail(core, call, std::move(out).error());
  call->done({std::move(*out), 201, std::move(call->warnings)});
}

}  // namespace tessera::apiserver
