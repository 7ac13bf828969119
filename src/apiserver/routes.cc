#include "apiserver/routes.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "apiserver/api_errors.h"
#include "apiserver/crd_kind.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using kube::Verb;

tl::unexpected<base::Error> not_found() {
  return base::error(unknown_path_error());
}

tl::unexpected<base::Error> not_allowed() {
  return base::error(Code::kMethodNotAllowed,
                     "the server does not allow this method on the requested resource");
}

// What a segment may not be: k8s.io/apimachinery/pkg/api/validation/path.
std::string segment_fault(std::string_view segment) {
  if (segment == "." || segment == "..") return fmt::format("may not be '{}'", segment);
  return segment.find('%') == std::string_view::npos ? std::string() : "may not contain '%'";
}

base::Status check_name(std::string_view name) {
  const std::string fault = segment_fault(name);
  if (fault.empty()) return {};
  return base::error(Code::kBadRequest, "Name parameter invalid: \"{}\": {}", name, fault);
}

// Kubernetes finds out only where it makes a key of the namespace, and says so.
base::Status check_namespace(const ResourcePath& path, std::string_view method) {
  if (path.ns != "." && path.ns != "..") return {};
  if (method == "POST" && path.name.empty()) {
    const std::string why =
        fmt::format("invalid resource name \"{}\": [{}]", path.ns, segment_fault(path.ns));
    return base::error(
        base::Error{Code::kInternal, "Internal error occurred: " + why, {{"", why, ""}}});
  }
  const std::string end = path.name.empty() ? std::string() : "/" + path.name;
  return base::error(
      plain_error(fmt::format("invalid key: \"/{}/{}{}\"", path.kind->plural, path.ns, end)));
}

// /namespaces/{name}/status is the Namespace itself, /namespaces/{ns}/pods is something in it.
bool is_namespace_subresource(std::string_view segment) {
  return segment == "status" || segment == "finalize";
}

constexpr size_t kShownBytes = 64;

bool is_pod(const Kind& kind) {
  return kind.group.empty() && kind.kind == "Pod";
}

bool is_stream(std::string_view subresource) {
  return subresource == "exec" || subresource == "attach" || subresource == "portforward";
}

struct Parts {
  std::string group;
  std::string version;
  std::span<const std::string> rest;  // after the version
  bool watch = false;
};

base::Result<Parts> split(std::span<const std::string> segments) {
  Parts parts;
  if (segments.size() >= 3 && segments[0] == "api") {
    parts.version = segments[1];
    parts.rest = segments.subspan(2);
  } else if (segments.size() >= 4 && segments[0] == "apis") {
    parts.group = segments[1];
    parts.version = segments[2];
    parts.rest = segments.subspan(3);
  } else {
    return not_found();
  }
  if (parts.rest.size() >= 2 && parts.rest[0] == "watch") {
    parts.watch = true;
    parts.rest = parts.rest.subspan(1);
  }
  return parts;
}

base::Result<Operation> plan_subresource(const ResourcePath& path, std::string_view method,
                                         Operation operation) {
  static constexpr std::pair<std::string_view, std::pair<Verb, std::string_view>> kMethods[] = {
      {"GET", {Verb::kGet, "get"}},
      {"POST", {Verb::kCreate, "create"}},
      {"PUT", {Verb::kUpdate, "update"}},
      {"PATCH", {Verb::kPatch, "patch"}}};
  for (const auto& [name, verb] : kMethods) {
    if (name != method) continue;
    const bool stream = is_pod(*path.kind) && is_stream(path.subresource);
    const auto verbs = stream ? std::vector<std::string_view>{"create", "get"}
                              : subresource_verbs(path.subresource);
    if (std::ranges::find(verbs, verb.second) == verbs.end()) return not_allowed();
    operation.request.verb = verb.first;
    operation.verb = verb.second;
    return operation;
  }
  return not_allowed();
}

