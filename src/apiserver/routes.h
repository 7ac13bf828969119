// From an HTTP method and path to a resource, a verb and a kube::Request.
//
// Shape:   find_resource reads the path, plan_operation adds method and query. Bodies are read by
//          routes_body.h.
// Errors:  kNotFound for a path that no kind serves, kMethodNotAllowed for a method that the path
//          does not take, kBadRequest for a name that no object can have; worded as Kubernetes'
//          client sees them.
// Threads: pure.
// Source:  Kubernetes API concepts (resource URIs); k8s.io/apiserver/pkg/endpoints/request
//          (RequestInfo).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/kind.h"
#include "base/result.h"
#include "kube/client.h"

namespace tessera::apiserver {

using Query = std::vector<std::pair<std::string, std::string>>;

struct ResourcePath {
  const Kind* kind = nullptr;
  std::string ns;             // empty: cluster-scoped, or all namespaces
  std::string name;           // empty: the collection
  std::string subresource;    // "status", or empty
  bool watch_prefix = false;  // the deprecated /api/v1/watch/... form
};

// `segments` is the whole decoded path: {"apis", "apps", "v1", "namespaces", "x", "deployments"}.
base::Result<ResourcePath> find_resource(const Kinds& kinds, std::span<const std::string> segments);

struct Operation {
  kube::Request request;  // without body
  bool watch = false;
  std::string_view
      verb;  // as authorization names it: "get", "list", "watch", "deletecollection", ...
};

base::Result<Operation> plan_operation(const ResourcePath& path, std::string_view method,
                                       const Query& query);

// Verbs that a kind's collection and objects take, and those of a subresource, sorted: for
// discovery and OpenAPI.
std::vector<std::string_view> resource_verbs();
std::vector<std::string_view> resource_verbs(const Kind& kind);
std::vector<std::string_view> subresource_verbs(std::string_view subresource);
// All subresources of a kind, "status" with them.
std::vector<std::string> subresources_of(const Kind& kind);

// True for "1", "t", "true" as Go's strconv reads them, and for a parameter that is there without a
// value.
bool query_flag(const Query& query, std::string_view key);
// The first value of a key, or empty.
std::string_view query_value(const Query& query, std::string_view key);

// Puts the numbers of a list's query right: drops a limit below 0, refuses what is no number.
base::Status check_list_query(Query& query);

// A resource of a group that is not built in, and that no definition serves now: nobody answers there.
bool is_strange_group(const Kinds& kinds, std::span<const std::string> segments);

// log, exec, attach and portforward of a pod, which lead into its containers.
bool leads_into_container(const ResourcePath& path);

base::Error unknown_path_error();

}  // namespace tessera::apiserver
