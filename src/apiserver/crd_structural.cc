#include "apiserver/crd_structural.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "apiserver/crd_openapi_rules.h"
#include "apiserver/crd_prune.h"
#include "apiserver/crd_schema.h"
#include "apiserver/crd_validate.h"

namespace tessera::apiserver {
namespace {

using json::Value;

enum class Level { kRoot, kItem, kField };

std::string child(const std::string& path, std::string_view name) {
  return fmt::format("{}.{}", path, name);
}
std::string keyed(const std::string& path, std::string_view name, std::string_view key) {
  return fmt::format("{}.{}[{}]", path, name, key);
}
std::string indexed(const std::string& path, std::string_view name, size_t index) {
  return fmt::format("{}.{}[{}]", path, name, index);
}

bool flag(const Value& schema, const char* name) {
  return schema[name].as_bool();
}

// [{"type":"integer"},{"type":"string"}]
bool is_int_or_string(const Value& any_of) {
  if (any_of.size() != 2) return false;
  return any_of.at(0).size() == 1 && any_of.at(0)["type"].as_string() == "integer" &&
         any_of.at(1).size() == 1 && any_of.at(1)["type"].as_string() == "string";
}

class Structure {
 public:
  explicit Structure(FieldErrors& errors) : errors_(errors) {}

  void check(const Value& schema, Level level, const std::string& path) {
    const std::string_view type = schema["type"].as_string();
    if (type == "array" && !schema["items"].is_object()) {
      errors_.required(child(path, "items"), "must be specified");
    }
    if (schema["items"].is_object()) check(schema["items"], Level::kItem, child(path, "items"));
    for (const json::Member& member : schema["properties"].members()) {
      check(member.value, Level::kField, keyed(path, "properties", member.name()));
    }
    check_additional(schema, level, path);
    check_extensions(schema, path);
    check_values(schema, is_int_or_string(schema["anyOf"]),
                 is_int_or_string(schema["allOf"].at(0)["anyOf"]), level, path);
    check_type(schema, type, level, path);
    const bool resource = level == Level::kRoot || flag(schema, "x-kubernetes-embedded-resource");
    if (resource) check_type_meta(schema, path);
    if (const Value* meta = schema["properties"].find("metadata")) {
      check_metadata(*meta, resource, level, keyed(path, "properties", "metadata"));
    }
    if (flag(schema, "x-kubernetes-embedded-resource") &&
        !flag(schema, "x-kubernetes-preserve-unknown-fields") && schema["properties"].empty()) {
      errors_.required(child(path, "properties"),
                       "must not be empty if x-kubernetes-embedded-resource is true without "
                       "x-kubernetes-preserve-unknown-fields");
    }
  }

  // What is said of a field in a combination must be of a field that stands outside of it.
  void check_complete(const Value& values, const Value* schema, const std::string& at,
                      const std::string& said) {
    const auto nested = [&](const Value& inner, const std::string& place) {
      check_nested_complete(inner, schema, at, place);
    };
    if (values["not"].is_object()) nested(values["not"], child(said, "not"));
    for (const char* word : {"allOf", "anyOf", "oneOf"}) {
      for (size_t i = 0; i < values[word].size(); ++i) {
        nested(values[word].at(i), indexed(said, word, i));
      }
    }
  }

 private:
  void check_additional(const Value& schema, Level level, const std::string& path) {
    const Value& additional = schema["additionalProperties"];
    if (additional.is_null()) return;
    const std::string place = child(path, "additionalProperties");
    if (level == Level::kRoot) errors_.forbidden(place, "must not be used at the root");
    if (additional.is_object()) check(additional, Level::kField, place);
    if (flag(schema, "x-kubernetes-embedded-resource")) {
      errors_.forbidden(place, "must not be used if x-kubernetes-embedded-resource is set");
    }
  }

