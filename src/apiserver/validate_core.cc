#include "apiserver/validate_core.h"

#include "apiserver/validate_meta.h"
#include "apiserver/validate_resources.h"
#include "apiserver/validate_scheduling.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kDataBytesMax = 1 << 20;
constexpr int64_t kUserPriorityMax = 1'000'000'000;

// Bytes that base64 text stands for.
size_t decoded_size(std::string_view text) {
  size_t digits = 0;
  for (const char c : text) digits += c != '=' && c != '\n' && c != '\r' ? 1 : 0;
  return digits * 3 / 4;
}

size_t validate_data(const Value& data, bool base64, const Path& at, FieldErrors& errors) {
  size_t bytes = 0;
  for (const json::Member& member : data.members()) {
    const Path here = at.key(member.name());
    add_reasons(kube::check_config_map_key(member.name()), member.key, here, errors);
    const std::string_view text = member.value.as_string();
    bytes += base64 ? decoded_size(text) : text.size();
  }
  return bytes;
}

void validate_frozen(const Value& object, const Value& before,
                     std::initializer_list<const char*> fields, FieldErrors& errors) {
  if (!before["immutable"].as_bool()) return;
  constexpr std::string_view kWhy = "field is immutable when `immutable` is set";
  if (!object["immutable"].as_bool()) errors.forbidden("immutable", kWhy);
  for (const char* field : fields) {
    if (!(object[field] == before[field])) errors.forbidden(field, kWhy);
  }
}

void require_key(const Value& object, const char* key, FieldErrors& errors) {
  const Path data("data");
  if (!object["data"].contains(key)) errors.required(data.key(key).text());
}

void validate_secret_type(const Value& object, FieldErrors& errors) {
  const std::string_view type = object["type"].as_string();
  if (type == "kubernetes.io/dockercfg") require_key(object, ".dockercfg", errors);
  if (type == "kubernetes.io/dockerconfigjson") require_key(object, ".dockerconfigjson", errors);
  if (type == "kubernetes.io/ssh-auth") require_key(object, "ssh-privatekey", errors);
  if (type == "kubernetes.io/tls") {
    require_key(object, "tls.crt", errors);
    require_key(object, "tls.key", errors);
  }
  if (type == "kubernetes.io/basic-auth" && !object["data"].contains("username") &&
      !object["data"].contains("password")) {
    require_key(object, "username", errors);
    require_key(object, "password", errors);
  }
  if (type == "kubernetes.io/service-account-token" &&
      object["metadata"]["annotations"]["kubernetes.io/service-account.name"].as_string().empty()) {
    errors.required("metadata.annotations[kubernetes.io/service-account.name]");
  }
}

}  // namespace

void validate_config_map(const Value& object, FieldErrors& errors) {
  const Path data("data");
  const Path binary("binaryData");
  size_t bytes = validate_data(object["data"], false, data, errors);
  bytes += validate_data(object["binaryData"], true, binary, errors);
  for (const json::Member& member : object["data"].members()) {
    if (!object["binaryData"].contains(member.name())) continue;
    errors.invalid(data.key(member.name()).text(), member.key,
                   "duplicate of key present in binaryData");
  }
  if (bytes > kDataBytesMax) errors.too_long("[]", kDataBytesMax);
}

void validate_config_map_update(const Value& object, const Value& before, FieldErrors& errors) {
  validate_frozen(object, before, {"data", "binaryData"}, errors);
}

void validate_secret(const Value& object, FieldErrors& errors) {
  const Path data("data");
  const size_t bytes = validate_data(object["data"], true, data, errors);
  if (bytes > kDataBytesMax) errors.too_long("data", kDataBytesMax);
  validate_secret_type(object, errors);
}

void validate_secret_update(const Value& object, const Value& before, FieldErrors& errors) {
  const Path type("type");
  validate_immutable(object["type"], before["type"], type, errors);
  validate_frozen(object, before, {"data"}, errors);
}

