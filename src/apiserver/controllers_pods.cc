#include "apiserver/controllers_pods.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "kube/pod_phase.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

const Value& controller_of(const Object& object) {
  static const Value kNone;
  for (const Value& owner : object.metadata()["ownerReferences"].items()) {
    if (owner["controller"].as_bool()) return owner;
  }
  return kNone;
}

Value controller_reference(const Object& owner, const Kind& kind) {
  return Value::object({{"apiVersion", kind.api_version()},
                        {"kind", kind.kind},
                        {"name", owner.name()},
                        {"uid", owner.uid()},
                        {"controller", true},
                        {"blockOwnerDeletion", true}});
}

bool is_finished(const Object& pod) {
  return kube::has_ended(pod);
}

bool is_active(const Object& pod) {
  return !is_finished(pod) && !pod.deleting();
}

const Value& condition_of(const Value& status, std::string_view type) {
  static const Value kNone;
  for (const Value& condition : status["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return kNone;
}

bool is_ready(const Object& pod) {
  return condition_of(pod["status"], "Ready")["status"].as_string() == "True";
}

std::optional<base::Time> ready_since(const Object& pod) {
  const Value& ready = condition_of(pod["status"], "Ready");
  if (ready["status"].as_string() != "True") return std::nullopt;
  const auto time = base::parse_rfc3339(ready["lastTransitionTime"].as_string());
  return time ? *time : base::Time{};
}

bool is_available(const Object& pod, int32_t min_ready_seconds, base::Time now) {
  const auto since = ready_since(pod);
  return since && (min_ready_seconds == 0 || *since + base::seconds(min_ready_seconds) <= now);
}

bool has_finalizer(const Object& object, std::string_view finalizer) {
  return std::ranges::any_of(object.metadata()["finalizers"].items(),
                             [&](const Value& item) { return item.as_string() == finalizer; });
}

void set_condition(Value& status, Value condition, base::Time now) {
  Value& conditions = status.ref("conditions");
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Value& old = conditions.at(i);
    if (old["type"].as_string() != condition["type"].as_string()) continue;
    const bool same = old["status"] == condition["status"];
    condition.set("lastTransitionTime",
                  same ? old["lastTransitionTime"] : Value(base::to_rfc3339(now)));
    conditions.ref_at(i) = std::move(condition);
    return;
  }
  condition.set("lastTransitionTime", base::to_rfc3339(now));
  conditions.push_back(std::move(condition));
}

Value without_condition(const Value& status, std::string_view type) {
  Value out = status;
  Value kept = Value::array();
  for (const Value& condition : status["conditions"].items()) {
    if (condition["type"].as_string() != type) kept.push_back(condition);
  }
  if (kept.empty()) {
    out.erase("conditions");
  } else {
    out.set("conditions", std::move(kept));
  }
  return out;
}

namespace {

int phase_rank(const Object& pod) {
  const std::string_view phase = pod.get("status", "phase").as_string();
  return phase == "Running" ? 2 : phase == "Unknown" ? 1 : 0;
}

int64_t deletion_cost(const Object& pod) {
  const std::string_view text = pod.annotation("controller.kubernetes.io/pod-deletion-cost");
  int64_t cost = 0;
  std::from_chars(text.data(), text.data() + text.size(), cost);
  return cost;
}

int64_t restarts(const Object& pod) {
  int64_t most = 0;
  for (const Value& container : pod.get("status", "containerStatuses").items()) {
    most = std::max(most, container["restartCount"].as_int());
  }
  return most;
}

int64_t created_ns(const Object& pod) {
  const auto time = base::parse_rfc3339(pod.metadata()["creationTimestamp"].as_string());
  return time ? time->ns : 0;
}

}  // namespace

void sort_for_deletion(std::vector<Object>& pods) {
  std::unordered_map<std::string, int> on_node;
  for (const Object& pod : pods) ++on_node[pod.get("spec", "nodeName").str()];
  using Rank = std::tuple<bool, int, bool, int64_t, int, int64_t, int64_t, int64_t, std::string>;
  std::vector<std::pair<Rank, Object>> ranked;
  for (const Object& pod : pods) {
    const std::string node = pod.get("spec", "nodeName").str();
    const auto since = ready_since(pod);
    ranked.emplace_back(
        Rank{!node.empty(), phase_rank(pod), since.has_value(), deletion_cost(pod), -on_node[node],
             since ? -since->ns : 0, -restarts(pod), -created_ns(pod), std::string(pod.name())},
        pod);
  }
  std::ranges::sort(ranked, {}, [](const auto& each) -> const Rank& { return each.first; });
  for (size_t i = 0; i < pods.size(); ++i) pods[i] = ranked[i].second;
}

std::string generated_name(std::string_view base, base::Random& random) {
  constexpr size_t kNameMax = 63;
  constexpr int kSuffix = 5;
  return std::string(base.substr(0, kNameMax - kSuffix - 1)) + "-" + random.suffix(kSuffix);
}

Value pod_from_template(const Value& pod_template, const Object& owner, const Kind& owner_kind,
                        base::Random& random) {
  return pod_of_template(pod_template, owner, owner_kind, generated_name(owner.name(), random));
}

Value pod_of_template(const Value& pod_template, const Object& owner, const Kind& owner_kind,
                      std::string_view name) {
  Value pod = Value::object({{"apiVersion", "v1"}, {"kind", "Pod"}});
  Value meta = Value::object();
  for (const char* field : {"labels", "annotations", "finalizers"}) {
    const Value& value = pod_template["metadata"][field];
    if (!value.is_null()) meta.set(field, value);
  }
  meta.set("name", name);
  meta.set("generateName", std::string(owner.name()) + "-");
  meta.set("namespace", owner.ns());
  meta.set("ownerReferences", Value::array({controller_reference(owner, owner_kind)}));
  pod.set("metadata", std::move(meta));
  pod.set("spec", pod_template["spec"]);
  return pod;
}

OwnerIndex::OwnerIndex(Cache& pods) : pods_(pods) {
  pods.subscribe([this](const Object& before, const Object& after) {
    if (before) change(before, false);
    if (after) change(after, true);
  });
}

void OwnerIndex::change(const Object& pod, bool add) {
  const std::string key = pod.key();
  const auto put = [&](Groups& groups, std::string_view group) {
    if (add) {
      groups[std::string(group)].insert(key);
      return;
    }
    const auto it = groups.find(std::string(group));
    if (it == groups.end()) return;
    it->second.erase(key);
    if (it->second.empty()) groups.erase(it);
  };
  const Value& owner = controller_of(pod);
  if (owner.is_null()) {
    put(orphans_, pod.ns());
  } else {
    put(by_owner_, owner["uid"].as_string());
  }
  const Value& node = pod.get("spec", "nodeName");
  if (!node.as_string().empty()) put(by_node_, node.as_string());
}

std::vector<Object> OwnerIndex::resolve(const Groups& groups, std::string_view name) const {
  std::vector<Object> out;
  const auto it = groups.find(std::string(name));
  if (it == groups.end()) return out;
  out.reserve(it->second.size());
  for (const std::string& key : it->second) out.push_back(pods_.find(key));
  return out;
}

std::vector<Object> OwnerIndex::of_owner(std::string_view uid) const {
  return resolve(by_owner_, uid);
}
std::vector<Object> OwnerIndex::orphans(std::string_view ns) const {
  return resolve(orphans_, ns);
}
std::vector<Object> OwnerIndex::on_node(std::string_view node) const {
  return resolve(by_node_, node);
}

}  // namespace tessera::apiserver::controller