  void check_extensions(const Value& schema, const std::string& path) {
    if (!flag(schema, "x-kubernetes-int-or-string")) return;
    for (const char* other :
         {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"}) {
      if (!flag(schema, other)) continue;
      errors_.invalid(child(path, other), true,
                      "must be false if x-kubernetes-int-or-string is true");
    }
  }

  void check_type(const Value& schema, std::string_view type, Level level,
                  const std::string& path) {
    const std::string place = child(path, "type");
    if (flag(schema, "x-kubernetes-embedded-resource") && type != "object") {
      const char* why = "must be object if x-kubernetes-embedded-resource is true";
      if (type.empty()) {
        errors_.required(place, why);
      } else {
        errors_.invalid(place, type, why);
      }
    } else if (type.empty() && !flag(schema, "x-kubernetes-int-or-string") &&
               !flag(schema, "x-kubernetes-preserve-unknown-fields")) {
      errors_.required(place, level == Level::kRoot ? "must not be empty at the root"
                              : level == Level::kItem
                                  ? "must not be empty for specified array items"
                                  : "must not be empty for specified object "
                                    "fields");
    }
    if (level == Level::kRoot && !type.empty() && type != "object") {
      errors_.invalid(place, type, "must be object at the root");
    }
  }

  void check_type_meta(const Value& schema, const std::string& path) {
    for (const char* name : {"kind", "apiVersion"}) {
      const Value* property = schema["properties"].find(name);
      if (property == nullptr || (*property)["type"].as_string() == "string") continue;
      errors_.invalid(child(keyed(path, "properties", name), "type"),
                      (*property)["type"].as_string(), "must be string");
    }
  }

  void check_metadata(const Value& meta, bool resource, Level level, const std::string& path) {
    if (resource && meta["type"].as_string() != "object") {
      errors_.invalid(child(path, "type"), meta["type"].as_string(), "must be object");
    }
    if (level != Level::kRoot) return;
    Value rest = meta;
    const bool names_only =
        std::ranges::all_of(meta["properties"].members(), [](const json::Member& member) {
          return member.name() == "name" || member.name() == "generateName";
        });
    if (names_only) rest.erase("properties");
    rest.erase("type");
    rest.erase("default");
    if (rest.empty()) return;
    errors_.forbidden(path,
                      "must not specify anything other than name and generateName, but metadata is "
                      "implicitly specified");
  }

  void check_values(const Value& schema, bool skip_any, bool skip_first, Level level,
                    const std::string& path) {
    for (const char* word : {"anyOf", "allOf", "oneOf"}) {
      const std::string_view name = word;
      if (name == "anyOf" && skip_any) continue;
      for (size_t i = 0; i < schema[word].size(); ++i) {
        check_nested(schema[word].at(i), name == "allOf" && skip_first && i == 0, level,
                     indexed(path, word, i));
      }
    }
    if (schema["not"].is_object()) check_nested(schema["not"], false, level, child(path, "not"));
    const Value& pattern = schema["pattern"];
    if (pattern.as_string().empty()) return;
    if (const auto compiled = compile_pattern(pattern.as_string()); !compiled) {
      errors_.invalid(child(path, "pattern"), pattern,
                      "must be a valid regular expression, but isn't: " + compiled.error().message);
    }
  }

  void check_nested(const Value& schema, bool skip_any, Level level, const std::string& path) {
    check_values(schema, skip_any, false, level, path);
    if (schema["items"].is_object()) {
      check_nested(schema["items"], false, level, child(path, "items"));
    }
    for (const json::Member& member : schema["properties"].members()) {
      check_nested(member.value, false, Level::kField, keyed(path, "properties", member.name()));
    }
    static constexpr std::pair<const char*, const char*> kForbidden[] = {
        {"type", "must be empty to be structural"},
        {"additionalProperties", "must be undefined to be structural"},
        {"default", "must be undefined to be structural"},
        {"title", "must be empty to be structural"},
        {"description", "must be empty to be structural"},
        {"nullable", "must be false to be structural"},
        {"x-kubernetes-preserve-unknown-fields", "must be false to be structural"},
        {"x-kubernetes-embedded-resource", "must be false to be structural"},
        {"x-kubernetes-int-or-string", "must be false to be structural"},
        {"x-kubernetes-list-map-keys", "must be empty to be structural"},
        {"x-kubernetes-list-type", "must be undefined to be structural"},
        {"x-kubernetes-map-type", "must be undefined to be structural"},
        {"x-kubernetes-validations", "must be empty to be structural"}};
    for (const auto& [field, why] : kForbidden) {
      if (!schema[field].is_null()) errors_.forbidden(child(path, field), why);
    }
    if (schema["properties"].contains("metadata")) {
      errors_.forbidden(keyed(path, "properties", "metadata"),
                        "must not be specified in a nested context");
    }
  }

  void check_nested_complete(const Value& values, const Value* schema, const std::string& at,
                             const std::string& said) {
    if (schema == nullptr || !schema->is_object()) {
      return errors_.required(at, "because it is defined in " + said);
    }
    check_complete(values, schema, at, said);
    if (values["items"].is_object()) {
      check_nested_complete(values["items"], schema->find("items"), child(at, "items"),
                            child(said, "items"));
    }
    for (const json::Member& member : values["properties"].members()) {
      check_nested_complete(member.value, (*schema)["properties"].find(member.name()),
                            keyed(at, "properties", member.name()),
                            keyed(said, "properties", member.name()));
    }
  }

  FieldErrors& errors_;
};

class Defaults {
 public:
  explicit Defaults(FieldErrors& errors) : errors_(errors) {}

