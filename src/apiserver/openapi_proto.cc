#include "apiserver/openapi_proto.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "json/yaml.h"

namespace tessera::apiserver {
namespace {

using json::Value;

// How a member of the JSON document stands in its message.
enum class As {
  kText,
  kTexts,  // a list of texts
  kFlag,
  kInteger,
  kDouble,
  kAny,
  kAnys,          // a list of anything
  kMessage,       // the message that `write` makes
  kMessages,      // a list of them
  kNamedMessage,  // a message of named messages: {1: {1: name, 2: message}}
};

class Writer;
using Write = void (*)(Writer& out, const Value& value);

struct Field {
  std::string_view name;
  uint32_t number;
  As as;
  Write write = nullptr;
};

class Writer {
 public:
  std::string take() && { return std::move(bytes_); }

  void text(uint32_t number, std::string_view text) {
    varint(number << 3 | 2);
    varint(text.size());
    bytes_.append(text);
  }

  void integer(uint32_t number, uint64_t value) {
    varint(number << 3);
    varint(value);
  }

  void real(uint32_t number, double value) {
    varint(number << 3 | 1);
    auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8) bytes_.push_back(static_cast<char>(bits & 0xff));
  }

  template <class F>
  void message(uint32_t number, F fill) {
    Writer inner;
    fill(inner);
    text(number, inner.bytes_);
  }

  void any(uint32_t number, const Value& value) {
    message(number, [&](Writer& out) { out.text(2, json::to_yaml(value)); });
  }

  // The members that are fields, then those that are extensions ("x-...").
  void object(const Value& value, std::span<const Field> fields, uint32_t extensions) {
    for (const Field& field : fields) {
      if (value.contains(field.name)) this->field(field, value[field.name]);
    }
    for (const json::Member& member : value.members()) {
      if (!member.name().starts_with("x-")) continue;
      message(extensions, [&](Writer& named) {
        named.text(1, member.name());
        named.any(2, member.value);
      });
    }
  }

 private:
  void field(const Field& field, const Value& value) {
    const auto one = [&](const Value& each) {
      message(field.number, [&](Writer& out) { field.write(out, each); });
    };
    switch (field.as) {
      case As::kText:
        return text(field.number, value.as_string());
      case As::kFlag:
        return value.as_bool() ? integer(field.number, 1) : void();
      case As::kInteger:
        return integer(field.number, static_cast<uint64_t>(value.as_int()));
      case As::kDouble:
        return real(field.number, value.as_double());
      case As::kAny:
        return any(field.number, value);
      case As::kMessage:
        return one(value);
      case As::kTexts:
        for (const Value& each : value.items()) text(field.number, each.as_string());
        return;
      case As::kAnys:
        for (const Value& each : value.items()) any(field.number, each);
        return;
      case As::kMessages:
        for (const Value& each : value.items()) one(each);
        return;
      case As::kNamedMessage:
        return message(field.number, [&](Writer& out) {
          out.named(1, value, field.write, [](auto) { return true; });
        });
    }
  }

