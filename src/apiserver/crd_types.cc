#include "apiserver/crd_types.h"

#include <algorithm>
#include <utility>

namespace tessera::apiserver {
namespace {

using kube::FieldType;
using kube::SchemaField;
using kube::SchemaType;

constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

SchemaField text_field(std::string_view name) {
  SchemaField out;
  out.name = name;
  return out;
}

bool is_struct(const CrdSchema& schema) {
  return schema.type == "object" && !schema.properties.empty() && !schema.preserve_unknown;
}

FieldType scalar_of(const CrdSchema& schema) {
  if (schema.int_or_string) return FieldType::kIntOrString;
  if (schema.type == "string") return FieldType::kString;
  if (schema.type == "boolean") return FieldType::kBool;
  if (schema.type == "integer") return FieldType::kInt64;
  if (schema.type == "number") return FieldType::kDouble;
  return FieldType::kAny;
}

}  // namespace

CrdTypes::CrdTypes(const CrdSchema& schema, std::string_view name) {
  if (schema.preserve_unknown) {
    SchemaType& raw = types_.emplace_back();  // no fields: raw JSON
    raw.name = name;
    root_ = &raw;
    return;
  }
  root_ = object_type(schema, true);
}

const SchemaType* CrdTypes::object_type(const CrdSchema& schema, bool resource) {
  SchemaType& type = types_.emplace_back();
  type.atomic = schema.map_type == "atomic";
  std::vector<SchemaField> fields;
  if (resource) {
    fields.push_back(text_field("apiVersion"));
    fields.push_back(text_field("kind"));
    SchemaField meta = text_field("metadata");
    meta.type = FieldType::kObject;
    meta.object = kube::find_schema(kObjectMeta);
    fields.push_back(meta);
  }
  for (const auto& [name, property] : schema.properties) {
    const bool given = resource && (name == "apiVersion" || name == "kind" || name == "metadata");
    if (!given) fields.push_back(field_of(name, *property));
  }
  std::ranges::sort(fields, {}, &SchemaField::name);
  type.fields = std::move(fields);
  return &type;
}

// What a field, an element of a list or a value of a map is made of, where it is no list or map itself.
void CrdTypes::set_base(const CrdSchema& schema, SchemaField& field) {
  field.type = FieldType::kAny;
  if (is_struct(schema)) {
    field.type = FieldType::kObject;
    field.object = object_type(schema, schema.embedded);
  } else if (schema.type != "object" && schema.type != "array") {
    field.type = scalar_of(schema);
  }
}

SchemaField CrdTypes::field_of(std::string_view name, const CrdSchema& schema) {
  SchemaField field = text_field(name);
  field.atomic = schema.map_type == "atomic";
  if (schema.preserve_unknown) {
    field.type = FieldType::kAny;
  } else if (schema.type == "array" && schema.items != nullptr) {
    field.list = true;
    set_base(*schema.items, field);
    field.atomic = schema.list_type.empty() || schema.list_type == "atomic";
    field.list_set = schema.list_type == "set";
    if (schema.list_type == "map") {
      for (const std::string& key : schema.list_keys) field.list_map_keys.push_back(key);
    }
  } else if (schema.type == "object" && schema.properties.empty() && schema.additional != nullptr) {
    const CrdSchema& inner = *schema.additional;
    const bool plain_list = inner.type == "array" && inner.items != nullptr &&
                            (inner.list_type.empty() || inner.list_type == "atomic");
    field.map = true;
    field.list = plain_list;
    set_base(plain_list ? *inner.items : inner, field);
  } else {
    set_base(schema, field);
  }
  return field;
}

}  // namespace tessera::apiserver
