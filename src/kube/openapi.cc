#include "kube/schema.h"

// Schemas as kube-apiserver serves them, without descriptions. kubectl needs
// x-kubernetes-group-version-kind and the patch rules; a reference with siblings is allOf in v3, as
// the standard wants it.

namespace tessera::kube {
namespace {

using json::Value;

constexpr std::string_view kGvk = "x-kubernetes-group-version-kind";

Value typed(std::string_view type, std::string_view format = {}) {
  Value out = Value::object({{"type", type}});
  if (!format.empty()) out.set("format", format);
  return out;
}

Value quantity_schema(bool v3) {
  if (!v3) return typed("string");
  return Value::object({{"oneOf", Value::array({typed("string"), typed("number")})}});
}

Value int_or_string_schema(bool v3) {
  if (!v3) return typed("string", "int-or-string");
  return Value::object(
      {{"format", "int-or-string"}, {"oneOf", Value::array({typed("integer"), typed("string")})}});
}

Value scalar_schema(FieldType type, bool object_only, bool v3) {
  switch (type) {
    case FieldType::kString:
      return typed("string");
    case FieldType::kBytes:
      return typed("string", "byte");
    case FieldType::kBool:
      return typed("boolean");
    case FieldType::kInt32:
      return typed("integer", "int32");
    case FieldType::kInt64:
      return typed("integer", "int64");
    case FieldType::kDouble:
      return typed("number", "double");
    case FieldType::kQuantity:
      return quantity_schema(v3);
    case FieldType::kIntOrString:
      return int_or_string_schema(v3);
    case FieldType::kTime:
    case FieldType::kMicroTime:
      return typed("string", "date-time");
    case FieldType::kAny:
    case FieldType::kObject:
      break;
  }
  return object_only ? typed("object") : Value::object();
}

Value reference(const SchemaType& type, bool v3) {
  std::string to = v3 ? "#/components/schemas/" : "#/definitions/";
  return Value::object({{"$ref", to.append(type.name)}});
}

Value element_schema(const SchemaField& field, bool v3) {
  if (field.object != nullptr) return reference(*field.object, v3);
  return scalar_schema(field.type, field.object_only, v3);
}

void add_rules(const SchemaField& field, Value& schema) {
  if (field.patch_merge || field.patch_retain_keys) {
    schema.set("x-kubernetes-patch-strategy", !field.patch_retain_keys ? "merge"
                                              : field.patch_merge      ? "merge,retainKeys"
                                                                       : "retainKeys");
  }
  if (!field.patch_merge_key.empty()) {
    schema.set("x-kubernetes-patch-merge-key", field.patch_merge_key);
  }
  if (!field.list_map_keys.empty()) {
    Value keys = Value::array();
    for (std::string_view key : field.list_map_keys) keys.push_back(key);
    schema.set("x-kubernetes-list-map-keys", std::move(keys));
    schema.set("x-kubernetes-list-type", "map");
  }
  if (field.list_set) schema.set("x-kubernetes-list-type", "set");
  if (field.atomic) {
    schema.set(field.list && !field.map ? "x-kubernetes-list-type" : "x-kubernetes-map-type",
               "atomic");
  }
}

Value field_schema(const SchemaField& field, bool v3) {
  Value schema = element_schema(field, v3);
  if (field.list) schema = Value::object({{"type", "array"}, {"items", std::move(schema)}});
  if (field.map) {
    schema = Value::object({{"type", "object"}, {"additionalProperties", std::move(schema)}});
  }
  const bool bare_reference = schema.contains("$ref");
  if (bare_reference && v3) schema = Value::object({{"allOf", Value::array({std::move(schema)})}});
  add_rules(field, schema);
  return schema;
}

}  // namespace

json::Value openapi_schema(const SchemaType& type, bool v3) {
  if (type.scalar) return scalar_schema(type.scalar_type, type.object_only, v3);
  Value out = typed("object");
  Value properties = Value::object();
  Value required = Value::array();
  for (const SchemaField& field : type.fields) {
    properties.set(field.name, field_schema(field, v3));
    if (field.required) required.push_back(field.name);
  }
  out.set("properties", std::move(properties));
  if (!required.empty()) out.set("required", std::move(required));
  if (type.atomic) out.set("x-kubernetes-map-type", "atomic");
  if (type.kinds.empty()) return out;
  Value kinds = Value::array();
  for (const SchemaKind& kind : type.kinds) {
    kinds.push_back(
        Value::object({{"group", kind.group}, {"kind", kind.kind}, {"version", kind.version}}));
  }
  out.set(kGvk, std::move(kinds));
  return out;
}

}  // namespace tessera::kube
