#include <set>

#include "apiserver/validate_meta.h"
#include "apiserver/validate_quota.h"
#include "apiserver/validate_resources.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::Quantity;

void validate_type(const Value& type, const Path& at, FieldErrors& errors) {
  const std::string_view text = type.as_string();
  const auto reasons = kube::check_qualified_name(text);
  add_reasons(reasons, type, at, errors);
  if (!reasons.empty() || text.find('/') != text.npos) return;
  if (text == "Pod" || text == "Container" || text == "PersistentVolumeClaim") return;
  errors.invalid(at.text(), type, "must be a standard limit type or fully qualified");
}

void validate_names(const Value& list, bool of_pods, const Path& at, FieldErrors& errors) {
  for (const json::Member& member : list.members()) {
    const Path here = at.key(member.name());
    if (of_pods) {
      validate_container_resource_name(member.name(), here, errors);
    } else {
      validate_resource_name(member.name(), here, errors);
    }
  }
}

void validate_fields(const Value& limit, const Path& at, FieldErrors& errors) {
  const std::string_view type = limit["type"].as_string();
  const bool of_pods = type == "Pod" || type == "Container";
  for (const char* field : {"max", "min"}) {
    validate_names(limit[field], of_pods, at.child(field), errors);
  }
  for (const char* field : {"default", "defaultRequest"}) {
    if (type != "Pod") {
      validate_names(limit[field], of_pods, at.child(field), errors);
    } else if (!limit[field].empty()) {
      errors.forbidden(at.text(field), "may not be specified when `type` is 'Pod'");
    }
  }
  if (type == "PersistentVolumeClaim" && !limit["min"].contains("storage") &&
      !limit["max"].contains("storage")) {
    errors.required(at.text("limits"),
                    "either minimum or maximum storage value is required, but neither was "
                    "provided");
  }
  validate_names(limit["maxLimitRequestRatio"], of_pods, at.child("maxLimitRequestRatio"), errors);
}

// One amount of a limit, by field and resource.
struct Amount {
  Amount(const Value& limit, const char* name, std::string_view resource)
      : field(name), set(limit[name].contains(resource)) {
    if (set) value = quantity_of(limit[name][resource]);
  }
  const char* field;
  bool set;
  Quantity value;
};

// That `low` is at most `high`; otherwise a cause at `blamed`.
void validate_order(const Amount& low, const char* low_word, const Amount& high,
                    const char* high_word, const Path& blamed, const Amount& shown,
                    FieldErrors& errors) {
  if (!low.set || !high.set || low.value <= high.value) return;
  errors.invalid(blamed.text(), Value(shown.value.to_string()),
                 fmt::format("{} value {} is greater than {} value {}", low_word,
                             low.value.to_string(), high_word, high.value.to_string()));
}

void validate_ratio(const Amount& ratio, const Amount& min, const Amount& max, const Path& at,
                    FieldErrors& errors) {
  if (!ratio.set) return;
  const Value shown(ratio.value.to_string());
  if (ratio.value < Quantity(1)) {
    errors.invalid(at.text(), shown, fmt::format("ratio {} is less than 1", shown.as_string()));
  }
  if (!min.set || !max.set || min.value.is_zero()) return;
  const double most = max.value.approximate() / min.value.approximate();
  if (ratio.value.approximate() <= most) return;
  errors.invalid(at.text(), shown,
                 fmt::format("ratio {} is greater than max/min = {:f}", shown.as_string(), most));
}

void validate_resource(const Value& limit, std::string_view name, const Path& at,
                       FieldErrors& errors) {
  const Amount min(limit, "min", name);
  const Amount max(limit, "max", name);
  const Amount plain(limit, "default", name);
  const Amount request(limit, "defaultRequest", name);
  const Path min_at = at.child("min");
  const Path plain_at = at.child("default");
  const Path request_at = at.child("defaultRequest");
  const Path ratio_at = at.child("maxLimitRequestRatio");
  const Path of_request = request_at.key(name);
  const Path of_plain = plain_at.key(name);
  validate_order(min, "min", max, "max", min_at.key(name), min, errors);
  validate_order(min, "min", request, "default request", of_request, request, errors);
  validate_order(request, "default request", max, "max", of_request, request, errors);
  validate_order(request, "default request", plain, "default limit", of_request, request, errors);
  validate_order(min, "min", plain, "default", of_plain, min, errors);
  validate_order(plain, "default", max, "max", of_plain, max, errors);
  validate_ratio(Amount(limit, "maxLimitRequestRatio", name), min, max, ratio_at.key(name), errors);
  if (may_overcommit(name) || !plain.set || !request.set || plain.value == request.value) return;
  errors.invalid(of_request.text(), Value(request.value.to_string()),
                 fmt::format("default value {} must equal to defaultRequest value {} in {}",
                             plain.value.to_string(), request.value.to_string(), name));
}

void validate_limit(const Value& limit, const Path& at, FieldErrors& errors) {
  validate_fields(limit, at, errors);
  std::set<std::string_view> names;
  for (const char* field : {"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}) {
    const bool ignored =
        limit["type"].as_string() == "Pod" && std::string_view(field).starts_with("default");
    if (ignored) continue;
    for (const json::Member& member : limit[field].members()) names.insert(member.name());
  }
  for (const std::string_view name : names) validate_resource(limit, name, at, errors);
}

}  // namespace

void validate_limit_range(const Value& object, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.child("limits");
  const Value& limits = object["spec"]["limits"];
  std::set<std::string_view> types;
  for (size_t i = 0; i < limits.size(); ++i) {
    const Path here = list.at(i);
    const Value& type = limits.at(i)["type"];
    validate_type(type, here.child("type"), errors);
    if (!types.insert(type.as_string()).second) errors.duplicate(here.text("type"), type);
    validate_limit(limits.at(i), here, errors);
  }
}

}  // namespace tessera::apiserver
