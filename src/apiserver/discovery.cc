#include "apiserver/discovery.h"

#include <algorithm>
#include <utility>

#include "apiserver/routes.h"

namespace tessera::apiserver {
namespace {

using json::Value;

#if defined(__aarch64__)
constexpr std::string_view kPlatform = "linux/arm64";
#else
constexpr std::string_view kPlatform = "linux/amd64";
#endif

template <class Strings>
Value strings(const Strings& list) {
  Value out = Value::array();
  for (const auto& one : list) out.push_back(Value(one));
  return out;
}

Value group_version(std::string_view group, std::string_view version) {
  std::string joined(group);
  if (!group.empty()) joined += '/';
  joined.append(version);
  return Value::object({{"groupVersion", joined}, {"version", version}});
}

Value group_value(const GroupVersions& group) {
  Value versions = Value::array();
  for (const std::string& version : group.versions) {
    versions.push_back(group_version(group.group, version));
  }
  Value preferred = versions.at(0);
  return Value::object({{"name", group.group},
                        {"versions", std::move(versions)},
                        {"preferredVersion", std::move(preferred)}});
}

Value resource_value(const Kind& kind) {
  Value out = Value::object({{"name", kind.plural},
                             {"singularName", kind.singular},
                             {"namespaced", kind.namespaced},
                             {"kind", kind.kind},
                             {"verbs", strings(resource_verbs(kind))}});
  if (!kind.short_names.empty()) out.set("shortNames", strings(kind.short_names));
  if (!kind.categories.empty()) out.set("categories", strings(kind.categories));
  return out;
}

Value subresource_value(const Kind& kind, const std::string& name) {
  const GroupVersionKind gvk = subresource_kind(kind, name);
  Value out = Value::object({{"name", kind.plural + "/" + name},
                             {"singularName", ""},
                             {"namespaced", kind.namespaced},
                             {"kind", gvk.kind},
                             {"verbs", strings(subresource_verbs(name))}});
  if (gvk.group != kind.group || gvk.version != kind.version) {
    out.set("group", gvk.group);
    out.set("version", gvk.version);
  }
  return out;
}

Value gvk_value(const GroupVersionKind& gvk) {
  return Value::object({{"group", gvk.group}, {"version", gvk.version}, {"kind", gvk.kind}});
}

Value aggregated_resource(const Kind& kind) {
  Value out = Value::object({{"resource", kind.plural},
                             {"responseKind", gvk_value({kind.group, kind.version, kind.kind})},
                             {"scope", kind.namespaced ? "Namespaced" : "Cluster"},
                             {"singularResource", kind.singular},
                             {"verbs", strings(resource_verbs(kind))}});
  if (!kind.short_names.empty()) out.set("shortNames", strings(kind.short_names));
  if (!kind.categories.empty()) out.set("categories", strings(kind.categories));
  Value subresources = Value::array();
  for (const std::string& name : subresources_of(kind)) {
    subresources.push_back(Value::object({{"subresource", name},
                                          {"responseKind", gvk_value(subresource_kind(kind, name))},
                                          {"verbs", strings(subresource_verbs(name))}}));
  }
  if (!subresources.empty()) out.set("subresources", std::move(subresources));
  return out;
}

// By name, as the answers list them.
std::vector<const Kind*> kinds_of(const Kinds& kinds, std::string_view group,
                                  std::string_view version) {
  std::vector<const Kind*> out;
  for (const Kind* kind : kinds.all()) {
    if (kind->group == group && kind->version == version) out.push_back(kind);
  }
  std::ranges::sort(out, {}, &Kind::plural);
  return out;
}

Value aggregated_group(const Kinds& kinds, const GroupVersions& group) {
  Value versions = Value::array();
  for (const std::string& version : group.versions) {
    Value resources = Value::array();
    for (const Kind* kind : kinds_of(kinds, group.group, version)) {
      resources.push_back(aggregated_resource(*kind));
    }
    versions.push_back(Value::object(
        {{"version", version}, {"freshness", "Current"}, {"resources", std::move(resources)}}));
  }
  Value metadata = Value::object({{"creationTimestamp", Value()}});
  if (!group.group.empty()) metadata.set("name", group.group);
  return Value::object({{"metadata", std::move(metadata)}, {"versions", std::move(versions)}});
}

}  // namespace

GroupVersionKind subresource_kind(const Kind& kind, std::string_view subresource) {
  if (subresource == "scale") return {"autoscaling", "v1", "Scale"};
  if (subresource == "binding") return {"", "v1", "Binding"};
  if (subresource == "eviction") return {"policy", "v1", "Eviction"};
  if (subresource == "token") return {"authentication.k8s.io", "v1", "TokenRequest"};
  return {kind.group, kind.version, kind.kind};
}

std::vector<GroupVersions> group_versions(const Kinds& kinds) {
  std::vector<GroupVersions> groups;
  for (const Kind* kind : kinds.all()) {
    auto group = std::ranges::find(groups, kind->group, &GroupVersions::group);
    if (group == groups.end()) group = groups.insert(groups.end(), {kind->group, {}});
    if (std::ranges::find(group->versions, kind->version) == group->versions.end()) {
      group->versions.push_back(kind->version);
    }
  }
  return groups;
}

Value api_versions_document() {
  return Value::object({{"kind", "APIVersions"},
                        {"versions", Value::array({"v1"})},
                        {"serverAddressByClientCIDRs", Value::array()}});
}

Value api_group_list(const Kinds& kinds) {
  Value groups = Value::array();
  for (const GroupVersions& group : group_versions(kinds)) {
    if (!group.group.empty()) groups.push_back(group_value(group));
  }
  return Value::object(
      {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}});
}

