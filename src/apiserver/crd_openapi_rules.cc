#include "apiserver/crd_openapi_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

namespace tessera::apiserver {
namespace {

using json::Value;

std::string child(const std::string& path, std::string_view name) {
  return fmt::format("{}.{}", path, name);
}
std::string keyed(const std::string& path, std::string_view name, std::string_view key) {
  return fmt::format("{}.{}[{}]", path, name, key);
}
std::string indexed(const std::string& path, std::string_view name, size_t index) {
  return fmt::format("{}.{}[{}]", path, name, index);
}

constexpr const char* kListType = "x-kubernetes-list-type";
constexpr const char* kMapType = "x-kubernetes-map-type";
constexpr const char* kListKeys = "x-kubernetes-list-map-keys";
constexpr const char* kRules = "x-kubernetes-validations";

// What holds on the way down.
struct Place {
  bool defaults = true;
  std::string no_defaults;  // why
  bool in_meta = false;
};

class Rules {
 public:
  explicit Rules(FieldErrors& errors) : errors_(errors) {}

  void check(const Value& schema, const std::string& path, const Place& place, bool root) {
    check_words(schema, path, place);
    check_additional(schema, path, place);
    for (const json::Member& member : schema["properties"].members()) {
      Place inner = place;
      const std::string_view name = member.name();
      const bool meta = name == "metadata" || name == "kind" || name == "apiVersion";
      if (meta && (root || schema["x-kubernetes-embedded-resource"].as_bool())) {
        inner.in_meta = true;
        if (root) {
          inner.defaults = false;
          inner.no_defaults = fmt::format("in top-level {}", name);
        }
      }
      check(member.value, keyed(path, "properties", name), inner, false);
    }
    if (schema["not"].is_object()) check(schema["not"], child(path, "not"), place, false);
    for (const char* word : {"allOf", "oneOf", "anyOf"}) {
      for (size_t i = 0; i < schema[word].size(); ++i) {
        check(schema[word].at(i), indexed(path, word, i), place, false);
      }
    }
    if (schema["items"].is_object()) check(schema["items"], child(path, "items"), place, false);
    check_map(schema, path);
    check_list(schema, path);
    check_list_keys(schema, path);
    check_elements(schema, path);
    for (size_t i = 0; i < schema[kRules].size(); ++i) {
      check_rule(schema, schema[kRules].at(i), indexed(path, kRules, i));
    }
  }

 private:
  void check_words(const Value& schema, const std::string& path, const Place& place) {
    static const std::vector<std::string> kTypes = {"array",  "boolean", "integer",
                                                    "number", "object",  "string"};
    const std::string type = schema["type"].str();
    if (!type.empty() && std::ranges::find(kTypes, type) == kTypes.end()) {
      errors_.not_supported(child(path, "type"), type, kTypes);
    }
    if (!schema["default"].is_null() && !place.defaults) {
      errors_.forbidden(child(path, "default"), "must not be set " + place.no_defaults);
    }
    for (const char* word :
         {"id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"}) {
      if (!schema[word].is_null()) {
        errors_.forbidden(child(path, word), fmt::format("{} is not supported", word));
      }
    }
    if (type == "null") {
      errors_.forbidden(child(path, "type"),
                        "type cannot be set to null, use nullable as an alternative");
    }
    if (schema["items"].is_array()) {
      errors_.forbidden(child(path, "items"), "items must be a schema object and not an array");
    }
    if (place.in_meta && schema["x-kubernetes-embedded-resource"].as_bool()) {
      errors_.forbidden(child(path, "x-kubernetes-embedded-resource"),
                        "must not be used inside of resource meta");
    }
    if (schema["uniqueItems"].as_bool()) {
      errors_.forbidden(child(path, "uniqueItems"),
                        "uniqueItems cannot be set to true since the runtime complexity becomes "
                        "quadratic");
    }
    const Value& preserve = schema["x-kubernetes-preserve-unknown-fields"];
    if (preserve.is_bool() && !preserve.as_bool()) {
      errors_.invalid(child(path, "x-kubernetes-preserve-unknown-fields"), false,
                      "must be true or undefined");
    }
  }

  void check_additional(const Value& schema, const std::string& path, const Place& place) {
    const Value& additional = schema["additionalProperties"];
    if (additional.is_null()) return;
    const std::string at = child(path, "additionalProperties");
    if (!schema["properties"].empty() && !(additional.is_bool() && additional.as_bool())) {
      errors_.forbidden(at, "additionalProperties and properties are mutual exclusive");
    }
    if (!additional.is_object()) return;
    Place inner = place;
    if (place.in_meta) {
      inner.defaults = false;
      inner.no_defaults = "inside additionalProperties applying to object metadata";
    }
    check(additional, at, inner, false);
  }

