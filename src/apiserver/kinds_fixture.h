// For tests of the kinds table: what the server does with an object of a kind before it stores it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kind.h"
#include "apiserver/validate_meta.h"
#include "json/parse.h"
#include "json/yaml.h"

namespace tessera::apiserver::testing_kinds {

inline const Kind& kind_of(std::string_view group, std::string_view name,
                           std::string_view version = "v1") {
  const Kind* kind = Kinds::builtin().find_kind(group, version, name);
  EXPECT_NE(kind, nullptr) << name;
  return *kind;
}

inline json::Value from_yaml(std::string_view text) {
  auto value = json::parse_yaml(text);
  EXPECT_TRUE(value) << text << (value ? "" : value.error().message);
  return value ? *value : json::Value();
}

struct Outcome {
  json::Value object;
  std::string bad_request;
  std::vector<base::Cause> causes;

  bool accepted() const { return bad_request.empty() && causes.empty(); }
  // "field: message", one a line.
  std::string text() const {
    std::string out = bad_request;
    for (const base::Cause& cause : causes) {
      out += (out.empty() ? "" : "\n") + cause.field + ": " + cause.message;
    }
    return out;
  }
};

inline json::Value with_server_fields(const Kind& kind, json::Value object) {
  if (kind.namespaced) object.ref("metadata").set("namespace", "default");
  object.ref("metadata").set("uid", "0000-uid");
  return object;
}

inline Outcome create(const Kind& kind, const json::Value& object) {
  Outcome out;
  auto normal = kube::normalize(*kind.schema, object, nullptr);
  if (!normal) {
    out.bad_request = normal.error().message;
    return out;
  }
  out.object = with_server_fields(kind, *normal);
  if (kind.defaults) kind.defaults(out.object);
  if (kind.prepare_create) kind.prepare_create(out.object);
  FieldErrors errors;
  validate_metadata(kind, out.object, errors);
  if (kind.validate) kind.validate(out.object, errors);
  out.causes = errors.causes();
  return out;
}

inline Outcome update(const Kind& kind, const json::Value& object, const json::Value& before) {
  Outcome out;
  auto normal = kube::normalize(*kind.schema, object, nullptr);
  if (!normal) {
    out.bad_request = normal.error().message;
    return out;
  }
  out.object = *normal;
  if (kind.defaults) kind.defaults(out.object);
  if (kind.prepare_update) kind.prepare_update(out.object, before);
  FieldErrors errors;
  validate_metadata(kind, out.object, errors);
  validate_metadata_update(kind, out.object, before, errors);
  if (kind.validate) kind.validate(out.object, errors);
  if (kind.validate_update) kind.validate_update(out.object, before, errors);
  out.causes = errors.causes();
  return out;
}

// The cells of `object` by column name; wide ones too.
inline std::string cell(const Kind& kind, const json::Value& object, std::string_view column,
                        base::Time now = {}) {
  for (const Column& each : kind.columns) {
    if (each.name != column) continue;
    const json::Value value = each.cell(kube::Object(object), now);
    return value.is_string() ? value.str() : value.dump();
  }
  ADD_FAILURE() << "no column " << column;
  return {};
}

}  // namespace tessera::apiserver::testing_kinds
