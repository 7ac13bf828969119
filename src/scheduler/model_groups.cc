// Groups, queues and disruption budgets of a Model.

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "scheduler/group_reading.h"
#include "scheduler/model.h"
#include "scheduler/model_reading.h"
#include "scheduler/queue_status.h"
#include "scheduler/reservation_objects.h"

namespace tessera::scheduler {
namespace {

using kube::Object;
using queueing::BudgetId;

constexpr std::string_view kForeignQueue = "*";  // no queue can be named so
constexpr std::string_view kDefaultQueue = "default";
constexpr BudgetId kNever(0);

uint64_t hash_of(std::string_view text) {
  return std::hash<std::string_view>{}(text);
}

bool is_queue(std::string_view group, std::string_view kind) {
  return kind == "Queue" && (group == "tessera.dev" || group == "scheduling.volcano.sh" ||
                             group == "scheduling.run.ai");
}

// Of two queues of one name: ours, then Volcano's, then KAI's.
int rank_of(std::string_view key) {
  if (key.starts_with("tessera.dev/")) return 0;
  return key.starts_with("scheduling.volcano.sh/") ? 1 : 2;
}

// Only what controllers write has changed.
bool same_wish(const Object& a, const Object& b) {
  return a && b && a["spec"] == b["spec"] && a["value"] == b["value"] &&
         a.metadata()["labels"] == b.metadata()["labels"] &&
         a.metadata()["annotations"] == b.metadata()["annotations"] &&
         a.metadata()["ownerReferences"] == b.metadata()["ownerReferences"] && a.uid() == b.uid();
}

// The first thing that a pod says of its group otherwise than the pod whose reading counts; empty where they agree.
std::string difference(const Group& counts, const Object& first, const Group& other,
                       const Object& pod) {
  const auto text = [&](std::string_view what, const auto& here, const auto& there) {
    return fmt::format(
        "the {} of pod {} is {}, that of pod {} is {}: the first counts; make them agree", what,
        first.name(), here, pod.name(), there);
  };
  const queueing::GangSpec& a = counts.spec;
  const queueing::GangSpec& b = other.spec;
  if (a.queue != b.queue) return text("queue", a.queue, b.queue);
  if (a.priority != b.priority) return text("priority", a.priority, b.priority);
  if (a.min_members != b.min_members) return text("minimum", a.min_members, b.min_members);
  return {};
}

queueing::QueueSpec default_queue() {
  queueing::QueueSpec spec;
  spec.name = kDefaultQueue;
  spec.reclaimable = false;
  return spec;
}

}  // namespace

Object Model::object(std::string_view group, std::string_view kind, std::string_view ns,
                     std::string_view name) const {
  const auto found = objects_.find(object_key(group, kind, ns, name));
  return found == objects_.end() ? Object() : found->second;
}

GroupSources Model::sources(std::vector<uint64_t>* asked) const {
  GroupSources out;
  out.object = [this, asked](std::string_view group, std::string_view kind, std::string_view ns,
                             std::string_view name) {
    const std::string key = object_key(group, kind, ns, name);
    if (asked) asked->push_back(hash_of(key));
    const auto found = objects_.find(key);
    return found == objects_.end() ? Object() : found->second;
  };
  out.ns = [this](std::string_view name) { return object("", "Namespace", "", name); };
  out.priority_class = [this](std::string_view name) -> std::optional<int32_t> {
    for (const auto& [group, kind] : {std::pair("scheduling.k8s.io", "PriorityClass"),
                                      std::pair("kueue.x-k8s.io", "WorkloadPriorityClass")}) {
      const Object found = object(group, kind, "", name);
      if (found) return static_cast<int32_t>(found["value"].as_int(0));
    }
    return std::nullopt;
  };
  out.queue_exists = [this](std::string_view name) {
    return std::ranges::any_of(
        queues_, [&](const auto& item) { return item.second.reading.spec.name == name; });
  };
  return out;
}

void Model::read_group_of(int32_t slot, base::Time now) {
  to_read_.erase(slot);
  PodEntry& pod = entry(slot);
  if (pod.foreign) {
    Group alone;
    alone.key = fmt::format("foreign/{}/{}", pod.object.key(), pod.uid);
    alone.spec.name = pod.object.key();
    alone.spec.queue = kForeignQueue;
    alone.spec.preemptible = alone.spec.preempts = false;
    return join(slot, std::move(alone), now);
  }
  std::vector<uint64_t> asked;
  Group reading = read_group(pod.object, sources(&asked));
  if (never_a_victim(pod.object)) reading.spec.preemptible = false;
  std::ranges::sort(asked);
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  reads(slot, std::move(asked));
  join(slot, std::move(reading), now);
}

// The group of this pod is read from these objects, and no others.
void Model::reads(int32_t slot, std::vector<uint64_t> objects) {
  std::vector<uint64_t>& before = asked_of_[static_cast<size_t>(slot)];
  if (before == objects) return;
  for (const uint64_t object : before) {
    const auto readers = readers_.find(object);
    if (readers == readers_.end()) continue;
    readers->second.erase(slot);
    if (readers->second.empty()) readers_.erase(readers);
  }
  for (const uint64_t object : objects) readers_[object].insert(slot);
  before = std::move(objects);
}

void Model::join(int32_t slot, Group reading, base::Time now) {
  PodEntry& pod = entry(slot);
  // One that is leaving holds its place, and others wait for it, until it has gone: no other group changes that.
  const bool leaving =
      pod.member.valid() && engine_.member(pod.member).state == queueing::MemberState::kLeaving;
  if (leaving && (pod.group != reading.key || pod.subgroup != reading.subgroup)) return;
  if (pod.group != reading.key) {
    const bool sat = pod.member.valid() && !pod.node.empty();
    if (pod.member.valid() && !pod.assumed) drop_member(pod, now);
    if (pod.assumed) return;  // once its bind is settled
    leave(slot, now);
    pod.group = reading.key;
    pod.subgroup = reading.subgroup;
    auto [at, made] = groups_.try_emplace(reading.key);
    GroupEntry& group = at->second;
    group.pods.emplace(pod.arrival, slot);
    if (!pod.finished) ++group.live;
    if (made) {
      group.reading = std::move(reading);
      group.gang = engine_.add_gang(gang_spec(group));
    } else {
      compare(group, slot, reading);
      if (group.pods.begin()->second == slot) group.reading = std::move(reading);
    }
    to_refresh_.insert(pod.group);
    if (sat) see_bound(slot, now);
    return;
  }
  GroupEntry& group = groups_.find(pod.group)->second;
  const bool moved = pod.subgroup != reading.subgroup;
  pod.subgroup = reading.subgroup;
  compare(group, slot, reading);
  if (group.pods.begin()->second == slot) {
    group.reading = std::move(reading);
    to_refresh_.insert(pod.group);
  }
  if (!moved || !pod.member.valid() || pod.assumed) return;
  const bool sat = !pod.node.empty();
  drop_member(pod, now);
  if (sat) see_bound(slot, now);
}

void Model::compare(GroupEntry& group, int32_t slot, const Group& reading) {
  const int32_t first = group.pods.begin()->second;
  if (slot == first || slot == group.differs_slot) {
    group.differs.clear();
    group.differs_slot = -1;
  }
  if (slot == first || group.differs_slot >= 0) return;
  group.differs = difference(group.reading, pod_at(first).object, reading, pod_at(slot).object);
  if (!group.differs.empty()) group.differs_slot = slot;
}

void Model::leave(int32_t slot, base::Time now) {
  PodEntry& pod = entry(slot);
  const auto found = groups_.find(pod.group);
  if (found == groups_.end()) return;
  GroupEntry& group = found->second;
  group.pods.erase({pod.arrival, slot});
  if (!pod.finished) --group.live;
  if (group.differs_slot == slot) group.differs_slot = -1;
  if (group.differs_slot < 0) group.differs.clear();
  touched_.insert(pod.group);
  if (group.pods.empty()) {
    engine_.remove_gang(group.gang, now);
    groups_.erase(found);
  } else {
    to_refresh_.insert(pod.group);
    to_read_.insert(group.pods.begin()->second);  // whose reading counts now
  }
  pod.group.clear();
}

queueing::GangSpec Model::gang_spec(const GroupEntry& group) const {
  queueing::GangSpec spec = group.reading.spec;
  spec.hold = group.reading.waits;
  if (!spec.runtime) spec.estimate = estimate_for(group);
  const ObjectName& name = group.reading.object;
  const Object job = name.kind == "Job" && group_of(name.api_version) == "batch"
                         ? object("batch", "Job", name.ns, name.name)
                         : Object();
  int32_t succeeded = 0;
  for (const int32_t count : group.succeeded) succeeded += count;
  spec.min_members = minimum_left(spec.min_members, succeeded, job);
  for (size_t s = 0; s < spec.subgroup_mins.size() && s < group.succeeded.size(); ++s)
    spec.subgroup_mins[s] = std::max(0, spec.subgroup_mins[s] - group.succeeded[s]);
  return spec;
}

// One that runs keeps what was expected of it at its start.
std::optional<base::Duration> Model::estimate_for(const GroupEntry& group) const {
  if (group.pods.empty() || runs_.size() == 0 || !options_.engine.estimates) return std::nullopt;
  if (group.gang.valid()) {
    const queueing::Gang& gang = engine_.gang(group.gang);
    if (gang.placed > 0 && gang.spec.estimate) return gang.spec.estimate;
  }
  const PodEntry& first = pod_at(group.pods.begin()->second);
  return runs_.estimate(run_keys(first.object, group.reading.spec.queue));
}

void Model::refresh_group(GroupEntry& group) {
  queueing::GangSpec spec = gang_spec(group);
  if (!(spec == engine_.gang(group.gang).spec)) engine_.update_gang(group.gang, std::move(spec));
}

bool Model::on_object(const Object& before, const Object& after, base::Time now) {
  const Object& object = after ? after : before;
  const std::string_view group = group_of(object.api_version());
  const std::string_view kind = object.kind();
  const std::string key = object_key(object);
  if (kind == "PodDisruptionBudget")
    return on_budget(after, std::string(object.ns()), std::string(object.name()));
  if (group == "tessera.dev" && kind == "Reservation") {
    const std::string name(object.name());
    const auto known = reservations_.find(name);
    const bool same = known != reservations_.end() && same_wish(known->second, after);
    if (after) reservations_[name] = after;
    if (!after && known != reservations_.end()) reservations_.erase(known);
    reservations_changed_ |= !same;
    return !same;
  }
  if (is_queue(group, kind)) {
    if (after && same_wish(queues_[key].object, after)) {
      queues_[key].object = after;
      return false;
    }
    if (!after) queues_.erase(key);
    if (after) queues_[key].object = after;
    queues_changed_ = true;
    (void)now;
    return true;
  }
  if (kind == "PodGroup") touched_.insert(pod_group_key(object));
  const auto known = objects_.find(key);
  const bool same = known != objects_.end() && same_wish(known->second, after);
  if (after) objects_[key] = after;
  if (!after && known != objects_.end()) objects_.erase(known);
  if (kind == "Namespace" || kind.ends_with("PriorityClass")) {
    if (same) return false;
    for (const auto& [pod_key, slot] : by_key_) {
      if (kind != "Namespace" || pod_at(slot).object.ns() == object.name()) to_read_.insert(slot);
    }
    return !to_read_.empty();
  }
  const auto readers = readers_.find(hash_of(key));
  if (readers == readers_.end()) return false;
  for (const int32_t slot : readers->second) {
    if (same) {
      to_refresh_.insert(pod_at(slot).group);
    } else {
      to_read_.insert(slot);
    }
  }
  return true;
}

void Model::refresh(base::Time now) {
  if (std::exchange(rules_changed_, false)) refresh_rules(now);
  reservations_changed_ |= queues_changed_ && !reservations_.empty();
  if (std::exchange(queues_changed_, false)) refresh_queues(now);
  if (std::exchange(reservations_changed_, false)) refresh_reservations();
  // Reading may touch groups that others then read anew.
  while (!to_read_.empty()) {
    const std::set<int32_t> slots = std::exchange(to_read_, {});
    for (const int32_t slot : slots) {
      PodEntry& pod = entry(slot);
      if (!pod.object) continue;
      read_group_of(slot, now);
      if (!pod.finished && pod.node.empty() && !pod.assumed) see_waiting(slot, now);
      if (!pod.finished && !pod.node.empty() && !pod.member.valid()) see_bound(slot, now);
      to_read_.erase(slot);
    }
  }
  for (const std::string& key : std::exchange(to_refresh_, {})) {
    const auto group = groups_.find(key);
    if (group != groups_.end()) refresh_group(group->second);
    touched_.insert(key);
  }
}

void Model::refresh_queues(base::Time now) {
  std::vector<std::pair<int, queueing::QueueSpec>> found;
  std::set<std::string> names_before;
  std::set<std::string> names;
  for (auto& [key, queue] : queues_) {
    names_before.insert(queue.reading.spec.name);
    queue.reading = {};
    auto reading = read_queue_object(queue.object, engine_.dims(), rules_);
    if (!reading) continue;
    queue.reading = std::move(*reading);
    queue.reading.spec.problem = queue.reading.problem;
    names.insert(queue.reading.spec.name);
    found.emplace_back(rank_of(key), queue.reading.spec);
  }
  std::ranges::stable_sort(found, {}, [](const auto& item) { return item.first; });
  std::vector<queueing::QueueSpec> specs;
  std::set<std::string> taken;
  for (auto& [rank, spec] : found) {
    if (taken.insert(spec.name).second) specs.push_back(std::move(spec));
  }
  if (taken.insert(std::string(kDefaultQueue)).second) specs.push_back(default_queue());
  engine_.set_queues(std::move(specs), now);
  ++queues_read_;
  // Whether they may enter their queue is told of groups that have no pods yet.
  each_object("scheduling.volcano.sh", "PodGroup",
              [&](const Object& group) { touched_.insert(pod_group_key(group)); });
  restore_history(now);
  if (names == names_before) return;
  for (const auto& [key, slot] : by_key_)
    to_read_.insert(slot);  // Kueue's names may mean others now
}

// Only what was written before this model came counts: after that it knows better.
void Model::restore_history(base::Time now) {
  for (const auto& [key, queue] : queues_) {
    if (rank_of(key) != 0 || !remembered_.insert(queue.reading.spec.name).second) continue;
    const auto past = past_use(queue.object);
    const queueing::QueueId id = engine_.queues().find(queue.reading.spec.name);
    if (past && id.valid()) engine_.restore_history(id, past->unit_seconds, past->at, now);
  }
}

void Model::refresh_reservations() {
  std::vector<queueing::ReservationSpec> specs;
  for (const auto& [name, object] : reservations_) {
    if (auto spec = read_reservation(object, engine_.dims(), rules_))
      specs.push_back(std::move(*spec));
  }
  engine_.set_reservations(std::move(specs));
}

void Model::refresh_rules(base::Time now) {
  ShareRules rules;
  rules.replicas_per_gpu = 0;
  for (const auto& [id, node] : nodes_) {
    if (node.view.replicas_per_gpu > 0 &&
        (rules.replicas_per_gpu == 0 || node.view.replicas_per_gpu < rules.replicas_per_gpu))
      rules.replicas_per_gpu = node.view.replicas_per_gpu;
    const int64_t memory = node.view.spec.gpu_memory_mib;
    if (memory > 0 && (rules.gpu_memory_mib == 0 || memory < rules.gpu_memory_mib))
      rules.gpu_memory_mib = memory;
  }
  rules.replicas_per_gpu = std::max<int64_t>(rules.replicas_per_gpu, 1);
  if (rules.replicas_per_gpu == rules_.replicas_per_gpu &&
      rules.gpu_memory_mib == rules_.gpu_memory_mib)
    return;
  rules_ = rules;
  queues_changed_ = true;
  for (const auto& [key, slot] : by_key_) {
    const PodEntry& pod = pod_at(slot);
    if (pod.member.valid() && pod.node.empty() && !pod.assumed) seat(slot, now);
  }
}

bool Model::on_budget(const Object& after, const std::string& ns, const std::string& name) {
  std::map<std::string, Budget>& here = budgets_[ns];
  const auto known = here.find(name);
  if (!after) {
    if (known == here.end()) return false;
    engine_.set_budget(known->second.id, 0);
    here.erase(known);
    rebudget(ns);
    return true;
  }
  auto selector = kube::LabelSelector::from_json(after["spec"]["selector"], "spec.selector");
  if (!selector) {
    base::log_warn("disruption budget covers nobody name={}/{} reason=\"{}\"", ns, name,
                   selector.error().message);
    selector = kube::LabelSelector::nothing();
  }
  const bool made = known == here.end();
  Budget& budget = here[name];
  if (made) budget.id = BudgetId(budgets_made_++);
  const int64_t allowed = std::max<int64_t>(after.get("status", "disruptionsAllowed").as_int(0), 0);
  const bool more = allowed > budget.allowed;
  budget.allowed = budget.told = allowed;
  engine_.set_budget(budget.id, allowed);
  if (!made && budget.selector == *selector) return more;
  budget.selector = std::move(*selector);
  rebudget(ns);
  return true;
}

void Model::rebudget(const std::string& ns) {
  for (const auto& [key, slot] : by_key_) {
    PodEntry& pod = entry(slot);
    if (pod.object.ns() == ns && pod.member.valid() && pod.request)
      engine_.update_member(pod.member, member_spec(pod));
  }
}

std::vector<BudgetId> Model::budgets_of(const PodEntry& pod) const {
  std::vector<BudgetId> out;
  if (pod.no_victim) out.push_back(kNever);
  each_budget(*this, pod, [&](const Budget& budget) { out.push_back(budget.id); });
  // The Eviction API refuses a pod that two budgets cover.
  if (out.size() > 1) out = {kNever};
  return out;
}

// Nothing came of what had been decided.
void Model::restore_budgets(const PodEntry& pod) {
  each_budget(*this, pod, [&](Budget& budget) {
    budget.allowed = budget.told;
    engine_.set_budget(budget.id, budget.allowed);
  });
}

// What has been decided counts before the API says so.
void Model::spend_budgets(const PodEntry& pod) {
  each_budget(*this, pod, [&](Budget& budget) {
    budget.allowed = std::max<int64_t>(budget.allowed - 1, 0);
    engine_.set_budget(budget.id, budget.allowed);
  });
}

}  // namespace tessera::scheduler
