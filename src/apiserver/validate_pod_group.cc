#include "apiserver/validate_pod_group.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "apiserver/validate_meta.h"
#include "kube/validate_names.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr size_t kTemplatesMax = 8;
constexpr int64_t kPriorityMax = 1000000000;
constexpr size_t kReasonMax = 1024;
constexpr size_t kMessageMax = 32768;
const std::vector<std::string> kPreemption = {"Never", "PreemptLowerPriority"};
const std::vector<std::string> kStates = {"False", "True", "Unknown"};

void validate_same(const Value& now, const Value& before, const Path& at, FieldErrors& errors) {
  if (!(now == before)) errors.invalid(at.text(), Value(), "field is immutable");
}

// Exactly one of the members is set.
void validate_union(const Value& object, std::initializer_list<const char*> members, const Path& at,
                    FieldErrors& errors) {
  std::string all;
  std::string given;
  int count = 0;
  for (const char* member : members) {
    all += std::string(all.empty() ? "`" : ", `") + member + "`";
    if (!object.contains(member)) continue;
    given += std::string(given.empty() ? "" : ", ") + member;
    ++count;
  }
  if (count == 0) errors.invalid(at.text(), Value(""), "must specify one of: " + all);
  if (count > 1) {
    errors.invalid(at.text(), Value("{" + given + "}"), "must specify exactly one of: " + all);
  }
}

void validate_name(const Value& name, bool label, const Path& at, FieldErrors& errors) {
  if (name.as_string().empty()) {
    errors.required(at.text());
  } else if (label) {
    validate_dns_label(name.as_string(), at, errors);
  } else {
    validate_dns_subdomain(name.as_string(), at, errors);
  }
}

void validate_min_count(const Value& count, const Path& at, FieldErrors& errors) {
  if (count.as_int() == 0) {
    errors.required(at.text());
  } else if (count.as_int() < 0) {
    errors.invalid(at.text(), count, "must be greater than or equal to 1");
  }
}

void validate_gang(const Value& policy, const Value* before, const Path& at, FieldErrors& errors) {
  const bool now = policy.contains("gang");
  const Path gang = at.child("gang");
  if (before != nullptr && before->contains("gang") != now) {
    errors.invalid(gang.text(), Value(),
                   now ? "field cannot be set once created" : "field cannot be cleared once set");
    return;
  }
  const Value& count = policy["gang"]["minCount"];
  if (!now || (before != nullptr && (*before)["gang"]["minCount"] == count)) return;
  validate_min_count(count, gang.child("minCount"), errors);
}

void validate_policy(const Value& policy, const Value* before, const Path& at,
                     FieldErrors& errors) {
  const auto changed = [&](const char* member) {
    return before != nullptr && before->contains(member) != policy.contains(member);
  };
  if (before == nullptr || changed("basic") || changed("gang")) {
    validate_union(policy, {"basic", "gang"}, at, errors);
  }
  if (changed("basic")) errors.invalid(at.text("basic"), Value(), "field is immutable");
  validate_gang(policy, before, at, errors);
}

void validate_topology(const Value& topology, const Path& at, FieldErrors& errors) {
  if (topology.size() > 1) {
    errors.too_many(at.text(), topology.size(), 1);
    return;
  }
  for (size_t i = 0; i < topology.size(); ++i) {
    const Path one = at.at(i);
    const Path key = one.child("key");
    const std::string_view text = topology.at(i)["key"].as_string();
    if (text.empty()) {
      errors.required(key.text());
    } else {
      validate_label_name(text, key, errors);
    }
  }
}

// Of a group and of the template of one: all that never changes, in the order of their fields.
void validate_fixed(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path constraints = at.child("schedulingConstraints");
  validate_topology(spec["schedulingConstraints"]["topology"], constraints.child("topology"),
                    errors);
  if (spec.contains("disruptionMode")) {
    validate_union(spec["disruptionMode"], {"single", "all"}, at.child("disruptionMode"), errors);
  }
  if (spec.contains("priorityClassName")) {
    validate_dns_subdomain(spec["priorityClassName"].as_string(), at.child("priorityClassName"),
                           errors);
  }
  if (spec["priority"].as_int() > kPriorityMax) {
    errors.invalid(at.text("priority"), spec["priority"],
                   fmt::format("must be less than or equal to {}", kPriorityMax));
  }
  validate_choice(spec["preemptionPolicy"], kPreemption, at.child("preemptionPolicy"), errors);
}

