// What an object uses of the resources that ResourceQuotas limit, and which quotas count it.
//
// Shape:   a QuotaItem is an object with its usage by resource of quotas: "requests.nvidia.com/gpu", "pods",
//          "count/jobs.batch". A pod uses what scheduling reserves for it (kube/pod_resources.h).
// Units:   as in spec.hard.
// Errors:  none; an object that does not decode counts as one object.
// Threads: pure.
// Source:  k8s.io/kubernetes v1.36.3 pkg/quota/v1 (generic, evaluator/core): names, scopes, which pods count; cases/C13, C21.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kind.h"
#include "base/time.h"
#include "kube/pod.h"
#include "kube/quantity.h"

namespace tessera::apiserver {

struct QuotaItem {
  QuotaItem(const Kind& kind, const json::Value& object, base::Time now);

  const Kind* kind;
  std::optional<kube::Pod> pod;  // of Pods
  json::Value object;
  kube::ResourceList usage;
};

// Objects of the kind may use the resource.
bool quota_tracks(const Kind& kind, std::string_view resource);
// The quota has some resource of the item's kind, and all its scopes hold for the item.
bool quota_counts(const json::Value& quota, const QuotaItem& item);
// Updates of the resource (or subresource) can raise the usage.
bool quota_watches_updates(const Kind& kind, std::string_view subresource);

// For namespaces where all of these kinds lie: what the quota's status.used should say. `objects` are all of one kind.
void add_quota_usage(const json::Value& quota, const Kind& kind,
                     const std::vector<json::Value>& objects, base::Time now,
                     kube::ResourceList& used);
// Zero for each resource of spec.hard that some kind of the table tracks.
kube::ResourceList zero_quota_usage(const json::Value& quota, const Kinds& kinds);

kube::ResourceList resource_list_of(const json::Value& object);
json::Value resource_list_json(const kube::ResourceList& list);

}  // namespace tessera::apiserver
