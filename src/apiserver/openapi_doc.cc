#include "apiserver/openapi_doc.h"

#include <fmt/core.h>

#include <set>
#include <utility>
#include <vector>

#include "apiserver/crd_openapi.h"
#include "apiserver/discovery.h"
#include "apiserver/routes.h"
#include "kube/schema.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
constexpr std::string_view kListMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

// The differences between the two versions of OpenAPI, as far as they matter here.
struct Dialect {
  bool v3;
  std::string_view refs() const { return v3 ? "#/components/schemas/" : "#/definitions/"; }
  Value ref(std::string_view type) const {
    return Value::object({{"$ref", std::string(refs()).append(type)}});
  }
  Value parameter(std::string_view name, std::string_view in, std::string_view type) const {
    Value out = Value::object({{"name", name}, {"in", in}});
    if (in == "path") out.set("required", true);
    if (v3) {
      out.set("schema", Value::object({{"type", type}}));
    } else {
      out.set("type", type);
      if (in == "query") out.set("uniqueItems", true);
    }
    return out;
  }
};

struct Verb {
  std::string_view method;  // "patch"
  std::string_view action;  // "patch"
  std::string_view id;      // operationId's first word
  bool write;
  bool collection;
};

constexpr Verb kVerbs[] = {{"get", "list", "list", false, true},
                           {"post", "post", "create", true, true},
                           {"delete", "deletecollection", "deleteCollection", false, true},
                           {"get", "get", "read", false, false},
                           {"put", "put", "replace", true, false},
                           {"patch", "patch", "patch", true, false},
                           {"delete", "delete", "delete", false, false}};

Value query_parameters(const Verb& verb, const Dialect& dialect) {
  std::vector<std::pair<std::string_view, std::string_view>> names;
  if (verb.write) {
    names = {{"dryRun", "string"}, {"fieldManager", "string"}, {"fieldValidation", "string"}};
    if (verb.method == "patch") names.emplace_back("force", "boolean");
  } else if (verb.collection) {
    names = {{"allowWatchBookmarks", "boolean"},
             {"continue", "string"},
             {"fieldSelector", "string"},
             {"labelSelector", "string"},
             {"limit", "integer"},
             {"resourceVersion", "string"},
             {"resourceVersionMatch", "string"},
             {"sendInitialEvents", "boolean"},
             {"timeoutSeconds", "integer"},
             {"watch", "boolean"}};
  } else if (verb.method == "delete") {
    names = {{"dryRun", "string"},
             {"gracePeriodSeconds", "integer"},
             {"orphanDependents", "boolean"},
             {"propagationPolicy", "string"}};
  }
  Value out = Value::array();
  for (const auto& [name, type] : names) out.push_back(dialect.parameter(name, "query", type));
  return out;
}

Value response(const Dialect& dialect, std::string_view type) {
  Value ok = Value::object({{"description", "OK"}});
  if (type.empty()) return ok;
  if (dialect.v3) {
    ok.set("content",
           Value::object({{"application/json", Value::object({{"schema", dialect.ref(type)}})}}));
  } else {
    ok.set("schema", dialect.ref(type));
  }
  return ok;
}

// What a request body of the operation is: an object of `type`, or a patch in one of its media
// types.
void add_body(const Dialect& dialect, const Verb& verb, std::string_view type, bool custom,
              Value& operation) {
  const bool patch = verb.method == "patch";
  const Value schema = patch ? Value::object({{"type", "object"}}) : dialect.ref(type);
  if (!dialect.v3) {
    operation.ref("parameters")
        .push_back(Value::object(
            {{"name", "body"}, {"in", "body"}, {"required", true}, {"schema", schema}}));
    return;
  }
  Value content = Value::object();
  const std::vector<std::string_view> types =
      patch ? std::vector<std::string_view>{"application/json-patch+json",
                                            "application/merge-patch+json",
                                            custom ? "application/apply-patch+yaml"
                                                   : "application/strategic-merge-patch+json"}
            : std::vector<std::string_view>{"application/json", "application/yaml"};
  for (const std::string_view media : types)
    content.set(media, Value::object({{"schema", schema}}));
  operation.set("requestBody",
                Value::object({{"content", std::move(content)}, {"required", true}}));
}

