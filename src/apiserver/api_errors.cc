#include "apiserver/api_errors.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "apiserver/store.h"

namespace tessera::apiserver {

using base::Code;
using base::Error;

Error not_found(const Kind& kind, std::string_view name) {
  return {Code::kNotFound, fmt::format("{} \"{}\" not found", resource_name(kind), name), {}};
}

Error already_exists(const Kind& kind, std::string_view name) {
  return {
      Code::kAlreadyExists, fmt::format("{} \"{}\" already exists", resource_name(kind), name), {}};
}

Error conflict(const Kind& kind, std::string_view name, std::string_view why) {
  return {
      Code::kConflict,
      fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", resource_name(kind), name, why),
      {}};
}

Error modified(const Kind& kind, std::string_view name) {
  return conflict(kind, name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

Error forbidden(const Kind& kind, std::string_view name, std::string_view why) {
  return {Code::kForbidden,
          fmt::format("{} \"{}\" is forbidden: {}", resource_name(kind), name, why),
          {}};
}

Error invalid(const Kind& kind, std::string_view name, std::vector<base::Cause> causes) {
  std::vector<std::string> texts;  // each once, as field.ErrorList.ToAggregate does
  for (const base::Cause& cause : causes) {
    std::string text = cause.field.empty() ? cause.message : cause.field + ": " + cause.message;
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
  if (texts.size() > 1) joined = "[" + joined + "]";
  const std::string kind_name = kind.group.empty() ? kind.kind : kind.kind + "." + kind.group;
  return {Code::kInvalid, fmt::format("{} \"{}\" is invalid: {}", kind_name, name, joined),
          std::move(causes)};
}

Error invalid_options(std::string_view options, std::vector<base::Cause> causes) {
  Kind kind;
  kind.group = "meta.k8s.io";
  kind.kind = options;
  return invalid(kind, "", std::move(causes));
}

Error plain_error(std::string message) {
  return {Code::kInternal, std::move(message), {{"", "", std::string(kPlainField)}}};
}

Error other_uid(const Kind& kind, const json::Value& object, std::string_view uid) {
  const json::Value& meta = object["metadata"];
  const std::string_view name = meta["name"].as_string();
  const std::string ns = kind.namespaced ? meta["namespace"].str() + "/" : std::string();
  return conflict(kind, name,
                  fmt::format("StorageError: invalid object, Code: 4, Key: /registry/{}/{}{}, "
                              "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
                              "precondition: {}, UID in object meta: {}",
                              kind.plural, ns, name, uid, meta["uid"].as_string()));
}

Error bad_request(std::string message) {
  return {Code::kBadRequest, std::move(message), {}};
}

Error method_not_allowed() {
  return {Code::kMethodNotAllowed,
          "the server does not allow this method on the requested resource",
          {}};
}

}  // namespace tessera::apiserver
