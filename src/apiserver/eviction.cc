#include "apiserver/eviction.h"

#include <algorithm>
#include <utility>

#include "kube/labels.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr size_t kDisruptedPodsMax = 2000;
constexpr const char* kWouldViolate =
    "Cannot evict pod as it would violate the pod's disruption budget.";

base::Error forbidden_by(const Value& budget, std::string_view why) {
  return {Code::kForbidden,
          fmt::format("poddisruptionbudget.policy \"{}\" is forbidden: {}",
                      budget["metadata"]["name"].as_string(), why),
          {}};
}

const Value& condition_named(const Value& status, std::string_view type) {
  static const Value kNone;
  for (const Value& condition : status["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return kNone;
}

// Why there is no disruption left.
std::string shortage(const Value& budget) {
  const std::string_view name = budget["metadata"]["name"].as_string();
  const Value& status = budget["status"];
  const Value& condition = condition_named(status, "DisruptionAllowed");
  if (condition["reason"].as_string() == "SyncFailed") {
    return fmt::format(
        "The disruption budget {} does not allow evicting pods currently because it failed sync: "
        "{}",
        name, condition["message"].as_string());
  }
  return fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                     status["desiredHealthy"].as_int(), status["currentHealthy"].as_int());
}

}  // namespace

bool pod_is_ready(const Value& pod) {
  return condition_named(pod["status"], "Ready")["status"].as_string() == "True";
}

bool budget_covers(const Value& budget, const Value& pod) {
  if (pod["metadata"]["labels"].empty()) return false;
  const auto selector = kube::LabelSelector::from_json(budget["spec"]["selector"], "spec.selector");
  return selector && selector->matches(pod["metadata"]["labels"]);
}

bool eviction_needs_no_budget(const Value& pod) {
  const std::string_view phase = pod["status"]["phase"].as_string();
  return phase == "Succeeded" || phase == "Failed" || phase == "Pending" ||
         pod["metadata"].contains("deletionTimestamp");
}

bool unhealthy_may_go(const Value& budget, const Value& pod) {
  if (pod_is_ready(pod)) return false;
  if (budget["spec"]["unhealthyPodEvictionPolicy"].as_string() == "AlwaysAllow") return true;
  const int64_t desired = budget["status"]["desiredHealthy"].as_int();
  return desired > 0 && budget["status"]["currentHealthy"].as_int() >= desired;
}

base::Error eviction_refused(const Value& budget, std::string_view why) {
  const std::string text =
      why.empty() ? fmt::format("The disruption budget {} is still being processed by the server.",
                                budget["metadata"]["name"].as_string())
                  : std::string(why);
  return {Code::kTooManyRequests, kWouldViolate, {{"DisruptionBudget", text, ""}}};
}

base::Result<Value> take_disruption(const Value& budget, std::string_view pod, base::Time now) {
  const Value& status = budget["status"];
  if (status["observedGeneration"].as_int() < budget["metadata"]["generation"].as_int()) {
    return base::error(eviction_refused(budget, ""));
  }
  const int64_t allowed = status["disruptionsAllowed"].as_int();
  if (allowed < 0) {
    return base::error(forbidden_by(budget, "pdb disruptions allowed is negative"));
  }
  if (status["disruptedPods"].size() > kDisruptedPodsMax) {
    return base::error(forbidden_by(
        budget, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"));
  }
  if (allowed == 0) return base::error(eviction_refused(budget, shortage(budget)));
  Value out = budget;
  out.ref("status", "disruptionsAllowed") = allowed - 1;
  if (allowed == 1) set_disruption_condition(out, now);
  out.ref("status", "disruptedPods").set(pod, base::to_rfc3339(now));
  return out;
}

void set_disruption_condition(Value& budget, base::Time now) {
  const bool allowed = budget["status"]["disruptionsAllowed"].as_int() > 0;
  put_condition(budget.ref("status"),
                Value::object({{"message", ""},
                               {"observedGeneration", budget["metadata"]["generation"]},
                               {"reason", allowed ? "SufficientPods" : "InsufficientPods"},
                               {"status", allowed ? "True" : "False"},
                               {"type", "DisruptionAllowed"}}),
                now);
}

void put_condition(Value& status, Value condition, base::Time now) {
  Value& conditions = status.ref("conditions");
  size_t at = 0;
  while (at < conditions.size() && !(conditions.at(at)["type"] == condition["type"])) ++at;
  const Value& before = conditions.at(at);
  const bool same = at < conditions.size() && before["status"] == condition["status"];
  condition.set("lastTransitionTime",
                same ? before["lastTransitionTime"] : Value(base::to_rfc3339(now)));
  if (at < conditions.size()) {
    conditions.ref_at(at) = std::move(condition);
  } else {
    conditions.push_back(std::move(condition));
  }
}

}  // namespace tessera::apiserver
