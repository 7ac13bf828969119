// Whether a pod may be evicted under a PodDisruptionBudget, and the budget's status: what the eviction API and the
// controller of budgets share.
//
// Errors:  kTooManyRequests with the cause DisruptionBudget, kForbidden, in Kubernetes' words.
// Threads: pure.
// Source:  k8s.io/kubernetes v1.36.3 pkg/registry/core/pod/storage/eviction.go, pkg/controller/disruption (behaviour, wording).
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

namespace tessera::apiserver {

bool pod_is_ready(const json::Value& pod);
// The budget's selector selects the pod. Pods without labels are under no budget.
bool budget_covers(const json::Value& budget, const json::Value& pod);
// Pods that have not begun or have ended, or that go already, disrupt nothing.
bool eviction_needs_no_budget(const json::Value& pod);
// The pod does not count as healthy, and the budget's policy lets such ones go.
bool unhealthy_may_go(const json::Value& budget, const json::Value& pod);

base::Error eviction_refused(const json::Value& budget, std::string_view why);
// The budget with one disruption less, the pod noted in status.disruptedPods.
base::Result<json::Value> take_disruption(const json::Value& budget, std::string_view pod,
                                          base::Time now);
// Condition DisruptionAllowed, as status.disruptionsAllowed says.
void set_disruption_condition(json::Value& budget, base::Time now);
// Replaces the condition of its type; the transition time moves where the status does.
void put_condition(json::Value& status, json::Value condition, base::Time now);

}  // namespace tessera::apiserver