base::Result<Operation> plan_object(std::string_view method, Operation operation) {
  if (method == "GET") {
    operation.request.verb = Verb::kGet;
    operation.verb = "get";
  } else if (method == "PUT") {
    operation.request.verb = Verb::kUpdate;
    operation.verb = "update";
  } else if (method == "PATCH") {
    operation.request.verb = Verb::kPatch;
    operation.verb = "patch";
  } else if (method == "DELETE") {
    operation.request.verb = Verb::kDelete;
    operation.verb = "delete";
  } else {
    return not_allowed();
  }
  return operation;
}

// Namespaces go one by one: one request must not empty a cluster.
bool deleted_together(const Kind& kind) {
  return !kind.group.empty() || kind.kind != "Namespace";
}

base::Result<Operation> plan_collection(const ResourcePath& path, std::string_view method,
                                        Operation operation) {
  const bool across_namespaces = path.kind->namespaced && path.ns.empty();
  if (method == "GET") {
    operation.request.verb = Verb::kList;
    operation.watch = query_flag(operation.request.query, "watch");
    operation.verb = operation.watch ? "watch" : "list";
  } else if (across_namespaces) {
    return not_allowed();
  } else if (method == "POST") {
    operation.request.verb = Verb::kCreate;
    operation.verb = "create";
  } else if (method == "DELETE" && deleted_together(*path.kind)) {
    operation.request.verb = Verb::kDeleteCollection;
    operation.verb = "deletecollection";
  } else {
    return not_allowed();
  }
  return operation;
}

base::Result<Operation> plan_old_watch(const ResourcePath& path, std::string_view method,
                                       Operation operation) {
  if (method != "GET" || !path.subresource.empty()) return not_allowed();
  operation.request.verb = Verb::kList;
  operation.watch = true;
  operation.verb = "watch";
  if (!path.name.empty()) {
    operation.request.name.clear();
    std::string selector = "metadata.name=" + path.name;
    const std::string_view more = query_value(operation.request.query, "fieldSelector");
    if (!more.empty()) selector.append(",").append(more);
    std::erase_if(operation.request.query,
                  [](const auto& p) { return p.first == "fieldSelector"; });
    operation.request.query.emplace_back("fieldSelector", std::move(selector));
  }
  return operation;
}

}  // namespace

base::Error unknown_path_error() {
  return {Code::kNotFound, "the server could not find the requested resource", {}};
}

std::string_view query_value(const Query& query, std::string_view key) {
  for (const auto& [k, v] : query) {
    if (k == key) return v;
  }
  return {};
}

bool query_flag(const Query& query, std::string_view key) {
  for (const auto& [k, v] : query) {
    if (k == key) return v != "false" && v != "0";
  }
  return false;
}

// In the words of strconv.ParseInt, which Kubernetes shows.
base::Status check_list_query(Query& query) {
  for (const std::string_view key : {"limit", "timeoutSeconds"}) {
    const std::string_view text = query_value(query, key);
    if (text.empty()) continue;
    int64_t number = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (bad == std::errc::result_out_of_range) {
      return base::error(Code::kBadRequest, "strconv.ParseInt: parsing \"{}\": value out of range",
                         text.substr(0, kShownBytes));
    }
    if (bad != std::errc() || end != text.data() + text.size()) {
      return base::error(Code::kBadRequest, "strconv.ParseInt: parsing \"{}\": invalid syntax",
                         text.substr(0, kShownBytes));
    }
    if (number < 0) std::erase_if(query, [key](const auto& p) { return p.first == key; });
  }
  return {};
}

bool leads_into_container(const ResourcePath& path) {
  return is_pod(*path.kind) && (path.subresource == "log" || is_stream(path.subresource));
}

