// The discovery documents: which groups, versions and resources there are.
//
// Shape:   made from the kinds table as JSON values; front.cc caches their text. The core group
//          lives under /api, every other under /apis; groups and versions stand in the order of the
//          kinds table.
// Errors:  null for a group or version that no kind has.
// Threads: pure.
// Source:  k8s.io/apimachinery meta/v1 (APIGroup, APIResourceList), k8s.io/api/apidiscovery/v2.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/kind.h"
#include "json/value.h"

namespace tessera::apiserver {

struct GroupVersions {
  std::string group;
  std::vector<std::string> versions;  // the preferred one first
};
std::vector<GroupVersions> group_versions(const Kinds& kinds);

json::Value api_versions_document();                                // /api
json::Value api_group_list(const Kinds& kinds);                     // /apis
json::Value api_group(const Kinds& kinds, std::string_view group);  // /apis/{group}
json::Value api_resource_list(const Kinds& kinds, std::string_view group, std::string_view version);
// The aggregated form of /api (core) or /apis.
json::Value aggregated_discovery(const Kinds& kinds, bool core);
json::Value version_document();  // /version

constexpr std::string_view kAggregatedContentType =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// Group, version and kind of what a subresource takes and gives: {"policy", "v1", "Eviction"}.
struct GroupVersionKind {
  std::string group;
  std::string version;
  std::string kind;
};
GroupVersionKind subresource_kind(const Kind& kind, std::string_view subresource);

}  // namespace tessera::apiserver