  void must_be(const Value& schema, const std::string& path, const char* type, const char* word) {
    if (schema["type"].as_string() == type) return;
    const std::string why = fmt::format("must be {} if {} is specified", type, word);
    if (schema["type"].as_string().empty()) {
      errors_.required(child(path, "type"), why);
    } else {
      errors_.invalid(child(path, "type"), schema["type"], why);
    }
  }

  void check_map(const Value& schema, const std::string& path) {
    const Value& word = schema[kMapType];
    if (word.is_null()) return;
    must_be(schema, path, "object", kMapType);
    if (word.as_string() != "atomic" && word.as_string() != "granular") {
      errors_.not_supported(child(path, kMapType), word, {"atomic", "granular"});
    }
  }

  void check_list(const Value& schema, const std::string& path) {
    const Value& word = schema[kListType];
    if (word.is_null()) return;
    const std::string_view text = word.as_string();
    must_be(schema, path, "array", kListType);
    const Value& items = schema["items"];
    if (schema["type"].as_string() == "array" && text == "set" && items.is_object()) {
      const char* why = "must be atomic as item of a list with x-kubernetes-list-type=set";
      const Value& inner_list = items[kListType];
      if (items["type"].as_string() == "array" && !inner_list.is_null() &&
          inner_list.as_string() != "atomic") {
        errors_.invalid(child(child(path, "items"), kListType), inner_list, why);
      }
      if (items["type"].as_string() == "object" && items[kMapType].as_string() != "atomic") {
        errors_.invalid(child(child(path, "items"), kMapType), items[kListType], why);
      }
    }
    if (text != "atomic" && text != "set" && text != "map") {
      errors_.not_supported(child(path, kListType), word, {"atomic", "set", "map"});
    }
  }

  void check_list_keys(const Value& schema, const std::string& path) {
    const Value& keys = schema[kListKeys];
    const Value& word = schema[kListType];
    const bool map = word.as_string() == "map";
    if (!keys.empty() && !map) {
      const char* why = "must be map if x-kubernetes-list-map-keys is non-empty";
      if (word.is_null()) {
        errors_.required(child(path, kListType), why);
      } else {
        errors_.invalid(child(path, kListType), word, why);
      }
    }
    if (!map) return;
    if (keys.empty()) {
      errors_.required(child(path, kListKeys),
                       "must not be empty if x-kubernetes-list-type is map");
    }
    const Value& items = schema["items"];
    if (items.is_null()) {
      return errors_.required(child(path, "items"),
                              "must have a schema if x-kubernetes-list-type is map");
    }
    if (!items.is_object()) {
      return errors_.invalid(child(path, "items"), items,
                             "must only have a single schema if x-kubernetes-list-type is map");
    }
    if (items["type"].as_string() != "object") {
      return errors_.invalid(child(child(path, "items"), "type"), items["type"].as_string(),
                             "must be object if parent array's x-kubernetes-list-type is map");
    }
    check_keys_of(items, keys, path);
  }

  void check_keys_of(const Value& items, const Value& keys, const std::string& path) {
    std::set<std::string> seen;
    for (const Value& key : keys.items()) {
      const Value* property = items["properties"].find(key.as_string());
      if (property == nullptr) {
        errors_.invalid(child(path, kListKeys), keys,
                        "entries must all be names of item properties");
      } else if (const std::string_view type = (*property)["type"].as_string();
                 type == "array" || type == "object") {
        errors_.invalid(child(keyed(child(path, "items"), "properties", key.as_string()), "type"),
                        items["type"],
                        "must be a scalar type if parent array's x-kubernetes-list-type is map");
      }
      if (!seen.insert(key.str()).second) {
        errors_.invalid(child(path, kListKeys), keys, "must not contain duplicate entries");
      }
    }
  }

  // Elements of sets and maps are not null, and keys are always there.
  void check_elements(const Value& schema, const std::string& path) {
    const Value& items = schema["items"];
    const std::string type = schema[kListType].str();
    if (!items.is_object() || (type != "set" && type != "map")) return;
    const std::string at = child(path, "items");
    if (items["nullable"].as_bool()) {
      errors_.forbidden(child(at, "nullable"),
                        "cannot be nullable when x-kubernetes-list-type is " + type);
    }
    if (type != "map") return;
    for (const Value& key : schema[kListKeys].items()) {
      const Value* property = items["properties"].find(key.as_string());
      if (property == nullptr) continue;
      const std::string place = keyed(at, "properties", key.as_string());
      const bool required =
          std::ranges::find(items["required"].items(), key) != items["required"].items().end();
      if (!required && (*property)["default"].is_null()) {
        errors_.required(
            child(place, "default"),
            "this property is in x-kubernetes-list-map-keys, so it must have a default "
            "or be a required property");
      }
      if ((*property)["nullable"].as_bool()) {
        errors_.forbidden(
            child(place, "nullable"),
            "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
      }
    }
  }

  static std::string_view trimmed(std::string_view text) {
    const char* const kSpace = " \t\r\n";
    const size_t from = text.find_first_not_of(kSpace);
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(kSpace) - from + 1);
  }
  static bool has_breaks(std::string_view text) {
    return text.find_first_of("\r\n") != std::string_view::npos;
  }

