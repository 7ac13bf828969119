// Sets and maps among the lists of custom objects, and the objects inside them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

#include "apiserver/crd_validate.h"
#include "apiserver/validate_meta.h"
#include "apiserver/validate_path.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

// What an element of a list is known by: itself, or its keys.
Value identity_of(const CrdSchema& list, const Value& element) {
  if (list.list_type == "set") return element;
  Value keys = Value::object();
  for (const std::string& key : list.list_keys) {
    if (const Value* value = element.find(key)) keys.set(key, *value);
  }
  return keys;
}

void check_unique(const CrdSchema& list, const Value& value, const Path& at, FieldErrors& errors) {
  if (list.list_type == "map") {
    for (size_t i = 0; i < value.size(); ++i) {
      const Value& item = value.at(i);
      if (item.is_null() || item.is_object()) continue;
      const Path place = at.at(i);
      return errors.invalid(place.text(), item, "must be an object for an array of list-type map");
    }
  }
  std::map<std::string, int> seen;
  for (size_t i = 0; i < value.size(); ++i) {
    const Value identity = identity_of(list, value.at(i));
    // Each is told once, where it comes for the second time.
    if (++seen[identity.dump()] == 2 && errors.list().size() < kSchemaErrorsMax) {
      const Path place = at.at(i);
      errors.duplicate(place.text(), identity);
    }
  }
}

void check_lists(const CrdSchema& schema, const Value& value, const Path& at, FieldErrors& errors) {
  if (value.is_array()) {
    if (schema.list_type == "set" || schema.list_type == "map") {
      check_unique(schema, value, at, errors);
    }
    if (schema.items == nullptr) return;
    for (size_t i = 0; i < value.size(); ++i) {
      const Path place = at.at(i);
      check_lists(*schema.items, value.at(i), place, errors);
    }
  }
  for (const json::Member& member : value.members()) {
    if (const CrdSchema* property = schema.property(member.name())) {
      const Path place = at.child(member.name());
      check_lists(*property, member.value, place, errors);
    } else if (schema.additional != nullptr) {
      const Path place = at.key(member.name());
      check_lists(*schema.additional, member.value, place, errors);
    }
  }
}

void check_type_text(const Value& object, const char* field, const Path& at, FieldErrors& errors) {
  const Value* value = object.find(field);
  if (value == nullptr) return errors.required(at.text(field));
  if (!value->is_string()) return errors.invalid(at.text(field), *value, "must be a string");
  if (value->as_string().empty()) return errors.invalid(at.text(field), "", "must not be empty");
  if (std::string_view(field) == "apiVersion") {
    if (std::ranges::count(value->as_string(), '/') > 1) {
      errors.invalid(at.text(field), *value,
                     fmt::format("unexpected GroupVersion string: {}", value->as_string()));
    }
    return;
  }
  std::string lower = value->str();
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  std::string reasons;
  for (const std::string& reason : kube::check_dns1035_label(lower)) {
    reasons += (reasons.empty() ? "" : ",") + reason;
  }
  if (!reasons.empty()) {
    errors.invalid(at.text(field), *value,
                   "may have mixed case, but should otherwise match: " + reasons);
  }
}

void check_object(const Value& object, const Path& at, FieldErrors& errors) {
  check_type_text(object, "apiVersion", at, errors);
  check_type_text(object, "kind", at, errors);
  const Value& meta = object["metadata"];
  if (!meta.is_object()) return;
  // Its metadata is that of an object whose name may be anything that fits into a path, or missing.
  Kind kind;
  kind.name_rule = "path-segment";
  kind.namespaced = !meta["namespace"].as_string().empty();
  Value named = object;
  if (meta["name"].as_string().empty()) named.ref("metadata", "name") = "fakename";
  FieldErrors found;
  validate_metadata(kind, named, found);
  for (base::Cause cause : found.causes()) {
    cause.field = at.text(cause.field);
    errors.add(std::move(cause));
  }
}

void check_embedded(const CrdSchema& schema, const Value& value, const Path& at,
                    FieldErrors& errors) {
  if (errors.list().size() >= kSchemaErrorsMax) return;
  if (value.is_object() && schema.embedded) check_object(value, at, errors);
  if (value.is_array() && schema.items != nullptr) {
    for (size_t i = 0; i < value.size(); ++i) {
      const Path place = at.at(i);
      check_embedded(*schema.items, value.at(i), place, errors);
    }
  }
  for (const json::Member& member : value.members()) {
    if (const CrdSchema* property = schema.property(member.name())) {
      const Path place = at.child(member.name());
      check_embedded(*property, member.value, place, errors);
    } else if (schema.additional != nullptr) {
      const Path place = at.key(member.name());
      check_embedded(*schema.additional, member.value, place, errors);
    }
  }
}

}  // namespace

void validate_lists(const CrdSchema& schema, const Value& object, FieldErrors& errors) {
  const Path root("");
  check_lists(schema, object, root, errors);
}

void validate_embedded(const CrdSchema& schema, const Value& object, FieldErrors& errors) {
  const Path root("");
  check_embedded(schema, object, root, errors);
}

}  // namespace tessera::apiserver
