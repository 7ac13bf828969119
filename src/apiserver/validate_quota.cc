#include "apiserver/validate_quota.h"

#include <algorithm>
#include <set>

#include "apiserver/validate_meta.h"
#include "apiserver/validate_resources.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::Quantity;
using Names = std::set<std::string_view>;

// Counted in whole objects.
const Names kCounts = {"pods",
                       "resourcequotas",
                       "services",
                       "replicationcontrollers",
                       "secrets",
                       "configmaps",
                       "persistentvolumeclaims",
                       "services.nodeports",
                       "services.loadbalancers"};
const Names kAmounts = {"cpu",
                        "memory",
                        "ephemeral-storage",
                        "requests.cpu",
                        "requests.memory",
                        "requests.storage",
                        "requests.ephemeral-storage",
                        "limits.cpu",
                        "limits.memory",
                        "limits.ephemeral-storage"};
const Names kOfPods = {"pods",          "cpu",          "memory",         "limits.cpu",
                       "limits.memory", "requests.cpu", "requests.memory"};
const Names kOfClaims = {"persistentvolumeclaims", "requests.storage"};
// Those that only may be said to exist.
const Names kPlainScopes = {"BestEffort", "NotBestEffort", "Terminating", "NotTerminating",
                            "CrossNamespacePodAffinity"};

bool is_quota_resource(std::string_view name) {
  return kCounts.contains(name) || kAmounts.contains(name) || name.starts_with("hugepages-") ||
         name.starts_with("requests.hugepages-");
}

bool is_scope(std::string_view scope) {
  return kPlainScopes.contains(scope) || scope == "PriorityClass" ||
         scope == "VolumeAttributesClass";
}

bool suits(std::string_view scope, std::string_view resource) {
  if (scope == "BestEffort") return resource == "pods";
  if (scope == "VolumeAttributesClass") return kOfClaims.contains(resource);
  return !is_scope(scope) || kOfPods.contains(resource);
}

void validate_hard(const Value& hard, const Path& at, FieldErrors& errors) {
  for (const json::Member& member : hard.members()) {
    const Path here = at.key(member.name());
    validate_resource_name(member.name(), here, errors);
    if (member.name().find('/') == std::string_view::npos && !is_quota_resource(member.name())) {
      errors.invalid(here.text(), member.key, "must be a standard resource for quota");
    }
    const Quantity amount = quantity_of(member.value);
    if (amount.sign() < 0) {
      errors.invalid(here.text(), member.value, "must be greater than or equal to 0");
    }
    const bool whole = kCounts.contains(member.name()) || is_extended_resource(member.name());
    if (whole && Quantity(amount.value()) != amount) {
      errors.invalid(here.text(), member.value, "must be an integer");
    }
  }
}

// One cause for each resource that the scope does not know.
void validate_resources_of(std::string_view scope, const Value& hard, const Value& shown,
                           const Path& at, FieldErrors& errors) {
  for (const json::Member& member : hard.members()) {
    if (!is_quota_resource(member.name()) || suits(scope, member.name())) continue;
    errors.invalid(at.text(), shown, "unsupported scope applied to resource");
  }
}

void validate_conflicts(const Names& scopes, const Value& shown, const Path& at,
                        FieldErrors& errors) {
  for (const auto& [a, b] :
       {std::pair{"BestEffort", "NotBestEffort"}, std::pair{"Terminating", "NotTerminating"}}) {
    if (!scopes.contains(a) || !scopes.contains(b)) continue;
    errors.invalid(at.text(), shown, "conflicting scopes");
  }
}

void validate_scopes(const Value& spec, const Path& at, FieldErrors& errors) {
  const Value& scopes = spec["scopes"];
  Names seen;
  for (const Value& scope : scopes.items()) {
    if (!is_scope(scope.as_string())) errors.invalid(at.text(), scopes, "unsupported scope");
    validate_resources_of(scope.as_string(), spec["hard"], scopes, at, errors);
    seen.insert(scope.as_string());
  }
  validate_conflicts(seen, scopes, at, errors);
}

void validate_scope_operator(const Value& requirement, const Path& at, FieldErrors& errors) {
  const std::string_view op = requirement["operator"].as_string();
  const Value& values = requirement["values"];
  if (kPlainScopes.contains(requirement["scopeName"].as_string()) && op != "Exists") {
    errors.invalid(at.text("operator"), requirement["operator"],
                   "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                   "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                   "ResourceQuotaScopeNotBestEffort or "
                   "ResourceQuotaScopeCrossNamespacePodAffinity");
  }
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      errors.required(at.text("values"),
                      "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                      "selector");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      errors.invalid(at.text("values"), values,
                     "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "
                     "selector");
    }
  } else {
    errors.invalid(at.text("operator"), requirement["operator"], "not a valid selector operator");
  }
}

// Kubernetes names the list, not its elements.
void validate_scope_selector(const Value& spec, const Path& at, FieldErrors& errors) {
  const Value& selector = spec["scopeSelector"];
  const Path list = at.child("matchExpressions");
  Names seen;
  for (const Value& requirement : selector["matchExpressions"].items()) {
    const std::string_view scope = requirement["scopeName"].as_string();
    if (!is_scope(scope)) {
      errors.invalid(list.text("scopeName"), requirement["scopeName"], "unsupported scope");
    }
    validate_resources_of(scope, spec["hard"], selector, list, errors);
    validate_scope_operator(requirement, list, errors);
    seen.insert(scope);
  }
  validate_conflicts(seen, spec["scopes"], list, errors);
}

Names scopes_of(const Value& object) {
  Names out;
  for (const Value& scope : object["spec"]["scopes"].items()) out.insert(scope.as_string());
  return out;
}

}  // namespace

void validate_resource_quota(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  validate_hard(spec["hard"], at.child("hard"), errors);
  validate_scopes(spec, at.child("scopes"), errors);
  validate_scope_selector(spec, at.child("scopeSelector"), errors);
}

void validate_resource_quota_update(const Value& object, const Value& before, FieldErrors& errors) {
  if (scopes_of(object) == scopes_of(before)) return;
  errors.invalid("spec.scopes", object["spec"]["scopes"], "field is immutable");
}

}  // namespace tessera::apiserver
