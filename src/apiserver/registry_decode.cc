#include <string>
#include <utility>

#include "apiserver/api_errors.h"
#include "apiserver/registry.h"
#include "kube/schema.h"

namespace tessera::apiserver {
namespace {

using json::Value;

base::Status check_identity(const Kind& kind, const Value& body) {
  if (!body.is_object()) {
    return base::error(bad_request(fmt::format(
        "the object provided is unrecognized (must be of type {}): expected a JSON object",
        kind.kind)));
  }
  const Value& version = body["apiVersion"];
  const Value& word = body["kind"];
  if (!version.is_null() && version.as_string() != kind.api_version()) {
    return base::error(bad_request(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    version.is_string() ? version.str() : version.dump(), kind.api_version())));
  }
  if (word.is_null() || word.as_string() == kind.kind) return {};
  const std::string_view group =
      kind.group.empty() ? "core" : std::string_view(kind.group).substr(0, kind.group.find('.'));
  return base::error(bad_request(fmt::format(
      "{} in version \"{}\" cannot be handled as a {}: converting ({}.{}) to ({}.{}): unknown "
      "conversion",
      word.as_string(), kind.version, kind.kind, kind.version, word.as_string(), group,
      kind.kind)));
}

bool untouched(const Value& now, const Value* before) {
  if (before == nullptr) return false;
  if (now.is_object() || now.is_array()) return now.same_node(*before);
  return now.type() == before->type() && now == *before;
}

// Only what differs from `before` needs a look: that is stored and so in order.
base::Result<Value> normalize_changed(const Kind& kind, Value body, const Value& before,
                                      std::vector<std::string>* unknown) {
  Value changed = Value::object();
  for (const json::Member& member : body.members()) {
    if (!untouched(member.value, before.find(member.name()))) {
      changed.set(member.name(), member.value);
    }
  }
  if (changed.empty()) return body;
  TS_TRY(const Value normal, kube::normalize(*kind.schema, changed, unknown));
  for (const json::Member& member : changed.members()) {
    const Value* value = normal.find(member.name());
    if (value == nullptr) {
      body.erase(member.name());
    } else if (!untouched(*value, body.find(member.name()))) {
      body.set(member.name(), *value);
    }
  }
  return body;
}

std::string handled_as(const Kind& kind, std::string_view why) {
  return fmt::format("{} in version \"{}\" cannot be handled as a {}: {}", kind.kind, kind.version,
                     kind.kind, why);
}

}  // namespace

base::Result<Value> decode_body(Call& call, const Value& body, const Value& before) {
  const Kind& kind = *call.kind;
  TS_TRY_STATUS(check_identity(kind, body));
  Value object = body;
  std::vector<std::string> unknown;
  if (kind.schema != nullptr) {
    auto normal = before.is_null() ? kube::normalize(*kind.schema, object, &unknown)
                                   : normalize_changed(kind, std::move(object), before, &unknown);
    if (!normal) return base::error(bad_request(handled_as(kind, normal.error().message)));
    object = std::move(*normal);
  }
  if (!unknown.empty() && call.validation == FieldValidation::kStrict) {
    std::string all;
    for (const std::string& field : unknown) {
      all += fmt::format("{}unknown field \"{}\"", all.empty() ? "" : ", ", field);
    }
    return base::error(bad_request(handled_as(kind, "strict decoding error: " + all)));
  }
  if (call.validation == FieldValidation::kWarn) {
    for (const std::string& field : unknown) {
      call.warnings.push_back(fmt::format("unknown field \"{}\"", field));
    }
  }
  // No managedFields at all and an empty list of them are two requests (kube/managed_fields.h).
  const Value& owners = body["metadata"]["managedFields"];
  if (owners.is_array() && owners.empty()) {
    object.ref("metadata", "managedFields") = Value::array({Value::object()});
  }
  if (object["apiVersion"].is_null()) object.set("apiVersion", kind.api_version());
  if (object["kind"].is_null()) object.set("kind", kind.kind);
  return object;
}

}  // namespace tessera::apiserver