std::vector<std::string_view> resource_verbs() {
  return {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
}

std::vector<std::string_view> resource_verbs(const Kind& kind) {
  if (kind.virtual_create) return {"create"};
  if (kind.custom != nullptr) {
    if (kind.custom->terminating) return {"delete", "deletecollection", "get", "list", "watch"};
    return {"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"};
  }
  std::vector<std::string_view> verbs = resource_verbs();
  if (!deleted_together(kind)) std::erase(verbs, "deletecollection");
  return verbs;
}

std::vector<std::string_view> subresource_verbs(std::string_view subresource) {
  if (subresource == "binding" || subresource == "eviction" || subresource == "token") {
    return {"create"};
  }
  if (subresource == "log") return {"get"};
  if (subresource == "finalize") return {"update"};
  return {"get", "patch", "update"};
}

std::vector<std::string> subresources_of(const Kind& kind) {
  std::vector<std::string> names = kind.subresources;
  if (kind.status_subresource && std::ranges::find(names, "status") == names.end()) {
    names.emplace_back("status");
  }
  std::ranges::sort(names);
  if (kind.custom != nullptr) std::ranges::reverse(names);  // "status", "scale": as they are told
  return names;
}

base::Result<ResourcePath> find_resource(const Kinds& kinds,
                                         std::span<const std::string> segments) {
  TS_TRY(Parts parts, split(segments));
  ResourcePath path;
  path.watch_prefix = parts.watch;
  auto rest = parts.rest;
  if (rest.size() >= 3 && rest[0] == "namespaces" && !is_namespace_subresource(rest[2])) {
    path.ns = rest[1];
    rest = rest.subspan(2);
  }
  if (rest.empty() || rest.size() > 3) return not_found();
  path.kind = kinds.find({parts.group, parts.version, rest[0]});
  if (path.kind == nullptr) return not_found();
  if (std::ranges::find(rest.subspan(1), "") != rest.end()) return not_found();
  if (rest.size() > 1) path.name = rest[1];
  if (rest.size() > 2) path.subresource = rest[2];
  if (!path.kind->namespaced && !path.ns.empty()) return not_found();
  // A namespaced object has no path outside its namespace.
  if (path.kind->namespaced && path.ns.empty() && !path.name.empty()) return not_found();
  if (!path.subresource.empty()) {
    const auto known = subresources_of(*path.kind);
    if (std::ranges::find(known, path.subresource) == known.end() && !leads_into_container(path)) {
      if (path.kind->custom != nullptr) {
        return base::error(apiserver::not_found(*path.kind, path.name));
      }
      return not_found();
    }
  }
  TS_TRY_STATUS(check_name(path.name));
  return path;
}

bool is_strange_group(const Kinds& kinds, std::span<const std::string> segments) {
  if (segments.size() < 4 || segments[0] != "apis") return false;
  const size_t at = segments.size() > 5 && segments[3] == "namespaces" ? 5 : 3;
  if (kinds.find({segments[1], segments[2], segments[at]}) != nullptr) return false;
  return std::ranges::none_of(kinds.all(), [&](const Kind* kind) {
    return kind->group == segments[1] && kind->custom == nullptr;
  });
}

base::Result<Operation> plan_operation(const ResourcePath& path, std::string_view method,
                                       const Query& query) {
  Operation operation;
  operation.request.gvr = path.kind->gvr();
  operation.request.ns = path.ns;
  operation.request.name = path.name;
  operation.request.subresource = path.subresource;
  operation.request.query = query;
  TS_TRY_STATUS(check_namespace(path, method));
  const bool creates = method == "POST" && path.name.empty() && !path.watch_prefix;
  if (path.kind->virtual_create && !creates) return not_allowed();
  if (path.watch_prefix) return plan_old_watch(path, method, std::move(operation));
  if (!path.subresource.empty()) return plan_subresource(path, method, std::move(operation));
  if (!path.name.empty()) return plan_object(method, std::move(operation));
  return plan_collection(path, method, std::move(operation));
}

}  // namespace tessera::apiserver