  void check(const CrdSchema& schema, bool resource, bool in_meta, const std::string& path) {
    if (schema.default_value && !in_meta) check_one(schema, path);
    if (schema.items != nullptr) {
      check(*schema.items, schema.items->embedded, in_meta, child(path, "items"));
    }
    for (const auto& [name, property] : schema.properties) {
      const bool meta = resource && (name == "metadata" || name == "apiVersion" || name == "kind");
      check(*property, property->embedded, (in_meta && !schema.embedded) || meta,
            keyed(path, "properties", name));
    }
  }

 private:
  void check_one(const CrdSchema& schema, const std::string& path) {
    const std::string place = child(path, "default");
    const Value& value = *schema.default_value;
    Value pruned = value;
    prune_value(schema, pruned);
    if (!(pruned == value)) errors_.invalid(place, value, "must not have unknown fields");
    FieldErrors embedded;
    validate_embedded(schema, value, embedded);
    for (base::Cause cause : embedded.causes()) {
      cause.field = child(place, cause.field);
      errors_.add(std::move(cause));
    }
    if (embedded.empty()) validate_by_schema(schema, value, nullptr, place, errors_);
  }

  FieldErrors& errors_;
};

std::string sort_key(const base::Cause& cause) {
  return cause.field + ": " + cause.message;
}

}  // namespace

bool any_schema(const Value& schema, const std::function<bool(const Value&)>& is) {
  if (!schema.is_object()) return false;
  if (is(schema) || any_schema(schema["items"], is)) return true;
  for (const char* word : {"allOf", "anyOf", "oneOf"}) {
    for (const Value& part : schema[word].items()) {
      if (any_schema(part, is)) return true;
    }
  }
  if (any_schema(schema["not"], is)) return true;
  for (const json::Member& member : schema["properties"].members()) {
    if (any_schema(member.value, is)) return true;
  }
  return any_schema(schema["additionalProperties"], is);
}

void validate_schema(const Value& schema, const std::string& path, bool status,
                     FieldErrors& errors) {
  check_root_rules(schema, path, status, errors);
  FieldErrors structural;
  FieldErrors rules;
  check_openapi_rules(schema, path, rules);
  // What is no structural schema at all is not judged as one.
  const bool foreign = std::ranges::any_of(rules.causes(), [](const base::Cause& cause) {
    return cause.message.ends_with("is not supported");
  });
  if (!foreign) {
    Structure(structural).check(schema, Level::kRoot, path);
    Structure(structural).check_complete(schema, &schema, path, path);
  }
  std::ranges::sort(structural.list(), {}, sort_key);
  if (structural.empty() && !foreign) {
    const auto compiled = compile_schema(schema);
    if (compiled) {
      Defaults(structural).check(**compiled, true, false, path);
    } else {
      structural.invalid(path, "", compiled.error().message);
    }
  }
  for (const base::Cause& cause : structural.causes()) errors.add(cause);
  for (const base::Cause& cause : rules.causes()) errors.add(cause);
}

void validate_selectable_field(const Value& schema, const Value& field, const std::string& path,
                               FieldErrors& errors) {
  const Value& json_path = field["jsonPath"];
  const std::string place = child(path, "jsonPath");
  std::string_view rest = json_path.as_string();
  if (rest.empty()) return errors.required(place);
  const Value* at = &schema;
  bool found = rest.starts_with('.');
  while (found && !rest.empty()) {
    rest.remove_prefix(1);
    const size_t dot = std::min(rest.find('.'), rest.size());
    at = (*at)["properties"].find(rest.substr(0, dot));
    found = at != nullptr;
    rest.remove_prefix(dot);
  }
  if (!found) {
    return errors.invalid(place, json_path, "is an invalid path: does not refer to a valid field");
  }
  if (json_path.as_string().starts_with(".metadata")) {
    errors.invalid(place, json_path, "must not point to fields in metadata");
  }
  const std::string_view type = (*at)["type"].as_string();
  if (type != "string" && type != "boolean" && type != "integer") {
    errors.invalid(place, json_path,
                   "must point to a field of type string, boolean or integer. Enum string fields "
                   "and strings with formats are allowed.");
  }
}

}  // namespace tessera::apiserver