Value operation_of(const Dialect& dialect, const Verb& verb, const GroupVersionKind& gvk,
                   std::string_view id, std::string_view type, std::string_view answer,
                   bool custom) {
  Value operation = Value::object(
      {{"operationId", id},
       {"parameters", query_parameters(verb, dialect)},
       {"responses", Value::object({{"200", response(dialect, answer)}})},
       {"x-kubernetes-action", verb.action},
       {"x-kubernetes-group-version-kind",
        Value::object({{"group", gvk.group}, {"version", gvk.version}, {"kind", gvk.kind}})}});
  if (verb.write) add_body(dialect, verb, type, custom, operation);
  return operation;
}

class Document {
 public:
  explicit Document(Dialect dialect) : dialect_(dialect) {}

  void add(const Kind& kind) {
    const std::string root = "/" + openapi_path(kind.group, kind.version);
    const std::string collection =
        root + (kind.namespaced ? "/namespaces/{namespace}/" : "/") + kind.plural;
    const bool stored = !kind.virtual_create;
    if (kind.namespaced && stored) add_path(kind, root + "/" + kind.plural, true, true);
    add_path(kind, collection, true, false);
    if (stored) add_path(kind, collection + "/{name}", false, false);
    for (const std::string& name : subresources_of(kind)) add_subresource(kind, collection, name);
    if (kind.custom != nullptr) {
      schemas_.set(type_name(kind), custom_openapi(kind, dialect_.v3));
      if (const kube::SchemaType* meta = kube::find_schema(kObjectMeta)) reach(*meta);
      add_list_schema(kind);
    } else if (kind.schema != nullptr) {
      reach(*kind.schema);
      if (stored) add_list_schema(kind);
    }
  }

  const Value& paths() const { return paths_; }
  const Value& schemas() const { return schemas_; }

 private:
  // Empty where nothing is known of the kind's type.
  static std::string type_name(const Kind& kind) {
    if (kind.custom != nullptr) return custom_model_name(kind, kind.kind);
    return kind.schema == nullptr ? std::string() : std::string(kind.schema->name);
  }
  static std::string list_name(const Kind& kind) {
    if (kind.custom != nullptr) return custom_model_name(kind, kind.list_kind_name());
    return std::string(kind.schema->name) + "List";
  }

  void add_path(const Kind& kind, const std::string& path, bool collection,
                bool across_namespaces) {
    Value& item = paths_.ref(path);
    const GroupVersionKind gvk{kind.group, kind.version, kind.kind};
    for (const Verb& verb : kVerbs) {
      if (verb.collection != collection || (across_namespaces && verb.action != "list")) continue;
      if (kind.virtual_create && verb.action != "post") continue;
      const std::string id = fmt::format("{}{}{}{}{}", verb.id, kind.group, kind.version, kind.kind,
                                         across_namespaces ? "ForAllNamespaces" : "");
      const std::string type = type_name(kind);
      const std::string answer = !type.empty() && verb.action == "list" ? list_name(kind) : type;
      Verb typed = verb;
      if (type.empty()) typed.write = false;  // a body without a schema is not described
      item.set(verb.method,
               operation_of(dialect_, typed, gvk, id, type, answer, kind.custom != nullptr));
    }
    add_path_parameters(kind, path, item);
  }