 public:
  // The members that `wanted` takes, each as {1: name, 2: message}.
  template <class Wanted>
  void named(uint32_t number, const Value& object, Write write, Wanted wanted) {
    for (const json::Member& member : object.members()) {
      if (!wanted(member.name())) continue;
      message(number, [&](Writer& out) {
        out.text(1, member.name());
        out.message(2, [&](Writer& inner) { write(inner, member.value); });
      });
    }
  }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

void write_schema(Writer& out, const Value& schema);

void write_type(Writer& out, const Value& type) {
  if (type.is_string()) return out.text(1, type.as_string());
  for (const Value& each : type.items()) out.text(1, each.as_string());
}

void write_items(Writer& out, const Value& items) {
  const auto one = [&](const Value& schema) {
    out.message(1, [&](Writer& inner) { write_schema(inner, schema); });
  };
  if (items.is_object()) return one(items);
  for (const Value& each : items.items()) one(each);
}

void write_additional(Writer& out, const Value& additional) {
  if (additional.is_object()) {
    return out.message(1, [&](Writer& inner) { write_schema(inner, additional); });
  }
  out.integer(2, additional.as_bool() ? 1 : 0);
}

void write_external_docs(Writer& out, const Value& docs) {
  static constexpr Field kFields[] = {{"description", 1, As::kText}, {"url", 2, As::kText}};
  out.object(docs, kFields, 3);
}

void write_schema(Writer& out, const Value& schema) {
  static constexpr Field kFields[] = {{"$ref", 1, As::kText},
                                      {"format", 2, As::kText},
                                      {"title", 3, As::kText},
                                      {"description", 4, As::kText},
                                      {"default", 5, As::kAny},
                                      {"multipleOf", 6, As::kDouble},
                                      {"maximum", 7, As::kDouble},
                                      {"exclusiveMaximum", 8, As::kFlag},
                                      {"minimum", 9, As::kDouble},
                                      {"exclusiveMinimum", 10, As::kFlag},
                                      {"maxLength", 11, As::kInteger},
                                      {"minLength", 12, As::kInteger},
                                      {"pattern", 13, As::kText},
                                      {"maxItems", 14, As::kInteger},
                                      {"minItems", 15, As::kInteger},
                                      {"uniqueItems", 16, As::kFlag},
                                      {"maxProperties", 17, As::kInteger},
                                      {"minProperties", 18, As::kInteger},
                                      {"required", 19, As::kTexts},
                                      {"enum", 20, As::kAnys},
                                      {"additionalProperties", 21, As::kMessage, write_additional},
                                      {"type", 22, As::kMessage, write_type},
                                      {"items", 23, As::kMessage, write_items},
                                      {"allOf", 24, As::kMessages, write_schema},
                                      {"properties", 25, As::kNamedMessage, write_schema},
                                      {"externalDocs", 29, As::kMessage, write_external_docs},
                                      {"example", 30, As::kAny}};
  out.object(schema, kFields, 31);
}

void write_body_parameter(Writer& out, const Value& parameter) {
  static constexpr Field kFields[] = {{"description", 1, As::kText},
                                      {"name", 2, As::kText},
                                      {"in", 3, As::kText},
                                      {"required", 4, As::kFlag},
                                      {"schema", 5, As::kMessage, write_schema}};
  out.object(parameter, kFields, 6);
}

void write_query_parameter(Writer& out, const Value& parameter) {
  static constexpr Field kFields[] = {{"required", 1, As::kFlag},    {"in", 2, As::kText},
                                      {"description", 3, As::kText}, {"name", 4, As::kText},
                                      {"type", 6, As::kText},        {"format", 7, As::kText},
                                      {"uniqueItems", 20, As::kFlag}};
  out.object(parameter, kFields, 23);
}

void write_path_parameter(Writer& out, const Value& parameter) {
  static constexpr Field kFields[] = {{"required", 1, As::kFlag},    {"in", 2, As::kText},
                                      {"description", 3, As::kText}, {"name", 4, As::kText},
                                      {"type", 5, As::kText},        {"format", 6, As::kText},
                                      {"uniqueItems", 19, As::kFlag}};
  out.object(parameter, kFields, 22);
}

void write_parameter(Writer& out, const Value& parameter) {
  const bool body = parameter["in"].as_string() == "body";
  const bool query = parameter["in"].as_string() == "query";
  if (body) {
    return out.message(1, [&](Writer& inner) { write_body_parameter(inner, parameter); });
  }
  out.message(2, [&](Writer& other) {
    other.message(query ? 3 : 4, [&](Writer& inner) {
      query ? write_query_parameter(inner, parameter) : write_path_parameter(inner, parameter);
    });
  });
}

void write_parameters_item(Writer& out, const Value& item) {
  if (item.contains("$ref")) {
    return out.message(2, [&](Writer& inner) { inner.text(1, item["$ref"].as_string()); });
  }
  out.message(1, [&](Writer& inner) { write_parameter(inner, item); });
}

void write_schema_item(Writer& out, const Value& schema) {
  out.message(1, [&](Writer& inner) { write_schema(inner, schema); });
}

void write_response(Writer& out, const Value& response) {
  static constexpr Field kFields[] = {{"description", 1, As::kText},
                                      {"schema", 2, As::kMessage, write_schema_item}};
  out.message(1, [&](Writer& inner) { inner.object(response, kFields, 5); });
}

void write_responses(Writer& out, const Value& responses) {
  out.named(1, responses, write_response, [](std::string_view) { return true; });
}

void write_operation(Writer& out, const Value& operation) {
  static constexpr Field kFields[] = {{"tags", 1, As::kTexts},
                                      {"summary", 2, As::kText},
                                      {"description", 3, As::kText},
                                      {"operationId", 5, As::kText},
                                      {"produces", 6, As::kTexts},
                                      {"consumes", 7, As::kTexts},
                                      {"parameters", 8, As::kMessages, write_parameters_item},
                                      {"responses", 9, As::kMessage, write_responses},
                                      {"schemes", 10, As::kTexts},
                                      {"deprecated", 11, As::kFlag}};
  out.object(operation, kFields, 13);
}

void write_path_item(Writer& out, const Value& item) {
  static constexpr Field kFields[] = {{"get", 2, As::kMessage, write_operation},
                                      {"put", 3, As::kMessage, write_operation},
                                      {"post", 4, As::kMessage, write_operation},
                                      {"delete", 5, As::kMessage, write_operation},
                                      {"options", 6, As::kMessage, write_operation},
                                      {"head", 7, As::kMessage, write_operation},
                                      {"patch", 8, As::kMessage, write_operation},
                                      {"parameters", 9, As::kMessages, write_parameters_item}};
  out.object(item, kFields, 10);
}

void write_paths(Writer& out, const Value& paths) {
  out.named(2, paths, write_path_item, [](std::string_view name) { return name.starts_with("/"); });
}

void write_info(Writer& out, const Value& title) {
  static constexpr Field kFields[] = {
      {"title", 1, As::kText}, {"version", 2, As::kText}, {"description", 3, As::kText}};
  out.object(title, kFields, 7);
}

}  // namespace

std::string openapi_v2_protobuf(const Value& document) {
  static constexpr Field kFields[] = {{"swagger", 1, As::kText},
                                      {"info", 2, As::kMessage, write_info},
                                      {"paths", 8, As::kMessage, write_paths},
                                      {"definitions", 9, As::kNamedMessage, write_schema},
                                      {"parameters", 10, As::kNamedMessage, write_parameter}};
  Writer out;
  out.object(document, kFields, 16);
  return std::move(out).take();
}

}  // namespace tessera::apiserver
