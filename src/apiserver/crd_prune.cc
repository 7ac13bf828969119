#include "apiserver/crd_prune.h"

#include <fmt/format.h>

#include <algorithm>

#include "apiserver/validate_path.h"
#include "kube/schema.h"

namespace tessera::apiserver {
namespace {

using json::Value;

bool is_meta(std::string_view name) {
  return name == "apiVersion" || name == "kind" || name == "metadata";
}

class Pruner {
 public:
  explicit Pruner(std::vector<std::string>* unknown) : unknown_(unknown) {}

  // `schema` is null where nothing is known.
  void prune(const CrdSchema* schema, Value& value, const Path& at, bool embedded) {
    if (schema != nullptr && schema->preserve_unknown) return skip(*schema, value, at, embedded);
    if (value.is_array()) return prune_items(schema, value, at);
    if (!value.is_object()) return;
    const Value before = value;
    for (const json::Member& member : before.members()) {
      const std::string_view name = member.name();
      const Path place = at.child(name);
      if (embedded && is_meta(name)) {
        if (name == "metadata" && !at.text().empty()) prune_metadata(value, place);
        continue;
      }
      const CrdSchema* property = schema == nullptr ? nullptr : schema->property(name);
      if (property != nullptr || (schema != nullptr && schema->has_additional)) {
        const CrdSchema* inner = property != nullptr ? property : schema->additional.get();
        // additionalProperties: true knows the field, but nothing in it.
        into(inner, name, member.value, value, place);
      } else {
        if (unknown_ != nullptr) unknown_->push_back(place.text());
        value.erase(name);
      }
    }
  }

 private:
  void into(const CrdSchema* schema, std::string_view name, const Value& inner, Value& value,
            const Path& place) {
    if (!inner.is_object() && !inner.is_array()) return;
    Value next = inner;
    prune(schema, next, place, schema != nullptr && schema->embedded);
    if (!next.same_node(inner)) value.set(name, std::move(next));
  }

  void prune_items(const CrdSchema* schema, Value& value, const Path& at) {
    const CrdSchema* items = schema == nullptr ? nullptr : schema->items.get();
    const Value before = value;
    for (size_t i = 0; i < before.size(); ++i) {
      const Path place = at.at(i);
      Value next = before.at(i);
      if (!next.is_object() && !next.is_array()) continue;
      prune(items, next, place, items != nullptr && items->embedded);
      if (!next.same_node(before.at(i))) value.ref_at(i) = std::move(next);
    }
  }

  // Nothing goes here, but what is below known fields may.
  void skip(const CrdSchema& schema, Value& value, const Path& at, bool embedded) {
    const Value before = value;
    if (value.is_array()) {
      for (size_t i = 0; schema.items != nullptr && i < before.size(); ++i) {
        const Path place = at.at(i);
        Value next = before.at(i);
        skip(*schema.items, next, place, schema.items->embedded);
        const bool kept = next.same_node(before.at(i)) || !(next.is_object() || next.is_array());
        if (!kept) value.ref_at(i) = std::move(next);
      }
      return;
    }
    for (const json::Member& member : before.members()) {
      const std::string_view name = member.name();
      const Path place = at.child(name);
      if (embedded && is_meta(name)) {
        if (name == "metadata" && !at.text().empty()) prune_metadata(value, place);
        continue;
      }
      if (const CrdSchema* property = schema.property(name)) {
        into(property, name, member.value, value, place);
      } else if (schema.has_additional) {
        into(schema.additional.get(), name, member.value, value, place);
      }
    }
  }

  // The metadata of an object within is read as that of any object.
  void prune_metadata(Value& object, const Path& place) {
    static const kube::SchemaType* const kMeta =
        kube::find_schema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    const Value& meta = object["metadata"];
    if (!meta.is_object() || kMeta == nullptr) return;
    std::vector<std::string> unknown;
    const auto normal = kube::normalize(*kMeta, meta, &unknown);
    if (!normal) return;  // validation tells
    for (const std::string& field : unknown) {
      if (unknown_ != nullptr) unknown_->push_back(fmt::format("{}.{}", place.text(), field));
    }
    if (!(*normal == meta)) object.set("metadata", *normal);
  }

  std::vector<std::string>* unknown_;
};

bool drops(const CrdSchema* schema, const Value& value) {
  return value.is_null() && schema != nullptr && !schema->nullable && !schema->default_value;
}

const CrdSchema* schema_of(const CrdSchema& schema, std::string_view name) {
  const CrdSchema* property = schema.property(name);
  return property != nullptr ? property : schema.additional.get();
}

void drop_nulls(const CrdSchema& schema, Value& value) {
  if (value.is_array() && schema.items != nullptr) {
    for (size_t i = 0; i < value.size(); ++i) {
      Value next = value.at(i);
      if (!next.is_object() && !next.is_array()) continue;
      drop_nulls(*schema.items, next);
      if (!next.same_node(value.at(i))) value.ref_at(i) = std::move(next);
    }
  }
  if (!value.is_object()) return;
  const Value before = value;
  for (const json::Member& member : before.members()) {
    const CrdSchema* inner = schema_of(schema, member.name());
    if (inner == nullptr) continue;
    if (drops(inner, member.value)) {
      value.erase(member.name());
    } else if (member.value.is_object() || member.value.is_array()) {
      Value next = member.value;
      drop_nulls(*inner, next);
      if (!next.same_node(member.value)) value.set(member.name(), std::move(next));
    }
  }
}

bool replaces(const CrdSchema& schema, const Value* value) {
  return schema.default_value && (value == nullptr || (value->is_null() && !schema.nullable));
}

void set_defaults(const CrdSchema& schema, Value& value) {
  if (value.is_array() && schema.items != nullptr) {
    for (size_t i = 0; i < value.size(); ++i) {
      Value next = value.at(i);
      const bool given = replaces(*schema.items, &next);
      if (given) next = *schema.items->default_value;
      set_defaults(*schema.items, next);
      const bool scalar = !next.is_object() && !next.is_array();
      if (given || (!scalar && !next.same_node(value.at(i)))) value.ref_at(i) = std::move(next);
    }
  }
  if (!value.is_object()) return;
  for (const auto& [name, property] : schema.properties) {
    if (replaces(*property, value.find(name))) value.set(name, *property->default_value);
  }
  const Value before = value;
  for (const json::Member& member : before.members()) {
    const CrdSchema* inner = schema_of(schema, member.name());
    if (inner == nullptr) continue;
    Value next = member.value;
    if (replaces(*inner, &next)) next = *inner->default_value;
    set_defaults(*inner, next);
    const bool scalar = !next.is_object() && !next.is_array();
    if (scalar ? !(next == member.value) : !next.same_node(member.value)) {
      value.set(member.name(), std::move(next));
    }
  }
}

}  // namespace

void prune_unknown(const CrdSchema& schema, Value& object, std::vector<std::string>* unknown) {
  const Path root("");
  const Value before = object;
  Pruner(unknown).prune(&schema, object, root, true);
  if (unknown != nullptr) std::ranges::sort(*unknown);
}

void prune_value(const CrdSchema& schema, Value& value) {
  const Path root("");
  Pruner(nullptr).prune(&schema, value, root, schema.embedded);
}

void fill_defaults(const CrdSchema& schema, Value& object) {
  drop_nulls(schema, object);
  set_defaults(schema, object);
}

}  // namespace tessera::apiserver