  void add_subresource(const Kind& kind, const std::string& collection, const std::string& name) {
    const std::string path = collection + "/{name}/" + name;
    const GroupVersionKind gvk = subresource_kind(kind, name);
    const kube::SchemaType* type = kube::find_kind_schema(gvk.group, gvk.version, gvk.kind);
    const bool own = kind.custom != nullptr && gvk.kind == kind.kind;
    if (type == nullptr && !own) return;
    if (!own) reach(*type);
    const std::string shape = own ? type_name(kind) : std::string(type->name);
    Value& item = paths_.ref(path);
    for (const std::string_view verb_name : subresource_verbs(name)) {
      const std::string_view method = verb_name == "create"   ? "post"
                                      : verb_name == "update" ? "put"
                                                              : verb_name;
      const Verb verb{method, method, verb_name, method != "get", false};
      const std::string id =
          fmt::format("{}{}{}{}{}", verb_name, kind.group, kind.version, kind.kind, name);
      item.set(method, operation_of(dialect_, verb, gvk, id, shape, shape, kind.custom != nullptr));
    }
    add_path_parameters(kind, path, item);
  }

  void add_path_parameters(const Kind& kind, const std::string& path, Value& item) {
    Value parameters = Value::array();
    if (path.find("{name}") != std::string::npos) {
      parameters.push_back(dialect_.parameter("name", "path", "string"));
    }
    if (kind.namespaced && path.find("{namespace}") != std::string::npos) {
      parameters.push_back(dialect_.parameter("namespace", "path", "string"));
    }
    if (!parameters.empty()) item.set("parameters", std::move(parameters));
  }

  void add_list_schema(const Kind& kind) {
    const std::string name = list_name(kind);
    if (kube::find_schema(name) != nullptr) {
      reach(*kube::find_schema(name));
      return;
    }
    const Value text = Value::object({{"type", "string"}});
    Value properties = Value::object(
        {{"apiVersion", text},
         {"kind", text},
         {"items", Value::object({{"type", "array"}, {"items", dialect_.ref(type_name(kind))}})}});
    if (const kube::SchemaType* meta = kube::find_schema(kListMeta)) {
      reach(*meta);
      properties.set("metadata", dialect_.ref(kListMeta));
    }
    schemas_.set(
        name, Value::object({{"type", "object"},
                             {"required", Value::array({"items"})},
                             {"properties", std::move(properties)},
                             {"x-kubernetes-group-version-kind",
                              Value::array({Value::object({{"group", kind.group},
                                                           {"version", kind.version},
                                                           {"kind", kind.list_kind_name()}})})}}));
  }

  // A type and all that its fields name.
  void reach(const kube::SchemaType& type) {
    std::vector<const kube::SchemaType*> open = {&type};
    while (!open.empty()) {
      const kube::SchemaType* next = open.back();
      open.pop_back();
      if (!seen_.insert(next).second) continue;
      schemas_.set(next->name, kube::openapi_schema(*next, dialect_.v3));
      for (const kube::SchemaField& field : next->fields) {
        if (field.object != nullptr) open.push_back(field.object);
      }
    }
  }

  Dialect dialect_;
  std::set<const kube::SchemaType*> seen_;
  Value paths_ = Value::object();
  Value schemas_ = Value::object();
};

Value title() {
  return Value::object({{"title", "Kubernetes"}, {"version", "v1.36.3+tessera"}});
}

}  // namespace

std::string openapi_path(std::string_view group, std::string_view version) {
  return group.empty() ? fmt::format("api/{}", version) : fmt::format("apis/{}/{}", group, version);
}

Value openapi_v3(const Kinds& kinds, std::string_view group, std::string_view version) {
  Document document(Dialect{true});
  bool any = false;
  for (const Kind* kind : kinds.all()) {
    if (kind->group != group || kind->version != version) continue;
    document.add(*kind);
    any = true;
  }
  if (!any) return {};
  return Value::object({{"openapi", "3.0.0"},
                        {"info", title()},
                        {"paths", document.paths()},
                        {"components", Value::object({{"schemas", document.schemas()}})}});
}

Value openapi_v2(const Kinds& kinds) {
  Document document(Dialect{false});
  for (const Kind* kind : kinds.all()) document.add(*kind);
  return Value::object({{"swagger", "2.0"},
                        {"info", title()},
                        {"paths", document.paths()},
                        {"definitions", document.schemas()}});
}

std::string text_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

}  // namespace tessera::apiserver
