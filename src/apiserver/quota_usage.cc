#include "apiserver/quota_usage.h"

#include <algorithm>
#include <array>
#include <utility>

#include "apiserver/quota_scopes.h"
#include "apiserver/store.h"
#include "apiserver/validate_resources.h"
#include "kube/pod_resources.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::Quantity;
using kube::ResourceList;

constexpr std::string_view kRequests = "requests.";
constexpr std::string_view kHugePages = "hugepages-";
constexpr std::string_view kOfClass = ".storageclass.storage.k8s.io/";
constexpr std::array<std::string_view, 3> kCompute = {"cpu", "memory", "ephemeral-storage"};
// Kinds of the core group that may be named without "count/".
constexpr std::array<std::string_view, 6> kPlainCounts = {
    "configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets",
    "services"};

// Zero where the text is no amount.
Quantity amount_in(const Value& text) {
  auto amount = Quantity::parse(text.is_string() ? text.as_string() : text.dump());
  return amount ? std::move(*amount) : Quantity();
}

bool is_core(const Kind& kind, std::string_view plural) {
  return kind.group.empty() && kind.plural == plural;
}

bool has_plain_count(const Kind& kind) {
  return kind.group.empty() && std::ranges::find(kPlainCounts, kind.plural) != kPlainCounts.end();
}

std::string count_name(const Kind& kind) {
  return "count/" + resource_name(kind);
}

// Finished pods use nothing but their place in the store; nor do those that should be gone, as after the loss of a node.
bool pod_is_charged(const kube::Pod& pod, const Value& object, base::Time now) {
  if (pod.finished()) return false;
  const Value& grace = object["metadata"]["deletionGracePeriodSeconds"];
  if (!pod.meta.deleted || !grace.is_int()) return true;
  return now <= *pod.meta.deleted + base::seconds(grace.as_int());
}

void use_pod(const kube::Pod& pod, ResourceList& usage) {
  add_to(usage, compute_quota_usage(kube::pod_requests(pod), kube::pod_limits(pod)));
  usage["pods"] = Quantity(1);
}

void use_service(const Value& service, ResourceList& usage) {
  const Value& spec = service["spec"];
  const std::string_view type = spec["type"].as_string();
  int64_t ports = 0;
  if (type == "NodePort" || type == "LoadBalancer") {
    const bool all = type == "NodePort" || spec["allocateLoadBalancerNodePorts"].as_bool(true);
    for (const Value& port : spec["ports"].items()) {
      if (all || port["nodePort"].as_int() != 0) ++ports;
    }
  }
  usage["services.nodeports"] = Quantity(ports);
  usage["services.loadbalancers"] = Quantity(type == "LoadBalancer" ? 1 : 0);
}

void use_claim(const Value& claim, ResourceList& usage) {
  const Value& size = claim["spec"]["resources"]["requests"]["storage"];
  const Value& beta = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
  const std::string of_class = (beta.is_string() ? beta : claim["spec"]["storageClassName"]).str();
  const Quantity amount = amount_in(size);
  if (!size.is_null()) usage["requests.storage"] = amount;
  if (of_class.empty()) return;
  usage[of_class + std::string(kOfClass) + "persistentvolumeclaims"] = Quantity(1);
  if (!size.is_null()) usage[of_class + std::string(kOfClass) + "requests.storage"] = amount;
}

bool tracked_of_pods(std::string_view resource) {
  if (resource == "pods" || resource.starts_with(kHugePages)) return true;
  std::string_view base = resource;
  const bool requests = base.starts_with(kRequests);
  const bool limits = base.starts_with("limits.");
  if (requests) base.remove_prefix(kRequests.size());
  if (limits) base.remove_prefix(7);
  if (std::ranges::find(kCompute, base) != kCompute.end()) return true;
  return requests && (base.starts_with(kHugePages) || is_extended_resource(base));
}

}  // namespace

QuotaItem::QuotaItem(const Kind& kind_in, const Value& object_in, base::Time now)
    : kind(&kind_in), object(object_in) {
  usage[count_name(*kind)] = Quantity(1);
  if (has_plain_count(*kind)) usage[kind->plural] = Quantity(1);
  if (is_core(*kind, "services")) use_service(object, usage);
  if (is_core(*kind, "persistentvolumeclaims")) use_claim(object, usage);
  if (!is_core(*kind, "pods")) return;
  auto decoded = kube::decode_pod(kube::Object(object));
  if (!decoded) return;
  pod = std::move(*decoded);
  if (pod_is_charged(*pod, object, now)) use_pod(*pod, usage);
}

ResourceList compute_quota_usage(const ResourceList& requests, const ResourceList& limits) {
  ResourceList usage;
  for (const auto& [name, amount] : requests) {
    const bool compute = std::ranges::find(kCompute, name) != kCompute.end();
    if (compute || name.starts_with(kHugePages)) usage[name] = amount;
    if (compute || name.starts_with(kHugePages) || is_extended_resource(name)) {
      usage[std::string(kRequests) + name] = amount;
    }
  }
  for (const std::string_view name : kCompute) {
    const auto limit = limits.find(name);
    if (limit != limits.end()) usage["limits." + std::string(name)] = limit->second;
  }
  return usage;
}

bool quota_tracks(const Kind& kind, std::string_view resource) {
  if (!kind.namespaced) return false;
  if (resource.starts_with("count/")) return resource == count_name(kind);
  if (has_plain_count(kind) && resource == kind.plural) return true;
  if (is_core(kind, "pods")) return tracked_of_pods(resource);
  if (is_core(kind, "services")) {
    return resource == "services.nodeports" || resource == "services.loadbalancers";
  }
  if (!is_core(kind, "persistentvolumeclaims")) return false;
  return resource == "requests.storage" || resource.find(kOfClass) != resource.npos;
}

bool quota_counts(const Value& quota, const QuotaItem& item) {
  const auto hard = quota["spec"]["hard"].members();
  const bool names_some = std::ranges::any_of(
      hard, [&](const json::Member& member) { return quota_tracks(*item.kind, member.name()); });
  return names_some && scopes_match(quota["spec"], item);
}

bool quota_watches_updates(const Kind& kind, std::string_view subresource) {
  if (is_core(kind, "pods")) return subresource == "resize";
  return subresource.empty() &&
         (is_core(kind, "services") || is_core(kind, "persistentvolumeclaims"));
}

void add_quota_usage(const Value& quota, const Kind& kind, const std::vector<Value>& objects,
                     base::Time now, ResourceList& used) {
  for (const Value& object : objects) {
    const QuotaItem item(kind, object, now);
    if (!quota_counts(quota, item)) continue;
    for (const auto& [name, amount] : item.usage) {
      if (const auto at = used.find(name); at != used.end()) at->second += amount;
    }
  }
}

ResourceList zero_quota_usage(const Value& quota, const Kinds& kinds) {
  ResourceList out;
  for (const json::Member& member : quota["spec"]["hard"].members()) {
    const bool tracked = std::ranges::any_of(
        kinds.all(), [&](const Kind* kind) { return quota_tracks(*kind, member.name()); });
    if (tracked) out.emplace(member.name(), Quantity());
  }
  return out;
}

ResourceList resource_list_of(const Value& object) {
  ResourceList out;
  for (const json::Member& member : object.members()) {
    out.emplace(member.name(), amount_in(member.value));
  }
  return out;
}

Value resource_list_json(const ResourceList& list) {
  Value out = Value::object();
  for (const auto& [name, amount] : list) out.set(name, amount.to_string());
  return out;
}

}  // namespace tessera::apiserver
