#include "apiserver/controllers_pdb.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "apiserver/eviction.h"
#include "apiserver/store.h"
#include "kube/labels.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr int kOwnersMax = 4;  // above one another; more are a circle
constexpr base::Duration kDeletionTimeout = base::seconds(120);

// A number or a share of `whole` ("30%"), rounded up.
int64_t share_of(const Value& amount, int64_t whole) {
  if (!amount.is_string()) return amount.as_int();
  const std::string_view text = amount.as_string();
  int64_t percent = 0;
  std::from_chars(text.data(), text.data() + text.size(), percent);
  percent = std::clamp<int64_t>(percent, 0, 1'000'000);
  return (std::clamp<int64_t>(whole, 0, INT32_MAX) * percent + 99) / 100;
}

// How many pods the owners of all these should have.
base::Result<int64_t> expected_scale(const std::vector<Object>& pods, const FindScale& find_scale,
                                     std::vector<std::string>& unmanaged) {
  std::map<std::string, int64_t> scales;
  std::map<std::string, bool> asked;
  for (const Object& pod : pods) {
    const Value& owner = controller_of(pod);
    if (owner.is_null()) {
      unmanaged.emplace_back(pod.name());
      continue;
    }
    if (std::exchange(asked[owner["uid"].str()], true)) continue;
    TS_TRY(const OwnerScale scale, find_scale(owner, pod.ns()));
    scales[scale.uid] = scale.replicas;
  }
  int64_t sum = 0;
  for (const auto& [uid, replicas] : scales) sum += replicas;
  return sum;
}

struct Wanted {
  int64_t expected = 0;
  int64_t healthy = 0;
};

base::Result<Wanted> wanted_pods(const Value& spec, const std::vector<Object>& pods,
                                 const FindScale& find_scale, std::vector<std::string>& unmanaged) {
  const Value& least = spec["minAvailable"];
  const Value& most = spec["maxUnavailable"];
  Wanted out;
  if (!most.is_null()) {
    TS_TRY(out.expected, expected_scale(pods, find_scale, unmanaged));
    out.healthy = std::max<int64_t>(out.expected - share_of(most, out.expected), 0);
  } else if (least.is_int()) {
    out.expected = static_cast<int64_t>(pods.size());
    out.healthy = least.as_int();
  } else if (least.is_string()) {
    TS_TRY(out.expected, expected_scale(pods, find_scale, unmanaged));
    out.healthy = share_of(least, out.expected);
  }
  return out;
}

// Those noted by evictions that are still expected to go.
Value still_disrupted(const Value& noted, const std::vector<Object>& pods, base::Time now,
                      BudgetPlan& plan) {
  Value out = Value::object();
  for (const Object& pod : pods) {
    const auto when = base::parse_rfc3339(noted[pod.name()].as_string());
    if (!when || pod.deleting()) continue;
    const base::Duration left = *when + kDeletionTimeout - now;
    if (left < base::Duration{}) continue;
    out.set(pod.name(), noted[pod.name()]);
    if (!plan.look_again || left < *plan.look_again) plan.look_again = left;
  }
  return out;
}

void write_failure(const Object& budget, base::Time now, BudgetPlan& plan) {
  plan.status = budget["status"];
  plan.status.set("disruptionsAllowed", 0);
  plan.status.set("observedGeneration", budget.metadata()["generation"]);
  put_condition(plan.status,
                Value::object({{"message", plan.failure},
                               {"observedGeneration", budget.metadata()["generation"]},
                               {"reason", "SyncFailed"},
                               {"status", "False"},
                               {"type", "DisruptionAllowed"}}),
                now);
}

}  // namespace

BudgetPlan plan_budget(const Object& budget, const std::vector<Object>& pods,
                       const FindScale& find_scale, base::Time now) {
  BudgetPlan plan;
  const auto wanted = wanted_pods(budget["spec"], pods, find_scale, plan.unmanaged);
  if (!wanted) {
    plan.failure = wanted.error().message;
    write_failure(budget, now, plan);
    return plan;
  }
  const Value disrupted = still_disrupted(budget["status"]["disruptedPods"], pods, now, plan);
  const auto healthy = std::ranges::count_if(pods, [&](const Object& pod) {
    return !pod.deleting() && !disrupted.contains(pod.name()) && pod_is_ready(pod.json());
  });
  const int64_t spare = wanted->expected <= 0 ? 0 : healthy - wanted->healthy;
  Value next = budget.json();
  Value& status = next.ref("status");
  status.set("currentHealthy", healthy);
  status.set("desiredHealthy", wanted->healthy);
  status.set("expectedPods", wanted->expected);
  status.set("disruptionsAllowed", std::max<int64_t>(spare, 0));
  status.set("observedGeneration", budget.metadata()["generation"]);
  if (disrupted.empty()) {
    status.erase("disruptedPods");
  } else {
    status.set("disruptedPods", disrupted);
  }
  set_disruption_condition(next, now);
  plan.status = next["status"];
  return plan;
}

