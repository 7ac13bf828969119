#include "apiserver/controller_node_plan.h"

#include <algorithm>
#include <array>

#include "kube/taints.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr const char* kUnreachable = "node.kubernetes.io/unreachable";
constexpr const char* kNotReady = "node.kubernetes.io/not-ready";
constexpr const char* kUnschedulable = "node.kubernetes.io/unschedulable";

struct Pressure {
  const char* condition;
  const char* taint;
};
constexpr std::array kPressures = {
    Pressure{"MemoryPressure", "node.kubernetes.io/memory-pressure"},
    Pressure{"DiskPressure", "node.kubernetes.io/disk-pressure"},
    Pressure{"PIDPressure", "node.kubernetes.io/pid-pressure"},
    Pressure{"NetworkUnavailable", "node.kubernetes.io/network-unavailable"},
};

void want(Value& taints, std::string_view key, std::string_view effect, bool wanted,
          base::Time now) {
  for (size_t i = 0; i < taints.size(); ++i) {
    const Value& taint = taints.at(i);
    if (taint["key"].as_string() != key || taint["effect"].as_string() != effect) continue;
    if (!wanted) taints.erase_at(i);
    return;
  }
  if (!wanted) return;
  taints.push_back(
      Value::object({{"key", key}, {"effect", effect}, {"timeAdded", base::to_rfc3339(now)}}));
}

bool tolerates(const Value& toleration, const Value& taint) {
  kube::Toleration decoded;
  decoded.key = toleration["key"].str();
  decoded.value = toleration["value"].str();
  if (toleration["operator"].as_string() == "Exists") decoded.op = kube::Toleration::Op::kExists;
  decoded.effect =
      kube::taint_effect_of(toleration["effect"].as_string()).value_or(kube::TaintEffect::kAny);
  return kube::tolerates(decoded,
                         {taint["key"].str(), taint["value"].str(), kube::TaintEffect::kNoExecute});
}

}  // namespace

Value lost_node_status(const Value& status, base::Time now) {
  Value next = status;
  for (const char* type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}) {
    const Value& old = condition_of(status, type);
    if (old["status"].as_string() == "Unknown") continue;
    const bool never = old.is_null();
    Value condition = never ? Value::object({{"type", type}}) : old;
    condition.set("status", "Unknown");
    condition.set("reason", never ? "NodeStatusNeverUpdated" : "NodeStatusUnknown");
    condition.set("message", never ? "Kubelet never posted node status."
                                   : "Kubelet stopped posting node status.");
    set_condition(next, std::move(condition), now);
  }
  return next;
}

Value node_taints(const Object& node, base::Time now) {
  Value taints = node.get("spec", "taints");
  if (!taints.is_array()) taints = Value::array();
  const Value& ready = condition_of(node["status"], "Ready");
  const bool unknown = ready["status"].as_string() == "Unknown";
  const bool not_ready = ready["status"].as_string() == "False";
  for (const char* effect : {"NoSchedule", "NoExecute"}) {
    want(taints, kUnreachable, effect, unknown, now);
    want(taints, kNotReady, effect, not_ready, now);
  }
  want(taints, kUnschedulable, "NoSchedule", node.get("spec", "unschedulable").as_bool(), now);
  for (const Pressure& pressure : kPressures) {
    const Value& condition = condition_of(node["status"], pressure.condition);
    want(taints, pressure.taint, "NoSchedule", condition["status"].as_string() == "True", now);
  }
  return taints;
}

Value lost_pod_status(const Value& status, const Value& node_status, base::Time now) {
  const Value& ready = condition_of(status, "Ready");
  const Value& lost = condition_of(node_status, "Ready");
  if (ready["status"].as_string() != "True" || lost["status"].as_string() != "Unknown") {
    return status;
  }
  const auto since = base::parse_rfc3339(ready["lastTransitionTime"].as_string());
  const auto lost_at = base::parse_rfc3339(lost["lastTransitionTime"].as_string());
  if (since && lost_at && *since >= *lost_at) return status;
  Value next = status;
  Value condition = ready;
  condition.set("status", "False");
  condition.set("reason", "NodeNotReady");
  set_condition(next, std::move(condition), now);
  return next;
}

std::optional<base::Time> eviction_time(const Value& taints, const Value& tolerations,
                                        base::Time now) {
  std::optional<base::Time> due;
  for (const Value& taint : taints.items()) {
    if (taint["effect"].as_string() != "NoExecute") continue;
    const auto added = base::parse_rfc3339(taint["timeAdded"].as_string());
    bool tolerated = false;
    std::optional<int64_t> seconds;
    for (const Value& toleration : tolerations.items()) {
      if (!tolerates(toleration, taint)) continue;
      tolerated = true;
      if (!toleration.contains("tolerationSeconds")) continue;
      const int64_t each = std::max<int64_t>(0, toleration["tolerationSeconds"].as_int());
      seconds = std::min(seconds.value_or(each), each);
    }
    if (tolerated && !seconds) continue;
    constexpr int64_t kYearSeconds = 366 * 86'400;
    const base::Time from = added ? *added : now;
    const base::Time at = from + base::seconds(std::min(seconds.value_or(0), kYearSeconds));
    due = std::min(due.value_or(at), at);
  }
  return due;
}

}  // namespace tessera::apiserver::controller