void validate_fixed_update(const Value& spec, const Value& before, const Path& at,
                           FieldErrors& errors) {
  for (const char* field : {"schedulingConstraints", "disruptionMode", "priorityClassName",
                            "priority", "preemptionPolicy"}) {
    validate_same(spec[field], before[field], at.child(field), errors);
  }
}

void validate_controller(const Value& reference, const Path& at, FieldErrors& errors) {
  if (!reference.is_object()) return;
  if (reference.contains("apiGroup")) {
    validate_dns_subdomain(reference["apiGroup"].as_string(), at.child("apiGroup"), errors);
  }
  validate_segment(reference["kind"], at.child("kind"), errors);
  validate_segment(reference["name"], at.child("name"), errors);
}

const Value* by_name(const Value& list, std::string_view name) {
  for (const Value& one : list.items()) {
    if (one["name"].as_string() == name) return &one;
  }
  return nullptr;
}

void validate_templates(const Value& list, const Path& at, FieldErrors& errors) {
  if (list.size() > kTemplatesMax) {
    errors.too_many(at.text(), list.size(), kTemplatesMax);
    return;
  }
  std::set<std::string_view> names;
  for (size_t i = 0; i < list.size(); ++i) {
    const Path one = at.at(i);
    if (!names.insert(list.at(i)["name"].as_string()).second) {
      errors.duplicate(one.text(), list.at(i));
    }
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const Path one = at.at(i);
    validate_name(list.at(i)["name"], true, one.child("name"), errors);
    validate_policy(list.at(i)["schedulingPolicy"], nullptr, one.child("schedulingPolicy"), errors);
    validate_fixed(list.at(i), one, errors);
  }
}

// None comes and none goes; they are told apart by name.
bool validate_same_templates(const Value& list, const Value& before, const Path& at,
                             FieldErrors& errors) {
  bool all = true;
  for (size_t i = 0; i < list.size(); ++i) {
    if (by_name(before, list.at(i)["name"].as_string()) != nullptr) continue;
    const Path one = at.at(i);
    errors.forbidden(one.text(), "item may not be added");
    all = false;
  }
  for (const Value& old : before.items()) {
    if (by_name(list, old["name"].as_string()) != nullptr) continue;
    errors.forbidden(at.text(), "item may not be removed");
    all = false;
  }
  return all;
}

void validate_one_priority(const Value& list, FieldErrors& errors) {
  for (const Value& one : list.items()) {
    const Value& first = list.at(0);
    if (one["priority"] == first["priority"] &&
        one["priorityClassName"] == first["priorityClassName"]) {
      continue;
    }
    errors.invalid("spec", Value(), "detected multiple priority configurations");
    return;
  }
}

bool is_reason(std::string_view text) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
         (part(text.back()) || text.back() == '_') && std::ranges::all_of(text, [&](char c) {
           return part(c) || c == '_' || c == ',' || c == ':';
         });
}

void validate_reason(const Value& reason, const Path& at, FieldErrors& errors) {
  const std::string_view text = reason.as_string();
  if (text.empty()) {
    errors.required(at.text());
    return;
  }
  if (!is_reason(text)) {
    errors.invalid(
        at.text(), reason,
        "a condition reason must start with alphabetic character, optionally followed by a string "
        "of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' "
        "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or "
        "'ReasonA:ReasonB', regex used for validation is "
        "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
  }
  if (text.size() > kReasonMax) errors.too_long(at.text(), kReasonMax);
}

void validate_condition(const Value& condition, const Path& at, FieldErrors& errors) {
  const std::string_view type = condition["type"].as_string();
  if (type.empty()) {
    errors.required(at.text("type"), "is required");
  } else {
    validate_label_name(type, at.child("type"), errors);
  }
  if (condition["status"].as_string().empty()) {
    errors.required(at.text("status"));
  } else {
    validate_choice(condition["status"], kStates, at.child("status"), errors);
  }
  if (condition["observedGeneration"].as_int() < 0) {
    errors.invalid(at.text("observedGeneration"), condition["observedGeneration"],
                   "must be greater than or equal to zero");
  }
  if (!condition["lastTransitionTime"].is_string()) {
    errors.required(at.text("lastTransitionTime"));
  }
  validate_reason(condition["reason"], at.child("reason"), errors);
  if (condition["message"].as_string().size() > kMessageMax) {
    errors.too_long(at.text("message"), kMessageMax);
  }
}

}  // namespace

