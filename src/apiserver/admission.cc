#include "apiserver/admission.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "apiserver/admission_account.h"
#include "apiserver/admission_priority.h"
#include "apiserver/api_errors.h"
#include "apiserver/limit_range.h"
#include "apiserver/node_access.h"
#include "apiserver/pod_groups.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr std::array<std::string_view, 4> kInitialNamespaces = {"default", "kube-node-lease",
                                                                "kube-public", "kube-system"};
constexpr int64_t kTolerationSeconds = 300;

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";

bool tolerates_all_of(const Value& tolerations, std::string_view taint) {
  return std::ranges::any_of(tolerations.items(), [&](const Value& item) {
    const std::string_view key = item["key"].as_string();
    const std::string_view effect = item["effect"].as_string();
    return (key == taint || key.empty()) && (effect == "NoExecute" || effect.empty());
  });
}

void add_default_tolerations(Value& spec) {
  for (const std::string_view taint : {kNotReady, kUnreachable}) {
    if (tolerates_all_of(spec["tolerations"], taint)) continue;
    spec.ref("tolerations")
        .push_back(Value::object({{"effect", "NoExecute"},
                                  {"key", taint},
                                  {"operator", "Exists"},
                                  {"tolerationSeconds", kTolerationSeconds}}));
  }
}

// The mirror of what a node runs by itself has no account, and shows nothing of the cluster.
base::Status admit_mirror(const Core& core, const Value& pod) {
  const std::string_view resource = pod_reference(pod);
  const std::string_view what = resource == "serviceaccounts" ? "service accounts" : "secrets";
  if (resource != "serviceaccounts" && resource != "secrets") return {};
  return base::error(forbidden(*core.pods, pod["metadata"]["name"].as_string(),
                               fmt::format("a mirror pod may not reference {}", what)));
}

std::vector<Store::Found> limit_ranges_of(const Core& core, const Value& object) {
  if (core.limit_ranges == nullptr) return {};
  return core.store->newest(core.limit_ranges, object["metadata"]["namespace"].str() + "/");
}

Value initial_object(const Kind& kind, std::string_view ns, std::string_view name) {
  Value object = Value::object({{"apiVersion", kind.api_version()}, {"kind", kind.kind}});
  object.ref("metadata", "name") = name;
  if (!ns.empty()) object.ref("metadata", "namespace") = ns;
  return object;
}

}  // namespace

base::Status admit_namespace(Core& core, const Kind& kind, std::string_view ns,
                             std::string_view name) {
  if (!kind.namespaced || core.namespaces == nullptr) return {};
  const Store::Found found = core.store->latest(core.namespaces, ns);
  if (!found) return base::error(not_found(*core.namespaces, ns));
  if (found.object["status"]["phase"].as_string() != "Terminating" &&
      !found.object["metadata"].contains("deletionTimestamp")) {
    return {};
  }
  base::Error error = forbidden(
      kind, name,
      fmt::format("unable to create new content in namespace {} because it is being terminated",
                  ns));
  error.causes.push_back({"NamespaceTerminating",
                          fmt::format("namespace {} is being terminated", ns),
                          "metadata.namespace"});
  return base::error(std::move(error));
}

bool is_protected_namespace(std::string_view name) {
  return name == "default" || name == "kube-system" || name == "kube-public";
}

base::Status admit_pod(Core& core, const Call& call, Value& pod) {
  const std::string name = pod["metadata"]["name"].str();
  for (const Store::Found& found : limit_ranges_of(core, pod)) {
    apply_limit_range(found.object, pod);
  }
  if (pod["metadata"]["annotations"].contains("kubernetes.io/config.mirror")) {
    TS_TRY_STATUS(admit_mirror(core, pod));
  } else {
    TS_TRY_STATUS(admit_account(core, call, pod));
  }
  Value& spec = pod.ref("spec");
  add_default_tolerations(spec);
  return admit_pod_priority(core, name, spec);
}

base::Status admit_pod_group(const Core& core, const Kind& kind, Value& group) {
  Value& finalizers = group.ref("metadata", "finalizers");
  const auto had = finalizers.items();
  if (std::ranges::find(had, Value(kGroupProtection)) == had.end()) {
    finalizers.push_back(kGroupProtection);
  }
  return admit_pod_group_priority(core, kind, group["metadata"]["name"].str(), group.ref("spec"));
}

void admit_pod_update(Value& pod) {
  const Value& tolerations = pod["spec"]["tolerations"];
  if (tolerates_all_of(tolerations, kNotReady) && tolerates_all_of(tolerations, kUnreachable))
    return;
  add_default_tolerations(pod.ref("spec"));
}

base::Status check_limits(const Core& core, const Kind& kind, const Value& object) {
  if (&kind != core.pods && &kind != core.claims) return {};
  for (const Store::Found& found : limit_ranges_of(core, object)) {
    const std::string refusal = &kind == core.pods ? check_limit_range_pod(found.object, object)
                                                   : check_limit_range_claim(found.object, object);
    if (refusal.empty()) continue;
    return base::error(forbidden(kind, object["metadata"]["name"].as_string(), refusal));
  }
  return {};
}

std::vector<std::pair<const Kind*, Value>> initial_objects(const Core& core) {
  std::vector<std::pair<const Kind*, Value>> out;
  if (core.namespaces != nullptr) {
    for (const std::string_view name : kInitialNamespaces) {
      out.emplace_back(core.namespaces, initial_object(*core.namespaces, "", name));
    }
  }
  if (core.priority_classes != nullptr) {
    constexpr std::pair<std::string_view, int64_t> kClasses[] = {
        {"system-cluster-critical", 2'000'000'000}, {"system-node-critical", 2'000'001'000}};
    for (const auto& [name, value] : kClasses) {
      Value object = initial_object(*core.priority_classes, "", name);
      object.set("value", value);
      object.set("preemptionPolicy", "PreemptLowerPriority");
      object.set(
          "description",
          name == "system-node-critical"
              ? "For pods that a node cannot do without: the highest priority"
              : "For pods that the cluster cannot do without, which may move to another node");
      out.emplace_back(core.priority_classes, std::move(object));
    }
  }
  if (core.services != nullptr) {
    Value service = initial_object(*core.services, "default", "kubernetes");
    service.ref("metadata", "labels") =
        Value::object({{"component", "apiserver"}, {"provider", "kubernetes"}});
    Value& spec = service.ref("spec");
    spec.set("clusterIP", "10.96.0.1");
    spec.set("type", "ClusterIP");
    spec.set("ports",
             Value::array({Value::object(
                 {{"name", "https"}, {"port", 443}, {"protocol", "TCP"}, {"targetPort", 6443}})}));
    out.emplace_back(core.services, std::move(service));
  }
  return out;
}

}  // namespace tessera::apiserver
