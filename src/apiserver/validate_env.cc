#include "apiserver/validate_env.h"

#include <algorithm>

#include "apiserver/validate_meta.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

bool is_env_field_path(std::string_view path) {
  static constexpr std::string_view kPaths[] = {"metadata.name",
                                                "metadata.namespace",
                                                "metadata.uid",
                                                "spec.nodeName",
                                                "spec.serviceAccountName",
                                                "status.hostIP",
                                                "status.hostIPs",
                                                "status.podIP",
                                                "status.podIPs"};
  if (std::ranges::find(kPaths, path) != std::end(kPaths)) return true;
  return (path.starts_with("metadata.labels['") || path.starts_with("metadata.annotations['")) &&
         path.ends_with("']");
}

void validate_field_ref(const Value& ref, const Path& at, FieldErrors& errors) {
  const std::string_view path = ref["fieldPath"].as_string();
  if (path.empty()) {
    errors.required(at.text("fieldPath"));
  } else if (!is_env_field_path(path)) {
    errors.invalid(at.text("fieldPath"), ref["fieldPath"],
                   fmt::format("error converting fieldPath: field label not supported: {}", path));
  }
}

void validate_key_ref(const Value& ref, const Path& at, FieldErrors& errors) {
  validate_dns_subdomain(ref["name"].as_string(), at.child("name"), errors);
  if (ref["key"].as_string().empty()) {
    errors.required(at.text("key"));
  } else {
    const Path here = at.child("key");
    add_reasons(kube::check_config_map_key(ref["key"].as_string()), ref["key"], here, errors);
  }
}

void validate_value_from(const Value& env, const Path& at, FieldErrors& errors) {
  const Value& from = env["valueFrom"];
  size_t sources = 0;
  for (const char* kind :
       {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}) {
    if (!from[kind].is_object()) continue;
    ++sources;
    const Path here = at.child(kind);
    if (kind == std::string_view("fieldRef")) validate_field_ref(from[kind], here, errors);
    if (std::string_view(kind).ends_with("KeyRef") && kind != std::string_view("fileKeyRef")) {
      validate_key_ref(from[kind], here, errors);
    }
    if (kind == std::string_view("resourceFieldRef") &&
        from[kind]["resource"].as_string().empty()) {
      errors.required(here.text("resource"));
    }
  }
  const char* wrong = nullptr;
  if (sources == 0) {
    wrong =
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
        "`fileKeyRef`";
  } else if (!env["value"].as_string().empty()) {
    wrong = "may not be specified when `value` is not empty";
  } else if (sources > 1) {
    wrong = "may not have more than one field specified at a time";
  }
  if (wrong != nullptr) errors.invalid(at.text(), Value(""), wrong);
}

void validate_env_from(const Value& from, const Path& list, size_t index, FieldErrors& errors) {
  const Path at = list.at(index);
  if (const std::string_view prefix = from["prefix"].as_string(); !prefix.empty()) {
    const Path here = at.child("prefix");
    add_reasons(kube::check_env_name(prefix), from["prefix"], here, errors);
  }
  size_t sources = 0;
  for (const char* kind : {"configMapRef", "secretRef"}) {
    if (!from[kind].is_object()) continue;
    ++sources;
    const Path here = at.child(kind);
    validate_dns_subdomain(from[kind]["name"].as_string(), here.child("name"), errors);
  }
  if (sources == 0) {
    errors.invalid(list.text(), Value(""), "must specify one of: `configMapRef` or `secretRef`");
  } else if (sources > 1) {
    errors.invalid(list.text(), Value(""), "may not have more than one field specified at a time");
  }
}

}  // namespace

void validate_env(const Value& container, const Path& at, FieldErrors& errors) {
  const Path list = at.child("env");
  const Value& env = container["env"];
  for (size_t i = 0; i < env.size(); ++i) {
    const Path here = list.at(i);
    if (env.at(i)["name"].as_string().empty()) {
      errors.required(here.text("name"));
    } else {
      const Path name = here.child("name");
      add_reasons(kube::check_env_name(env.at(i)["name"].as_string()), env.at(i)["name"], name,
                  errors);
    }
    if (env.at(i)["valueFrom"].is_object()) {
      validate_value_from(env.at(i), here.child("valueFrom"), errors);
    }
  }
  const Path from = at.child("envFrom");
  for (size_t i = 0; i < container["envFrom"].size(); ++i) {
    validate_env_from(container["envFrom"].at(i), from, i, errors);
  }
}

}  // namespace tessera::apiserver
