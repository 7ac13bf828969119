#include "apiserver/crd_openapi.h"

#include <algorithm>

#include "apiserver/crd_kind.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr const char* kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

Value text_property(const char* description) {
  return Value::object({{"type", "string"}, {"description", description}});
}

void add_meta(Value& schema, bool v3) {
  Value& properties = schema.ref("properties");
  properties.set("apiVersion",
                 text_property("APIVersion names the group and version of this object's schema."));
  properties.set("kind", text_property("Kind names the type of this object."));
  std::string to = v3 ? "#/components/schemas/" : "#/definitions/";
  Value meta = Value::object({{"$ref", to.append(kObjectMeta)}});
  if (v3) meta = Value::object({{"allOf", Value::array({std::move(meta)})}});
  meta.set("description", "Metadata that every object has.");
  properties.set("metadata", std::move(meta));
}

void require(Value& schema, const char* field) {
  const auto known = schema["required"].items();
  if (std::ranges::find(known, Value(field)) == known.end()) {
    schema.ref("required").push_back(field);
  }
}

// What version 2 can say of a schema.
void reduce(Value& schema) {
  for (const char* word : {"allOf", "oneOf", "anyOf", "not"}) schema.erase(word);
  const bool preserve = schema["x-kubernetes-preserve-unknown-fields"].as_bool();
  if (schema["nullable"].as_bool()) {
    for (const char* word : {"type", "nullable", "items", "properties"}) schema.erase(word);
  }
  if (preserve) {
    schema.erase("items");
    schema.erase("properties");
  }
  const std::string type = schema["type"].str();
  if ((type == "array" && !schema.contains("items")) || (preserve && type == "object")) {
    schema.erase("type");
  }
}

Value shown(Value schema, bool v3) {
  if (!v3) {
    Value left = Value::array();
    for (const Value& name : schema["required"].items()) {
      if (!schema["properties"][name.as_string()]["nullable"].as_bool()) left.push_back(name);
    }
    reduce(schema);
    if (schema.contains("required")) {
      schema.erase("required");
      if (!left.empty()) schema.set("required", std::move(left));
    }
  } else if (schema["x-kubernetes-int-or-string"].as_bool() && !schema.contains("anyOf")) {
    schema.set("anyOf", Value::array({Value::object({{"type", "integer"}}),
                                      Value::object({{"type", "string"}})}));
  }
  const Value properties = schema["properties"];
  for (const json::Member& member : properties.members()) {
    schema.ref("properties").set(member.name(), shown(member.value, v3));
  }
  for (const char* word : {"items", "additionalProperties"}) {
    if (schema[word].is_object()) schema.set(word, shown(schema[word], v3));
  }
  const bool open = schema["x-kubernetes-preserve-unknown-fields"].as_bool();
  if (schema["x-kubernetes-embedded-resource"].as_bool() && (v3 || !open)) {
    add_meta(schema, v3);
    require(schema, "kind");
    require(schema, "apiVersion");
  }
  return schema;
}

}  // namespace

std::string custom_model_name(const Kind& kind, std::string_view name) {
  std::string out;
  std::string_view rest = kind.group;
  while (!rest.empty()) {
    const size_t dot = rest.rfind('.');
    out.append(rest.substr(dot == std::string_view::npos ? 0 : dot + 1)).append(".");
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(0, dot);
  }
  return out.append(kind.version).append(".").append(name);
}

Value custom_openapi(const Kind& kind, bool v3) {
  const auto now = kind.custom->slot->now();
  Value schema = Value::object({{"type", "object"}});
  const bool open =
      now != nullptr && now->openapi["x-kubernetes-preserve-unknown-fields"].as_bool();
  // Where version 2 names any field, clients refuse all others.
  if (now != nullptr && (v3 || !open)) {
    schema = shown(now->openapi, v3);
    add_meta(schema, v3);
  }
  schema.set("x-kubernetes-group-version-kind",
             Value::array({Value::object(
                 {{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind}})}));
  if (!kind.selectable_fields.empty() && v3) {
    Value fields = Value::array();
    for (const std::string& field : kind.selectable_fields) {
      fields.push_back(Value::object({{"fieldPath", field}}));
    }
    schema.set("x-kubernetes-selectable-fields", std::move(fields));
  }
  return schema;
}

}  // namespace tessera::apiserver