void validate_conditions(const Value& conditions, std::string_view at, FieldErrors& errors) {
  const Path list(at);
  std::set<std::string_view> types;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Path one = list.at(i);
    const Value& type = conditions.at(i)["type"];
    if (!types.insert(type.as_string()).second) errors.duplicate(one.text(), type);
    validate_condition(conditions.at(i), one, errors);
  }
}

void validate_pod_group(const Value& group, FieldErrors& errors) {
  const Value& spec = group["spec"];
  const Path at("spec");
  if (spec["workloadRef"].is_object()) {
    const Path reference = at.child("workloadRef");
    validate_name(spec["workloadRef"]["workloadName"], false, reference.child("workloadName"),
                  errors);
    validate_name(spec["workloadRef"]["templateName"], true, reference.child("templateName"),
                  errors);
  }
  validate_policy(spec["schedulingPolicy"], nullptr, at.child("schedulingPolicy"), errors);
  validate_fixed(spec, at, errors);
}

void validate_pod_group_update(const Value& group, const Value& before, FieldErrors& errors) {
  const Value& spec = group["spec"];
  const Value& old = before["spec"];
  const Path at("spec");
  validate_same(spec["workloadRef"], old["workloadRef"], at.child("workloadRef"), errors);
  validate_policy(spec["schedulingPolicy"], &old["schedulingPolicy"], at.child("schedulingPolicy"),
                  errors);
  validate_fixed_update(spec, old, at, errors);
}

void validate_pod_group_status(const Value& group, const Value&, FieldErrors& errors) {
  const Value& status = group["status"];
  validate_conditions(status["conditions"], "status.conditions", errors);
  const Path list("status.resourceClaimStatuses");
  const Value& claims = status["resourceClaimStatuses"];
  for (size_t i = 0; i < claims.size(); ++i) {
    const Path one = list.at(i);
    if (by_name(group["spec"]["resourceClaims"], claims.at(i)["name"].as_string()) == nullptr) {
      errors.invalid(one.text("name"), claims.at(i)["name"],
                     "must match the name of an entry in `spec.resourceClaims`");
    }
  }
}

void validate_scheduled_workload(const Value& workload, FieldErrors& errors) {
  const Value& spec = workload["spec"];
  const Path at("spec");
  validate_one_priority(spec["podGroupTemplates"], errors);
  if (spec["podGroupTemplates"].empty()) {
    errors.invalid(at.text(), Value(""),
                   "must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`");
  }
  validate_controller(spec["controllerRef"], at.child("controllerRef"), errors);
  validate_templates(spec["podGroupTemplates"], at.child("podGroupTemplates"), errors);
}

void validate_scheduled_workload_update(const Value& workload, const Value& before,
                                        FieldErrors& errors) {
  const Value& spec = workload["spec"];
  const Value& old = before["spec"];
  const Path at("spec");
  validate_same(spec["controllerRef"], old["controllerRef"], at.child("controllerRef"), errors);
  const Path list = at.child("podGroupTemplates");
  const Value& now = spec["podGroupTemplates"];
  if (!validate_same_templates(now, old["podGroupTemplates"], list, errors)) return;
  for (size_t i = 0; i < now.size(); ++i) {
    const Path one = list.at(i);
    const Value& then = *by_name(old["podGroupTemplates"], now.at(i)["name"].as_string());
    validate_policy(now.at(i)["schedulingPolicy"], &then["schedulingPolicy"],
                    one.child("schedulingPolicy"), errors);
    validate_fixed_update(now.at(i), then, one, errors);
  }
}

}  // namespace tessera::apiserver
