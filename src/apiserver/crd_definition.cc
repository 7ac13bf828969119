#include "apiserver/crd_definition.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <utility>

#include "apiserver/crd_kind.h"
#include "apiserver/validate_meta.h"
#include "kube/schema.h"

namespace tessera::apiserver {
namespace {

using json::Value;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Schemas below "items" and "additionalProperties" are of no fixed type on the wire, and are read here as all others are.
void normalize_schema(Value& schema) {
  static const kube::SchemaType* const kType =
      kube::find_schema("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
  for (const char* word : {"items", "additionalProperties"}) {
    if (!schema[word].is_object()) continue;
    auto normal = kube::normalize(*kType, schema[word], nullptr);
    if (!normal) continue;  // what is wrong with it is told by validation
    normalize_schema(*normal);
    schema.set(word, std::move(*normal));
  }
  const Value properties = schema["properties"];
  for (const json::Member& member : properties.members()) {
    Value inner = member.value;
    normalize_schema(inner);
    if (!inner.same_node(member.value)) schema.ref("properties").set(member.name(), inner);
  }
  for (const char* word : {"allOf", "anyOf", "oneOf"}) {
    for (size_t i = 0; i < schema[word].size(); ++i) {
      Value inner = schema[word].at(i);
      normalize_schema(inner);
      if (!inner.same_node(schema[word].at(i))) schema.ref(word).ref_at(i) = inner;
    }
  }
  if (schema["not"].is_object()) {
    Value inner = schema["not"];
    normalize_schema(inner);
    if (!inner.same_node(schema["not"])) schema.set("not", inner);
  }
}

std::string_view storage_version(const Value& definition) {
  for (const Value& version : definition["spec"]["versions"].items()) {
    if (version["storage"].as_bool()) return version["name"].as_string();
  }
  return {};
}

void note_storage_version(Value& definition) {
  const std::string name(storage_version(definition));
  if (name.empty()) return;
  const Value& known = definition["status"]["storedVersions"];
  if (std::ranges::find(known.items(), Value(name)) != known.items().end()) return;
  definition.ref("status", "storedVersions").push_back(name);
}

}  // namespace

void set_condition(Value& definition, std::string_view type, bool status, std::string_view reason,
                   std::string_view message, base::Time now) {
  const char* word = status ? "True" : "False";
  Value next = Value::object({{"type", type},
                              {"status", word},
                              {"reason", reason},
                              {"message", message},
                              {"lastTransitionTime", base::to_rfc3339(now)}});
  Value& list = definition.ref("status", "conditions");
  if (!list.is_array()) list = Value::array();
  for (size_t i = 0; i < list.size(); ++i) {
    if (list.at(i)["type"].as_string() != type) continue;
    if (list.at(i)["status"].as_string() == word) {
      next.set("lastTransitionTime", list.at(i)["lastTransitionTime"]);
    }
    list.ref_at(i) = std::move(next);
    return;
  }
  list.push_back(std::move(next));
}

void default_definition(Value& definition) {
  if (!definition["spec"].is_object()) return;
  Value& spec = definition.ref("spec");
  const std::string kind = spec["names"]["kind"].str();
  if (spec["names"]["singular"].as_string().empty()) spec.ref("names", "singular") = lower(kind);
  if (spec["names"]["listKind"].as_string().empty() && !kind.empty()) {
    spec.ref("names", "listKind") = kind + "List";
  }
  if (spec["conversion"].is_null()) spec.ref("conversion", "strategy") = "None";
  const Value& service = spec["conversion"]["webhook"]["clientConfig"]["service"];
  if (service.is_object() && service["port"].is_null()) {
    spec.ref("conversion", "webhook", "clientConfig", "service", "port") = 443;
  }
  for (size_t i = 0; i < spec["versions"].size(); ++i) {
    Value schema = spec["versions"].at(i)["schema"]["openAPIV3Schema"];
    if (!schema.is_object()) continue;
    normalize_schema(schema);
    if (schema.same_node(spec["versions"].at(i)["schema"]["openAPIV3Schema"])) continue;
    spec.ref("versions").ref_at(i).ref("schema", "openAPIV3Schema") = schema;
  }
}

void prepare_new_definition(Value& definition) {
  Value status = Value::object();
  status.ref("acceptedNames") = Value::object({{"kind", ""}, {"plural", ""}});
  status.set("conditions", Value());
  status.set("storedVersions", Value());
  definition.set("status", std::move(status));
  note_storage_version(definition);
}

void prepare_changed_definition(Value& definition, const Value& /*before*/) {
  note_storage_version(definition);
}

void prepare_definition_delete(Value& definition, base::Time now) {
  Value& finalizers = definition.ref("metadata", "finalizers");
  if (!finalizers.is_array()) finalizers = Value::array();
  if (std::ranges::find(finalizers.items(), Value(kCrdFinalizer)) == finalizers.items().end()) {
    finalizers.push_back(kCrdFinalizer);
  }
  set_condition(definition, "Terminating", true, "InstanceDeletionPending",
                "CustomResourceDefinition marked for deletion; CustomResource deletion will begin "
                "soon",
                now);
}

}  // namespace tessera::apiserver
