#include <string>
#include <utility>

#include "apiserver/api_errors.h"
#include "apiserver/crd_kind.h"
#include "apiserver/registry.h"
#include "kube/schema.h"

namespace tessera::apiserver {
namespace {

using json::Value;

// What the body says it is, as Kubernetes words that it is not `kind`.
std::string why_not_the_kind(const Kind& kind, std::string_view said, std::string_view name) {
  const size_t slash = said.find('/');
  const std::string_view group = slash == said.npos ? std::string_view() : said.substr(0, slash);
  const std::string_view version = slash == said.npos ? said : said.substr(slash + 1);
  if (version.find('/') != version.npos) {
    return fmt::format(
        "the object provided is unrecognized (must be of type {}): unexpected GroupVersion string: "
        "{}",
        kind.kind, said.substr(0, 256));
  }
  const auto handled =
      fmt::format("{} in version \"{}\" cannot be handled as a {}: ", name, version, kind.kind);
  const bool known = said == kind.api_version() && name == kind.kind;
  if (kind.schema != nullptr && !known && kube::find_kind_schema(group, version, name) == nullptr) {
    return handled + fmt::format("no kind \"{}\" is registered for version \"{}\"", name, said);
  }
  if (name == kind.kind && group == kind.group) {
    return fmt::format(
        "the API version in the data ({}) does not match the expected API version ({})", said,
        kind.api_version());
  }
  const std::string_view own =
      kind.group.empty() ? "core" : std::string_view(kind.group).substr(0, kind.group.find('.'));
  return handled + fmt::format("converting ({}.{}) to ({}.{}): unknown conversion", version, name,
                               own, kind.kind);
}

// A custom object may call itself another kind until it is validated.
base::Error not_the_custom_kind(const Kind& kind, const std::string& said, const Value& body) {
  if (said != kind.api_version()) {
    return bad_request(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    said, kind.api_version()));
  }
  Kind sent;
  sent.group = kind.group;
  sent.kind = body["kind"].str();
  FieldErrors errors;
  errors.invalid("kind", body["kind"], "must be " + kind.kind);
  return invalid(sent, body["metadata"]["name"].as_string(), errors.causes());
}

base::Status check_identity(const Kind& kind, const Value& body) {
  if (!body.is_object()) {
    return base::error(bad_request(fmt::format(
        "the object provided is unrecognized (must be of type {}): expected a JSON object",
        kind.kind)));
  }
  const Value& version = body["apiVersion"];
  const Value& word = body["kind"];
  const std::string said = version.is_null() ? kind.api_version() : version.str();
  const std::string name = word.is_null() ? kind.kind : word.str();
  if (said == kind.api_version() && name == kind.kind) return {};
  if (kind.custom != nullptr) return base::error(not_the_custom_kind(kind, said, body));
  return base::error(bad_request(why_not_the_kind(kind, said, name)));
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

base::Result<Value> decode_as(const Kind& kind, Call& call, const Value& body,
                              const Value& before) {
  TS_TRY_STATUS(check_identity(kind, body));
  Value object = body;
  std::vector<std::string> unknown;
  if (kind.custom != nullptr) {
    auto read = decode_custom(kind, std::move(object), &unknown);
    if (!read && read.error().code == base::Code::kNotFound) return read;
    if (!read) return base::error(bad_request(handled_as(kind, read.error().message)));
    object = std::move(*read);
  } else if (kind.schema != nullptr) {
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

base::Result<Value> decode_body(Call& call, const Value& body, const Value& before) {
  if (call.view == nullptr) return decode_as(*call.kind, call, body, before);
  TS_TRY(const Value object, decode_as(*call.view, call, body, Value()));
  return call.view->view->to_stored(object);
}

}  // namespace tessera::apiserver
