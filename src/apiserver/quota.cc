#include "apiserver/quota.h"

#include <algorithm>
#include <utility>

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::Quantity;
using kube::ResourceList;

// "cpu=2,pods=1".
std::string listed(const ResourceList& list, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ',';
    out += name + '=' + amount_of(list, name).to_string();
  }
  return out;
}

}  // namespace

ResourceList quota_delta(const QuotaItem& item, const QuotaItem* before) {
  ResourceList delta = item.usage;
  if (before != nullptr) {
    for (const auto& [name, amount] : before->usage) delta[name] -= amount;
  }
  std::erase_if(delta, [](const auto& entry) { return entry.second.is_zero(); });
  return delta;
}

QuotaVerdict judge_quota(const Value& quota, const ResourceList& used, const ResourceList& delta) {
  const ResourceList hard = resource_list_of(quota["spec"]["hard"]);
  QuotaVerdict verdict{{}, used, false};
  std::vector<std::string> exceeded;
  for (const auto& [name, amount] : delta) {
    const auto limit = hard.find(name);
    if (limit == hard.end()) continue;
    Quantity& now = verdict.used[name];
    now += amount;
    verdict.changes = true;
    if (amount.sign() > 0 && now > limit->second) exceeded.push_back(name);
  }
  if (exceeded.empty()) return verdict;
  verdict.refusal = fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}",
                                quota["metadata"]["name"].as_string(), listed(delta, exceeded),
                                listed(used, exceeded), listed(hard, exceeded));
  return verdict;
}

bool quota_status_is_current(const Value& quota, const Kinds& kinds) {
  if (!(quota["status"]["hard"] == quota["spec"]["hard"])) return false;
  const ResourceList tracked = zero_quota_usage(quota, kinds);
  return std::ranges::all_of(
      tracked, [&](const auto& entry) { return quota["status"]["used"].contains(entry.first); });
}

Value quota_status(const Value& quota, const ResourceList& used) {
  Value status = quota["status"];
  status.set("hard", quota["spec"]["hard"].is_object() ? quota["spec"]["hard"] : Value::object());
  status.set("used", resource_list_json(used));
  return status;
}

}  // namespace tessera::apiserver