BudgetController::BudgetController(Cluster& cluster)
    : cluster_(cluster),
      budgets_(cluster.cache("policy", "PodDisruptionBudget")),
      pods_(cluster.cache("", "Pod")),
      queue_(cluster, "poddisruptionbudget",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  budgets_.subscribe([this](const Object&, const Object& after) {
    if (after) queue_.enqueue(after.key());
  });
  pods_.subscribe(
      [this](const Object& before, const Object& after) { pod_changed(before, after); });
  for (Cache* cache : cluster.caches()) {
    const auto& subresources = cache->kind().subresources;
    if (std::ranges::find(subresources, "scale") == subresources.end()) continue;
    cache->subscribe([this](const Object& before, const Object& after) {
      const bool same =
          before && after && before.get("spec", "replicas") == after.get("spec", "replicas");
      if (!same) enqueue_namespace((after ? after : before).ns());
    });
  }
}

void BudgetController::pod_changed(const Object& before, const Object& after) {
  const std::string prefix = std::string((after ? after : before).ns()) + "/";
  const auto& all = budgets_.objects();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    const bool covers = (before && budget_covers(it->second.json(), before.json())) ||
                        (after && budget_covers(it->second.json(), after.json()));
    if (covers) queue_.enqueue(it->first);
  }
}

void BudgetController::enqueue_namespace(std::string_view ns) {
  const std::string prefix = std::string(ns) + "/";
  const auto& all = budgets_.objects();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    queue_.enqueue(it->first);
  }
}

base::Result<OwnerScale> BudgetController::find_scale(const Value& reference, std::string_view ns,
                                                      int depth) const {
  const std::string api_version = reference["apiVersion"].str();
  const size_t slash = api_version.find('/');
  const std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
  Cache* cache = cluster_.find_cache(group, reference["kind"].as_string());
  const std::string name = reference["name"].str();
  if (cache == nullptr) {
    return base::error(base::Code::kNotFound, "no kind {} of {} is known here",
                       reference["kind"].as_string(), api_version);
  }
  const Kind& kind = cache->kind();
  if (std::ranges::find(kind.subresources, "scale") == kind.subresources.end()) {
    return base::error(base::Code::kNotFound, "{} does not implement the scale subresource",
                       resource_name(kind));
  }
  const Object owner = cache->find(std::string(ns) + "/" + name);
  if (!owner || !(reference["uid"] == owner.metadata()["uid"])) {
    return base::error(base::Code::kNotFound, "found no controllers for {} \"{}\"",
                       resource_name(kind), name);
  }
  const Value& above = controller_of(owner);
  if (!above.is_null() && depth < kOwnersMax) {
    if (auto scale = find_scale(above, ns, depth + 1)) return scale;
  }
  return OwnerScale{std::string(owner.uid()), owner.get("spec", "replicas").as_int(1)};
}

void BudgetController::sync(const std::string& key, Done done) {
  const Object budget = budgets_.find(key);
  if (!budget) return done({});
  const auto selector = kube::LabelSelector::from_json(budget.get("spec", "selector"), "");
  const std::string prefix = std::string(budget.ns()) + "/";
  std::vector<Object> pods;
  const auto& all = pods_.objects();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    if (selector && selector->matches(it->second.metadata()["labels"])) pods.push_back(it->second);
  }
  BudgetPlan plan = plan_budget(
      budget, pods,
      [this](const Value& reference, std::string_view ns) { return find_scale(reference, ns); },
      cluster_.now());
  if (pods.empty()) cluster_.events().normal(budget, "NoPods", "No matching pods found");
  if (!plan.failure.empty()) {
    cluster_.events().warning(budget, "CalculateExpectedPodCountFailed",
                              "Failed to calculate the number of expected pods: " + plan.failure);
  }
  if (!plan.unmanaged.empty()) {
    cluster_.events().warning(
        budget, "UnmanagedPods",
        fmt::format("Pods selected by this PodDisruptionBudget have no controller ({} of them): "
                    "set \".spec.minAvailable\" to a whole number to count them",
                    plan.unmanaged.size()));
  }
  if (plan.look_again) queue_.enqueue_after(key, *plan.look_again + base::seconds(1));
  write_status(cluster_, budgets_, budget, std::move(plan.status), std::move(done));
}

}  // namespace tessera::apiserver::controller