void validate_node(const Value& object, FieldErrors& errors) {
  // Kubernetes itself says metadata.taints here.
  const Path meta("metadata");
  validate_taints(object["spec"]["taints"], meta.child("taints"), errors);
  const Path status("status");
  for (const char* list : {"capacity", "allocatable"}) {
    const Path here = status.child(list);
    validate_node_amounts(object["status"][list], here, errors);
  }
}

void validate_node_update(const Value& object, const Value& before, FieldErrors& errors) {
  const Value& old = before["spec"];
  const Value& now = object["spec"];
  if (!old["podCIDRs"].empty() && !(old["podCIDRs"] == now["podCIDRs"])) {
    errors.forbidden("spec.podCIDRs",
                     "node updates may not change podCIDR except from \"\" to valid");
  }
  if (!old["providerID"].as_string().empty() && !(old["providerID"] == now["providerID"])) {
    errors.forbidden("spec.providerID",
                     "node updates may not change providerID except from \"\" to valid");
  }
}

void validate_event(const Value& object, FieldErrors& errors) {
  const std::string_view ns = object["metadata"]["namespace"].as_string();
  const Value about = Value(object["involvedObject"]["namespace"].as_string());
  const bool newer = !object["eventTime"].is_null();
  const bool cluster_wide = about.as_string().empty() && (ns == "default" || ns == "kube-system");
  if (newer ? about.as_string().empty() && !cluster_wide
            : about.as_string() != ns && !(about.as_string().empty() && ns == "default")) {
    errors.invalid("involvedObject.namespace", about, "does not match event.namespace");
  }
  if (!newer) return;
  const Value& component = object["reportingComponent"];
  if (component.as_string().empty()) errors.required("reportingComponent");
  add_reasons(kube::check_qualified_name(component.as_string()), component,
              Path("reportingComponent"), errors);
  for (const char* field : {"reportingInstance", "action", "reason"}) {
    if (object[field].as_string().empty()) errors.required(field);
    if (object[field].as_string().size() > 128) {
      errors.invalid(field, Value(""), "can have at most 128 characters");
    }
  }
  if (object["message"].as_string().size() > 1024) {
    errors.invalid("message", Value(""), "can have at most 1024 characters");
  }
}

void validate_priority_class(const Value& object, FieldErrors& errors) {
  const std::string_view name = object["metadata"]["name"].as_string();
  const int64_t value = object["value"].as_int();
  if (name.starts_with("system-")) {
    const bool known = (name == "system-node-critical" && value == 2 * kUserPriorityMax + 1000) ||
                       (name == "system-cluster-critical" && value == 2 * kUserPriorityMax);
    if (!known) {
      errors.forbidden(
          "metadata.name",
          fmt::format("priority class names with 'system-' prefix are reserved for "
                      "system use only. error: {} is not a known system priority class",
                      name));
    }
  } else if (value > kUserPriorityMax) {
    errors.forbidden("value", fmt::format("maximum allowed value of a user defined priority is {}",
                                          kUserPriorityMax));
  }
  const std::string_view policy = object["preemptionPolicy"].as_string();
  if (!policy.empty() && policy != "PreemptLowerPriority" && policy != "Never") {
    errors.not_supported("preemptionPolicy", object["preemptionPolicy"],
                         {"PreemptLowerPriority", "Never"});
  }
}

void validate_priority_class_update(const Value& object, const Value& before, FieldErrors& errors) {
  if (object["value"].as_int() != before["value"].as_int()) {
    errors.forbidden("value", "may not be changed in an update.");
  }
  const Path policy("preemptionPolicy");
  validate_immutable(object["preemptionPolicy"], before["preemptionPolicy"], policy, errors);
}

void validate_lease(const Value& object, FieldErrors& errors) {
  const Value& spec = object["spec"];
  const Path at("spec");
  if (spec.contains("leaseDurationSeconds") && spec["leaseDurationSeconds"].as_int() <= 0) {
    errors.invalid(at.text("leaseDurationSeconds"), spec["leaseDurationSeconds"],
                   "must be greater than 0");
  }
  validate_not_negative(spec["leaseTransitions"], at.child("leaseTransitions"), errors);
}

}  // namespace tessera::apiserver
