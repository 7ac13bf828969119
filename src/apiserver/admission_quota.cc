#include "apiserver/admission_quota.h"

#include <utility>

#include "apiserver/api_errors.h"
#include "apiserver/quota.h"
#include "apiserver/quota_scopes.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::ResourceList;

constexpr int kAttemptsMax = 10'000;

// What the objects of the quota's namespace use now, counted one by one.
ResourceList count_usage(const Core& core, const Value& quota) {
  const std::string ns = quota["metadata"]["namespace"].str() + "/";
  ResourceList used = zero_quota_usage(quota, *core.options.kinds);
  for (const Kind* kind : core.options.kinds->all()) {
    bool tracked = false;
    for (const auto& [name, amount] : used) tracked = tracked || quota_tracks(*kind, name);
    if (!tracked) continue;
    std::vector<Value> objects;
    for (Store::Found& found : core.store->newest(kind, ns)) {
      objects.push_back(std::move(found.object));
    }
    add_quota_usage(quota, *kind, objects, core.now(), used);
  }
  return used;
}

base::Result<QuotaVerdict> judge(const Core& core, const Call& call, const Value& quota,
                                 const QuotaItem& item, const ResourceList& delta) {
  const std::string_view name = item.object["metadata"]["name"].as_string();
  if (item.pod) {
    const std::string missing = missing_resources(quota["spec"], *item.pod);
    if (!missing.empty()) {
      return base::error(forbidden(
          *call.kind, name,
          fmt::format("failed quota: {}: {}", quota["metadata"]["name"].as_string(), missing)));
    }
  }
  const bool current = quota_status_is_current(quota, *core.options.kinds);
  const ResourceList said =
      current ? resource_list_of(quota["status"]["used"]) : count_usage(core, quota);
  QuotaVerdict verdict = judge_quota(quota, said, delta);
  if (current && !verdict.refusal.empty()) {
    verdict = judge_quota(quota, count_usage(core, quota), delta);
  }
  if (!verdict.refusal.empty()) return base::error(forbidden(*call.kind, name, verdict.refusal));
  return verdict;
}

bool concerns_quotas(const Core& core, const Call& call, const Value& before, const Value& after) {
  if (core.resource_quotas == nullptr || !call.kind->namespaced || after.is_null()) return false;
  return before.is_null() || quota_watches_updates(*call.kind, call.request.subresource);
}

}  // namespace

base::Result<std::vector<Store::Write>> charge_quotas(Core& core, const Call& call,
                                                      const Value& before, const Value& after) {
  std::vector<Store::Write> out;
  if (!concerns_quotas(core, call, before, after)) return out;
  const Kind* quotas = core.resource_quotas;
  const auto found = core.store->newest(quotas, call.request.ns + "/");
  if (found.empty()) return out;
  const QuotaItem item(*call.kind, after, core.now());
  std::optional<QuotaItem> old;
  if (!before.is_null()) old.emplace(*call.kind, before, core.now());
  const ResourceList delta = quota_delta(item, old ? &*old : nullptr);
  if (delta.empty()) return out;
  for (const Store::Found& each : found) {
    if (!quota_counts(each.object, item)) continue;
    TS_TRY(const QuotaVerdict verdict, judge(core, call, each.object, item, delta));
    if (!verdict.changes) continue;
    Value raised = each.object;
    raised.set("status", quota_status(each.object, verdict.used));
    out.push_back({quotas, store_key(*quotas, raised), each.revision, std::move(raised), {}});
  }
  return out;
}

base::Result<Store::Outcome> commit_within_quotas(Core& core, const Call& call, const Value& before,
                                                  Store::Write& write) {
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    TS_TRY(std::vector<Store::Write> writes, charge_quotas(core, call, before, write.object));
    if (writes.empty()) return core.store->commit(write);
    writes.push_back(std::move(write));
    const Store::Outcome outcome = core.store->commit(writes);
    if (outcome == Store::Outcome::kAccepted) return outcome;
    write = std::move(writes.back());
    const bool new_name = before.is_null() && !core.store->latest(write.kind, write.key);
    if (outcome == Store::Outcome::kClosed || !new_name) return outcome;
  }
  return base::error(base::Code::kConflict,
                     "the quotas of namespace {} changed under {} attempts: try again",
                     call.request.ns, kAttemptsMax);
}

}  // namespace tessera::apiserver
