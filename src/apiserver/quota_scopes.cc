#include "apiserver/quota_scopes.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "kube/pod_resources.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr std::array<std::string_view, 6> kMandatory = {
    "cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"};

bool crosses_namespaces(const Value& term) {
  return !term["namespaces"].empty() || term["namespaceSelector"].is_object();
}

bool has_cross_namespace_affinity(const Value& affinity) {
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const Value& rules = affinity[kind];
    for (const Value& term : rules["requiredDuringSchedulingIgnoredDuringExecution"].items()) {
      if (crosses_namespaces(term)) return true;
    }
    for (const Value& term : rules["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
      if (crosses_namespaces(term["podAffinityTerm"])) return true;
    }
  }
  return false;
}

bool has_class(const kube::Pod& pod, std::string_view op, const Value& values) {
  const bool named = std::ranges::any_of(
      values.items(), [&](const Value& value) { return value.as_string() == pod.priority_class; });
  const bool some = !pod.priority_class.empty();
  if (op == "In") return some && named;
  if (op == "NotIn") return !some || !named;
  return op == "DoesNotExist" ? !some : some;
}

bool scope_matches(std::string_view scope, std::string_view op, const Value& values,
                   const QuotaItem& item) {
  const kube::Pod& pod = *item.pod;
  if (scope == "Terminating") return pod.active_deadline_seconds.has_value();
  if (scope == "NotTerminating") return !pod.active_deadline_seconds;
  if (scope == "BestEffort") return kube::qos_class(pod) == "BestEffort";
  if (scope == "NotBestEffort") return kube::qos_class(pod) != "BestEffort";
  if (scope == "PriorityClass") return has_class(pod, op, values);
  return scope == "CrossNamespacePodAffinity" &&
         has_cross_namespace_affinity(item.object["spec"]["affinity"]);
}

}  // namespace

bool scopes_match(const Value& spec, const QuotaItem& item) {
  const Value& scopes = spec["scopes"];
  const Value& expressions = spec["scopeSelector"]["matchExpressions"];
  if (scopes.empty() && expressions.empty()) return true;
  if (!item.pod) return false;
  const auto plain = [&](const Value& scope) {
    return scope_matches(scope.as_string(), "Exists", {}, item);
  };
  const auto selects = [&](const Value& one) {
    return scope_matches(one["scopeName"].as_string(), one["operator"].as_string(), one["values"],
                         item);
  };
  return std::ranges::all_of(scopes.items(), plain) &&
         std::ranges::all_of(expressions.items(), selects);
}

std::string missing_resources(const Value& spec, const kube::Pod& pod) {
  std::map<std::string_view, std::set<std::string_view>> missing;
  const kube::ResourceList whole = compute_quota_usage(pod.pod_requests, pod.pod_limits);
  for (const std::string_view name : kMandatory) {
    if (!spec["hard"].contains(name) || whole.contains(name)) continue;
    for (const auto* list : {&pod.containers, &pod.init_containers}) {
      for (const kube::Container& container : *list) {
        if (compute_quota_usage(container.requests, container.limits).contains(name)) continue;
        missing[name].insert(container.name);
      }
    }
  }
  std::string out;
  for (const auto& [resource, containers] : missing) {
    out += fmt::format("{}{} for: ", out.empty() ? "must specify " : "; ", resource);
    const char* comma = "";
    for (const std::string_view container : containers) {
      out.append(std::exchange(comma, ",")).append(container);
    }
  }
  return out;
}

}  // namespace tessera::apiserver
