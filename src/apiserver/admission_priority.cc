#include "apiserver/admission_priority.h"

#include <string>
#include <utility>

#include "apiserver/api_errors.h"

namespace tessera::apiserver {
namespace {

using json::Value;

struct Priority {
  std::string name{};
  int64_t value = 0;
  std::string policy = "PreemptLowerPriority";
};

// Of several global defaults the lowest counts.
Store::Found default_class(const Core& core) {
  Store::Found found;
  Store::Range range;
  range.filter = [](const Value& object) { return object["globalDefault"].as_bool(); };
  const auto page = core.store->list(core.priority_classes, range);
  if (!page) return found;
  for (const Value& item : page->items) {
    if (!found || item["value"].as_int() < found.object["value"].as_int()) found = {item, 1};
  }
  return found;
}

base::Result<Priority> priority_of(const Core& core, const Kind& kind, std::string_view object,
                                   const std::string& name) {
  Store::Found found;
  if (core.priority_classes != nullptr) {
    found = name.empty() ? default_class(core) : core.store->latest(core.priority_classes, name);
  }
  if (!name.empty() && !found) {
    return base::error(
        forbidden(kind, object, fmt::format("no PriorityClass with name {} was found", name)));
  }
  Priority out;
  out.name = name;
  if (!found) return out;
  if (name.empty()) out.name = found.object["metadata"]["name"].str();
  out.value = found.object["value"].as_int();
  if (const std::string policy = found.object["preemptionPolicy"].str(); !policy.empty()) {
    out.policy = policy;
  }
  return out;
}

bool differs(const Value& spec, int64_t value) {
  return spec.contains("priority") && spec["priority"].as_int() != value;
}

base::Status check_policy(const Kind& kind, std::string_view name, const Value& spec,
                          std::string_view policy, std::string_view what) {
  const Value& given = spec["preemptionPolicy"];
  if (given.is_null() || given.as_string() == policy) return {};
  return base::error(forbidden(
      kind, name,
      fmt::format("the string value of PreemptionPolicy ({}) must not be provided in {} spec; "
                  "priority admission controller computed {} from the given PriorityClass name",
                  given.as_string(), what, policy)));
}

void fill(Value& spec, const Priority& priority) {
  if (!priority.name.empty()) spec.set("priorityClassName", priority.name);
  spec.set("priority", priority.value);
  spec.set("preemptionPolicy", priority.policy);
}

}  // namespace

base::Status admit_pod_priority(const Core& core, std::string_view pod, Value& spec) {
  TS_TRY(const Priority priority,
         priority_of(core, *core.pods, pod, spec["priorityClassName"].str()));
  if (differs(spec, priority.value)) {
    return base::error(forbidden(
        *core.pods, pod,
        fmt::format("the integer value of priority ({}) must not be provided in pod spec; priority "
                    "admission controller computed {} from the given PriorityClass name",
                    spec["priority"].as_int(), priority.value)));
  }
  TS_TRY_STATUS(check_policy(*core.pods, pod, spec, priority.policy, "pod"));
  fill(spec, priority);
  return {};
}

base::Status admit_pod_group_priority(const Core& core, const Kind& kind, std::string_view name,
                                      Value& spec) {
  TS_TRY(const Priority priority, priority_of(core, kind, name, spec["priorityClassName"].str()));
  if (differs(spec, priority.value)) {
    return base::error(forbidden(
        kind, name,
        fmt::format("priority set in the pod group ({}) must match the priority computed ({}) "
                    "based on the priority class set in the spec",
                    spec["priority"].as_int(), priority.value)));
  }
  TS_TRY_STATUS(check_policy(kind, name, spec, priority.policy, "pod group"));
  fill(spec, priority);
  return {};
}

}  // namespace tessera::apiserver