Value api_group(const Kinds& kinds, std::string_view name) {
  for (const GroupVersions& group : group_versions(kinds)) {
    if (name.empty() || group.group != name) continue;
    Value out = group_value(group);
    out.set("kind", "APIGroup");
    out.set("apiVersion", "v1");
    return out;
  }
  return {};
}

Value api_resource_list(const Kinds& kinds, std::string_view group, std::string_view version) {
  Value resources = Value::array();
  for (const Kind* kind : kinds_of(kinds, group, version)) {
    resources.push_back(resource_value(*kind));
    for (const std::string& name : subresources_of(*kind)) {
      resources.push_back(subresource_value(*kind, name));
    }
  }
  if (resources.empty()) return {};
  return Value::object({{"kind", "APIResourceList"},
                        {"apiVersion", "v1"},
                        {"groupVersion", group_version(group, version)["groupVersion"]},
                        {"resources", std::move(resources)}});
}

Value aggregated_discovery(const Kinds& kinds, bool core) {
  Value items = Value::array();
  for (const GroupVersions& group : group_versions(kinds)) {
    if (group.group.empty() == core) items.push_back(aggregated_group(kinds, group));
  }
  return Value::object({{"kind", "APIGroupDiscoveryList"},
                        {"apiVersion", "apidiscovery.k8s.io/v2"},
                        {"metadata", Value::object()},
                        {"items", std::move(items)}});
}

Value version_document() {
  return Value::object({{"major", "1"},
                        {"minor", "36"},
                        {"emulationMajor", "1"},
                        {"emulationMinor", "36"},
                        {"minCompatibilityMajor", "1"},
                        {"minCompatibilityMinor", "35"},
                        {"gitVersion", "v1.36.3+tessera"},
                        {"gitCommit", ""},
                        {"gitTreeState", "clean"},
                        {"buildDate", "1970-01-01T00:00:00Z"},
                        {"goVersion", ""},
                        {"compiler", "g++"},
                        {"platform", kPlatform}});
}

}  // namespace tessera::apiserver