  // The form of a rule; its meaning is not evaluated.
  void check_rule(const Value& schema, const Value& rule, const std::string& path) {
    const std::string_view text = trimmed(rule["rule"].as_string());
    const Value& message = rule["message"];
    const std::string_view told = trimmed(message.as_string());
    if (text.empty()) {
      errors_.required(child(path, "rule"), "rule is not specified");
    } else if (!message.as_string().empty() && told.empty()) {
      errors_.invalid(child(path, "message"), message, "must be non-empty if specified");
    } else if (has_breaks(told)) {
      errors_.invalid(child(path, "message"), message, "must not contain line breaks");
    } else if (has_breaks(text) && told.empty()) {
      errors_.required(child(path, "message"),
                       "message must be specified if rule contains line breaks");
    }
    const Value& expression = rule["messageExpression"];
    if (!expression.as_string().empty() && trimmed(expression.as_string()).empty()) {
      errors_.required(child(path, "messageExpression"),
                       "messageExpression must be non-empty if specified");
    }
    static const std::vector<std::string> kReasons = {"FieldValueDuplicate", "FieldValueForbidden",
                                                      "FieldValueInvalid", "FieldValueRequired"};
    const Value& reason = rule["reason"];
    if (!reason.is_null() && std::ranges::find(kReasons, reason.str()) == kReasons.end()) {
      errors_.not_supported(child(path, "reason"), reason, kReasons);
    }
    const Value& field = rule["fieldPath"];
    if (field.as_string().empty()) return;
    if (trimmed(field.as_string()).empty()) {
      errors_.invalid(child(path, "fieldPath"), field, "must be non-empty if specified");
    }
    if (has_breaks(field.as_string())) {
      errors_.invalid(child(path, "fieldPath"), field, "must not contain line breaks");
    }
    if (!is_path(schema, field.as_string())) {
      errors_.invalid(child(path, "fieldPath"), field, "must be a valid path");
    }
  }

  // ".a.b['c']", by the fields of the schema.
  static bool is_path(const Value& schema, std::string_view text) {
    const Value* at = &schema;
    while (!text.empty()) {
      std::string_view name;
      if (text.starts_with('.')) {
        const size_t end = std::min(text.find_first_of(".[", 1), text.size());
        name = text.substr(1, end - 1);
        text.remove_prefix(end);
      } else if (text.starts_with("['") && text.find("']") != std::string_view::npos) {
        const size_t end = text.find("']");
        name = text.substr(2, end - 2);
        text.remove_prefix(end + 2);
      } else {
        return false;
      }
      const Value* next = (*at)["properties"].find(name);
      if (next == nullptr && (*at)["additionalProperties"].is_object()) {
        next = at->find("additionalProperties");
      }
      if (next == nullptr) return false;
      at = next;
    }
    return true;
  }

  FieldErrors& errors_;
};

// What may stand beside the properties where the status is a resource of its own.
bool may_stand_at_root(std::string_view word) {
  static constexpr std::string_view kAllowed[] = {"description",
                                                  "type",
                                                  "format",
                                                  "title",
                                                  "maximum",
                                                  "exclusiveMaximum",
                                                  "minimum",
                                                  "exclusiveMinimum",
                                                  "maxLength",
                                                  "minLength",
                                                  "pattern",
                                                  "maxItems",
                                                  "minItems",
                                                  "uniqueItems",
                                                  "multipleOf",
                                                  "required",
                                                  "items",
                                                  "properties",
                                                  "externalDocs",
                                                  "example",
                                                  "x-kubernetes-preserve-unknown-fields",
                                                  "x-kubernetes-validations"};
  return std::ranges::find(kAllowed, word) != std::end(kAllowed);
}

}  // namespace

void check_root_rules(const Value& schema, const std::string& path, bool status,
                      FieldErrors& errors) {
  for (const json::Member& member : schema.members()) {
    if (!status) break;
    if (member.name() == "type" && member.value.as_string() != "object") {
      errors.invalid(child(path, "type"), member.value,
                     "only \"object\" is allowed as the type at the root of the schema if the "
                     "status subresource is enabled");
      break;
    }
    const bool unset = member.value.is_bool() && !member.value.as_bool();
    if (unset || may_stand_at_root(member.name())) continue;
    errors.invalid(
        path, schema,
        "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum "
        "MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items "
        "Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed "
        "at "
        "the root of the schema if the status subresource is enabled");
    break;
  }
  if (schema["nullable"].as_bool()) {
    errors.forbidden(child(path, "nullable"), "nullable cannot be true at the root");
  }
}

void check_openapi_rules(const Value& schema, const std::string& path, FieldErrors& errors) {
  Rules(errors).check(schema, path, Place{}, true);
}

}  // namespace tessera::apiserver
