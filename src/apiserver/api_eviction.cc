// pods/eviction: a deletion that a PodDisruptionBudget may refuse.
//
// The budget and the pod are written together: of two evictions at once the second sees what the first took.
#include <utility>

#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/eviction.h"
#include "apiserver/node_access.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr int kAttemptsMax = 1000;

// The budget as it is then, to be written with the pod; no kind where none is concerned.
base::Result<Store::Write> spend_budget(const Core& core, const Value& pod) {
  if (core.budgets == nullptr || eviction_needs_no_budget(pod)) return Store::Write{};
  const std::string ns = pod["metadata"]["namespace"].str() + "/";
  Store::Found budget;
  for (Store::Found& found : core.store->newest(core.budgets, ns)) {
    if (!budget_covers(found.object, pod)) continue;
    if (budget) {
      return base::error(Code::kInternal,
                         "This pod has more than one PodDisruptionBudget, which the eviction "
                         "subresource does not support.");
    }
    budget = std::move(found);
  }
  if (!budget || unhealthy_may_go(budget.object, pod)) return Store::Write{};
  TS_TRY(Value spent,
         take_disruption(budget.object, pod["metadata"]["name"].as_string(), core.now()));
  return Store::Write{
      core.budgets, store_key(*core.budgets, spent), budget.revision, std::move(spent), {}};
}

void mark_target(Value& pod, base::Time now) {
  put_condition(pod.ref("status"),
                Value::object({{"lastProbeTime", nullptr},
                               {"message", "Eviction API: evicting"},
                               {"reason", "EvictionByEvictionAPI"},
                               {"status", "True"},
                               {"type", "DisruptionTarget"}}),
                now);
}

base::Status check_eviction(const kube::Request& request) {
  const Value& body = request.body;
  const bool beta = body["apiVersion"].as_string() == "policy/v1beta1";
  TS_TRY_STATUS(check_body(body, beta ? "policy/v1beta1" : "policy/v1", "Eviction"));
  const std::string_view name = body["metadata"]["name"].as_string();
  if (name.empty() || name == request.name) return {};
  return base::error(bad_request("name in URL does not match name in Eviction object"));
}

// True when the request is answered; false: someone came in between.
base::Result<bool> evict_once(Core& core, const CallPtr& call, const Transform& deletion,
                              bool dry_run) {
  const Kind& kind = *call->kind;
  const Store::Found pod = core.store->latest(&kind, call->key());
  if (!pod) return base::error(not_found(kind, call->request.name));
  TS_TRY_STATUS(admit_node_eviction(core, *call, pod.object));
  TS_TRY(Store::Write budget, spend_budget(core, pod.object));
  Value marked = pod.object;
  mark_target(marked, core.now());
  TS_TRY(Value next, deletion(marked));
  if (dry_run) {
    succeed(core, call, created_status(), 201);
    return true;
  }
  std::vector<Store::Write> writes;
  if (budget.kind != nullptr) writes.push_back(std::move(budget));
  writes.push_back({&kind, call->key(), pod.revision, std::move(next),
                    reply_of(call, 201, [](const Value&) { return created_status(); })});
  const Store::Outcome outcome = core.store->commit(writes);
  if (outcome == Store::Outcome::kClosed) {
    return base::error(Code::kUnavailable, "the server is shutting down");
  }
  return outcome == Store::Outcome::kAccepted;
}

}  // namespace

void do_eviction(Core& core, const CallPtr& call) {
  if (const auto ok = check_eviction(call->request); !ok) return fail(core, call, ok.error());
  const Value& options = call->request.body["deleteOptions"];
  const Value& dry = options["dryRun"];
  if (!dry.empty() && dry.at(0).as_string() != "All") {
    return fail(core, call,
                bad_request("deleteOptions.dryRun: only \"All\" is supported, or leave it out"));
  }
  kube::Request deletion = call->request;
  deletion.body = options;
  const auto transform = deletion_of(core, *call->kind, deletion);
  if (!transform) return fail(core, call, transform.error());
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const auto answered = evict_once(core, call, *transform, call->dry_run || !dry.empty());
    if (!answered) return fail(core, call, answered.error());
    if (*answered) return;
  }
  fail(core, call, modified(*call->kind, call->request.name));
}

}  // namespace tessera::apiserver
