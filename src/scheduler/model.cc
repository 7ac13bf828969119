#include "scheduler/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "kube/pod_phase.h"
#include "kube/volumes.h"
#include "scheduler/group_reading.h"
#include "scheduler/model_reading.h"
#include "scheduler/verdict.h"

namespace tessera::scheduler {
namespace {

using kube::Object;
using queueing::MemberId;
using queueing::MemberState;

bool same_annotations(const Object& a, const Object& b) {
  const json::Value& before = a.metadata()["annotations"];
  const json::Value& after = b.metadata()["annotations"];
  if (before == after) return true;
  // Ours say something to people and to the node, and ask for nothing.
  const auto asks = [](const json::Value& all) {
    json::Value out = all.is_object() ? all : json::Value::object();
    out.erase(kVerdictAnnotation);
    for (const std::string_view written : kPlacementAnnotations) out.erase(written);
    return out;
  };
  return asks(before) == asks(after);
}

// The specs are equal, or differ in the node alone: that the pod has been bound is no other wish.
bool same_spec(const json::Value& a, const json::Value& b) {
  if (a == b) return true;
  size_t equal = 0;
  for (const json::Member& member : a.members()) {
    if (member.name() == "nodeName") continue;
    if (!(member.value == b[member.name()])) return false;
    ++equal;
  }
  return equal == b.size() - (b.contains("nodeName") ? 1 : 0);
}

// What a placement depends on is unchanged.
bool same_ask(const Object& a, const Object& b) {
  return same_spec(a["spec"], b["spec"]) && a.metadata()["labels"] == b.metadata()["labels"] &&
         same_annotations(a, b);
}

// But for its volumes, which are not read from the pod itself.
bool same_request(const core::PodRequest& a, core::PodRequest b) {
  b.shape.volumes = a.shape.volumes;
  return a.shape == b.shape && a.pod_namespace == b.pod_namespace && a.labels == b.labels &&
         a.affinity == b.affinity && a.anti_affinity == b.anti_affinity && a.spread == b.spread &&
         a.priority == b.priority;
}

std::string_view node_of(const Object& pod) {
  return pod.get("spec", "nodeName").as_string();
}

bool gated(const Object& pod) {
  return !pod.get("spec", "schedulingGates").empty();
}

}  // namespace

Model::Model(ModelOptions options) : options_(std::move(options)), engine_(options_.engine) {
  if (!options_.mix) return;
  options_.engine.scheduler.mix = options_.mix(engine_.cluster().names());
  engine_.set_options(options_.engine);
}

void Model::set_options(queueing::EngineOptions options) {
  options.scheduler.mix = options_.engine.scheduler.mix;
  options.scheduler.seed = options_.engine.scheduler.seed;
  options_.engine = options;
  engine_.set_options(std::move(options));
}

bool Model::in_shard(const Object& object) const {
  return options_.shard_key.empty() || object.label(options_.shard_key) == options_.shard_value;
}

bool Model::ours(const Object& pod) const {
  const std::string_view name = pod.get("spec", "schedulerName").as_string();
  return std::ranges::find(options_.names, name) != options_.names.end() && in_shard(pod);
}

std::string_view Model::node_name(core::NodeId id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? std::string_view() : found->second.name;
}

bool Model::on_node(const Object& after, std::string_view node_name, base::Time now) {
  const std::string name(node_name);
  const auto known = by_name_.find(name);
  if (!after || !in_shard(after)) {
    if (known == by_name_.end()) return false;
    engine_.cluster().remove_node(known->second);
    nodes_.erase(known->second);
    by_name_.erase(known);
    for (size_t slot = 0; slot < pods_.size(); ++slot) {
      if (pods_[slot].node == name && !pods_[slot].finished)
        unseated_[name].insert(static_cast<int32_t>(slot));
    }
    rules_changed_ = true;
    return false;
  }
  auto node = kube::decode_node(after);
  if (!node) {
    base::log_warn("node skipped name={} reason=\"{}\"", name, node.error().message);
    return false;
  }
  NodeView view = translate_node(*node, engine_.cluster().names());
  if (known == by_name_.end()) {
    const core::NodeId id = engine_.cluster().add_node(view.spec);
    by_name_.emplace(name, id);
    nodes_[id] = {std::move(view), name};
    reseat_on(name, now);
    rules_changed_ = true;
    return true;
  }
  Node& old = nodes_.at(known->second);
  const bool changed = !(old.view.spec == view.spec);
  if (changed) engine_.cluster().update_node(known->second, view.spec);
  old.view = std::move(view);
  rules_changed_ |= changed;
  return changed;
}

// Pods that were seen bound before their node was, or before it came back.
void Model::reseat_on(const std::string& node, base::Time now) {
  const auto found = unseated_.find(node);
  if (found == unseated_.end()) return;
  const std::set<int32_t> slots = std::move(found->second);
  unseated_.erase(found);
  for (int32_t slot : slots) {
    if (!entry(slot).finished && entry(slot).node == node) see_bound(slot, now);
  }
}

int32_t Model::slot_of(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? -1 : found->second;
}

int32_t Model::make_slot(const std::string& key) {
  int32_t slot = static_cast<int32_t>(pods_.size());
  if (pods_free_.empty()) {
    pods_.emplace_back();
    asked_of_.emplace_back();
  } else {
    slot = pods_free_.back();
    pods_free_.pop_back();
  }
  entry(slot).arrival = ++arrivals_;
  by_key_.emplace(key, slot);
  return slot;
}

const PodEntry* Model::find(const std::string& key) const {
  const int32_t slot = slot_of(key);
  return slot < 0 ? nullptr : &pod_at(slot);
}

const GroupEntry* Model::group_with(const PodEntry& pod) const {
  const auto found = groups_.find(pod.group);
  return found == groups_.end() ? nullptr : &found->second;
}

size_t Model::waiting() const {
  return static_cast<size_t>(std::ranges::count_if(pods_, [](const PodEntry& pod) {
    return pod.object && !pod.finished && pod.node.empty() && !pod.assumed &&
           !pod.object.deleting() && !gated(pod.object);
  }));
}

bool Model::on_pod(const std::string& key, const Object& after, base::Time now) {
  int32_t slot = slot_of(key);
  bool room = false;
  if (slot >= 0 && (!after || entry(slot).uid != after.uid())) {
    room = forget(slot, now);
    slot = -1;
  }
  if (!after) return room;
  const bool mine = ours(after);
  if (!mine && (node_of(after).empty() || kube::has_ended(after)))
    return (slot >= 0 && forget(slot, now)) || room;
  const bool added = slot < 0;
  if (added) slot = make_slot(key);
  PodEntry& pod = entry(slot);
  if (pod.finished) return room;
  const bool news =
      added || !same_ask(pod.object, after) ||
      !(pod.object.metadata()["ownerReferences"] == after.metadata()["ownerReferences"]);
  const bool annotated =
      added || !(pod.object.metadata()["annotations"] == after.metadata()["annotations"]);
  pod.object = after;
  pod.uid = after.uid();
  pod.foreign = !mine;
  if (news) read_request(pod);
  if (news) read_group_of(slot, now);
  touched_.insert(entry(slot).group);
  if (kube::has_ended(after)) return finish(slot, now) || room;
  if (node_of(after).empty()) return see_waiting(slot, now) || room;
  // Only the first sight of a binding, and changed annotations, change what is charged.
  if (pod.node != node_of(after) || annotated) room |= see_bound(slot, now);
  if (after.deleting() && entry(slot).member.valid()) engine_.set_going(entry(slot).member);
  return room;
}

void Model::settle_found(base::Time now) {
  refresh(now);
  engine_.settle_found(now);
  for (const auto& [key, group] : groups_) touched_.insert(key);
  for (const auto& [key, object] : objects_) {
    if (object.kind() == "PodGroup") touched_.insert(pod_group_key(object));
  }
}

void Model::take_back(base::Time now) {
  engine_.drop_claims(now);
  for (PodEntry& pod : pods_) {
    if (std::exchange(pod.leaving, false) && pod.member.valid()) engine_.stays(pod.member, now);
  }
}

void Model::look_on(base::Time now) {
  refresh(now);
  engine_.look_on(now);
  touched_.clear();
}

// A placed pod keeps the request that it was charged with.
void Model::read_request(PodEntry& pod) {
  const bool placed = pod.assumed || (pod.member.valid() && !pod.node.empty());
  if (placed) return;
  const auto decoded = kube::decode_pod(pod.object);
  const auto before = std::exchange(pod.request, nullptr);
  pod.problem = decoded ? std::string() : decoded.error().message;
  if (!decoded) return;
  core::Interner& names = engine_.cluster().names();
  if (!decoded->node_name.empty()) {
    pod.request = std::make_shared<const core::PodRequest>(translate_bound_pod(*decoded, names));
    return;
  }
  auto request = translate_pod(*decoded, names);
  if (!request) {
    pod.problem = request.error().message;
  } else if (before && same_request(*before, *request)) {
    pod.request = before;  // a place that is kept for it stays its own
  } else {
    pod.request = std::make_shared<const core::PodRequest>(std::move(*request));
  }
}

void Model::drop_member(PodEntry& pod, base::Time now) {
  if (pod.assumed) --assumed_;
  pod.assumed = false;
  pod.leaving = false;
  if (!pod.member.valid()) return;
  pod_of_member_[static_cast<size_t>(pod.member.value)] = -1;
  engine_.remove_member(std::exchange(pod.member, MemberId()), now);
}

bool Model::has_place(const PodEntry& pod) const {
  return pod.member.valid() && engine_.member(pod.member).state != MemberState::kWaiting;
}

bool Model::forget(int32_t slot, base::Time now) {
  PodEntry& pod = entry(slot);
  const bool placed = has_place(pod);
  drop_member(pod, now);
  leave(slot, now);
  reads(slot, {});
  if (const auto waits = unseated_.find(pod.node); waits != unseated_.end()) {
    waits->second.erase(slot);
    if (waits->second.empty()) unseated_.erase(waits);
  }
  const std::string key = pod.object.key();
  with_claims_.erase(key);
  by_key_.erase(key);
  to_read_.erase(slot);
  pod = PodEntry();
  pods_free_.push_back(slot);
  return placed;
}

bool Model::finish(int32_t slot, base::Time now) {
  PodEntry& pod = entry(slot);
  const bool placed = has_place(pod);
  drop_member(pod, now);
  with_claims_.erase(pod.object.key());
  pod.finished = true;
  const auto found = groups_.find(pod.group);
  if (found == groups_.end()) return placed;
  GroupEntry& group = found->second;
  if (const auto run = pod.foreign ? std::nullopt : run_of(pod.object))
    runs_.add(run_keys(pod.object, group.reading.spec.queue), pod.group, *run);
  --group.live;
  const auto subgroup = static_cast<size_t>(std::max(pod.subgroup, 0));
  if (group.succeeded.size() <= subgroup) group.succeeded.resize(subgroup + 1, 0);
  if (pod.object.get("status", "phase").as_string() == "Succeeded") {
    ++group.succeeded[subgroup];
  } else {
    ++group.failed;
  }
  to_refresh_.insert(pod.group);
  pod.request = nullptr;
  return placed;
}

bool Model::see_bound(int32_t slot, base::Time now) {
  PodEntry& pod = entry(slot);
  pod.node = node_of(pod.object);
  with_claims_.erase(pod.object.key());
  if (pod.assumed) --assumed_;
  pod.assumed = false;
  const auto node = by_name_.find(pod.node);
  if (node == by_name_.end()) unseated_[pod.node].insert(slot);
  if (node == by_name_.end() || !pod.request || pod.group.empty()) return false;
  const core::Placement seen =
      placement_of(pod.object, nodes_.at(node->second).view, node->second, *pod.request);
  if (pod.member.valid()) {
    const queueing::Member& member = engine_.member(pod.member);
    if (member.pod.valid() && member.state != MemberState::kClaimed &&
        member.placement.node == node->second) {
      if (seen.devices != 0) engine_.update_devices(pod.member, seen.devices);
      engine_.set_saved(pod.member, saved_at(pod.object));
      return false;
    }
    if (member.state == MemberState::kLeaving && !member.pod.valid()) return false;
    drop_member(pod, now);
  }
  GroupEntry& group = groups_.find(pod.group)->second;
  pod.member = engine_.add_running(group.gang, member_spec(pod), seen, started_at(pod.object, now));
  engine_.set_saved(pod.member, saved_at(pod.object));
  if (pod.object.deleting()) engine_.set_going(pod.member);
  note_member(slot);
  return true;
}

bool Model::see_waiting(int32_t slot, base::Time now) {
  PodEntry& pod = entry(slot);
  if (pod.assumed) return false;  // its bind is on the way, or its claims are being bound
  if (!pod.request || gated(pod.object) || pod.object.deleting() || !pod.hold.empty()) {
    const bool had_claim =
        pod.member.valid() && engine_.member(pod.member).state == MemberState::kClaimed;
    if (pod.member.valid()) drop_member(pod, now);
    with_claims_.erase(pod.object.key());
    if (pod.request && !pod.hold.empty() && !kube::claims_of(pod.object).empty())
      with_claims_.insert(pod.object.key());
    return had_claim;
  }
  if (!kube::claims_of(pod.object).empty()) with_claims_.insert(pod.object.key());
  return seat(slot, now);
}

// Into the line of its group.
bool Model::seat(int32_t slot, base::Time now) {
  PodEntry& pod = entry(slot);
  const auto group = groups_.find(pod.group);
  if (group == groups_.end()) return false;
  queueing::MemberSpec spec = member_spec(pod);
  if (pod.member.valid()) {
    const queueing::Member& member = engine_.member(pod.member);
    const bool same = member.spec.request == pod.request && member.spec.subgroup == spec.subgroup &&
                      member.spec.amounts == spec.amounts;
    if (same && member.spec.budgets == spec.budgets) return false;
    if (!same && member.state == MemberState::kClaimed) drop_member(pod, now);
  }
  if (pod.member.valid()) {
    engine_.update_member(pod.member, std::move(spec));
    return true;
  }
  pod.member = engine_.add_member(group->second.gang, std::move(spec));
  note_member(slot);
  return true;
}

void Model::note_member(int32_t slot) {
  const auto at = static_cast<size_t>(entry(slot).member.value);
  if (at >= pod_of_member_.size()) pod_of_member_.resize(at + 1, -1);
  pod_of_member_[at] = slot;
}

queueing::MemberSpec Model::member_spec(const PodEntry& pod) {
  queueing::MemberSpec spec;
  spec.request = pod.request;
  spec.amounts = member_amounts(*pod.request, engine_.cluster().names(), engine_.dims(), rules_);
  spec.subgroup = pod.subgroup;
  spec.budgets = budgets_of(pod);
  return spec;
}

Decisions Model::cycle(base::Time now) {
  refresh(now);
  const queueing::Plan plan = engine_.cycle(now);
  Decisions out;
  for (const queueing::Bind& bind : plan.binds) {
    const int32_t slot = pod_of_member_[static_cast<size_t>(bind.member.value)];
    PodEntry& pod = entry(slot);
    pod.assumed = true;
    ++assumed_;
    touched_.insert(pod.group);
    // Others may have ended since it came.
    if (runs_.size() > 0) to_refresh_.insert(pod.group);
    out.binds.push_back({pod.object.key(), bind.placement});
  }
  for (const queueing::Evict& evict : plan.evicts) {
    const int32_t slot = pod_of_member_[static_cast<size_t>(evict.member.value)];
    PodEntry& pod = entry(slot);
    pod.leaving = true;
    touched_.insert(pod.group);
    if (pod.object.deleting()) continue;  // its place is waited for all the same
    EvictDecision decision;
    decision.pod = pod.object.key();
    decision.uid = pod.uid;
    decision.reason = evict.reason;
    decision.budgeted = !engine_.member(evict.member).spec.budgets.empty();
    decision.why = evict_text(engine_, evict);
    decision.batch = fmt::format(
        "{}{}", evict.for_gang.valid() ? "for/" : "of/",
        evict.for_gang.valid() ? evict.for_gang.value : engine_.member(evict.member).gang.value);
    if (evict.for_gang.valid()) {
      const queueing::MemberId first = engine_.gang(evict.for_gang).members.front();
      decision.for_group = pod_at(pod_of_member_[static_cast<size_t>(first.value)]).group;
      touched_.insert(decision.for_group);
    }
    out.evicts.push_back(std::move(decision));
    spend_budgets(pod);
  }
  return out;
}

std::string_view Model::claimed_node(const PodEntry& pod) const {
  if (!pod.member.valid()) return {};
  const queueing::Member& member = engine_.member(pod.member);
  return member.state == MemberState::kClaimed ? node_name(member.placement.node)
                                               : std::string_view();
}

void Model::bind_failed(const std::string& key, std::string hold, base::Time now) {
  const int32_t slot = slot_of(key);
  if (slot < 0 || !entry(slot).assumed) return;
  PodEntry& pod = entry(slot);
  drop_member(pod, now);
  pod.hold = std::move(hold);
  read_request(pod);  // it may ask for something else by now
  see_waiting(slot, now);
}

void Model::evict_failed(const std::string& key, base::Time now) {
  const int32_t slot = slot_of(key);
  if (slot < 0 || !entry(slot).leaving) return;
  PodEntry& pod = entry(slot);
  pod.leaving = false;
  pod.no_victim = true;
  if (!pod.member.valid()) return;
  engine_.update_member(pod.member, member_spec(pod));
  engine_.stays(pod.member, now);
}

void Model::may_be_victim(const std::string& key) {
  const int32_t slot = slot_of(key);
  if (slot < 0 || !entry(slot).no_victim) return;
  PodEntry& pod = entry(slot);
  pod.no_victim = false;
  restore_budgets(pod);
  if (pod.member.valid() && pod.request) engine_.update_member(pod.member, member_spec(pod));
}

bool Model::set_hold(const std::string& key, std::string hold, base::Time now) {
  const int32_t slot = slot_of(key);
  if (slot < 0) return false;
  PodEntry& pod = entry(slot);
  if (pod.hold == hold) return false;
  pod.hold = std::move(hold);
  if (pod.finished || !pod.node.empty()) return false;
  touched_.insert(pod.group);
  return see_waiting(slot, now);
}

void Model::set_volumes(const std::string& key, std::vector<core::VolumeRule> rules,
                        base::Time now) {
  const int32_t slot = slot_of(key);
  if (slot < 0) return;
  PodEntry& pod = entry(slot);
  if (!pod.request || pod.assumed || !pod.node.empty() || pod.request->shape.volumes == rules)
    return;
  core::PodRequest request = *pod.request;
  request.shape.volumes = std::move(rules);
  pod.request = std::make_shared<const core::PodRequest>(std::move(request));
  if (pod.member.valid()) seat(slot, now);
}

std::string Model::why(const PodEntry& pod) const {
  if (!pod.problem.empty()) return pod.problem;
  if (!pod.hold.empty()) {
    return nodes() > 0 ? fmt::format("0/{} nodes are available: {}.", nodes(), pod.hold)
                       : "no nodes available to schedule pods";
  }
  const GroupEntry* group = group_with(pod);
  if (group == nullptr || !pod.member.valid()) return {};
  std::string why = engine_.why(group->gang);
  const queueing::Gang& gang = engine_.gang(group->gang);
  if (gang.wait.reason != queueing::WaitReason::kMembers) return why;
  // Members that exist but may not be placed are the reason behind.
  for (const auto& [arrival, slot] : group->pods) {
    const PodEntry& other = pod_at(slot);
    if (other.finished || (other.problem.empty() && other.hold.empty())) continue;
    return fmt::format("{}; pod {} is not counted: {}", why, other.object.name(),
                       other.problem.empty() ? other.hold : other.problem);
  }
  return why;
}

std::vector<std::pair<std::string, std::string>> Model::annotations_of(
    const BindDecision& bind) const {
  const PodEntry* pod = find(bind.pod);
  const auto node = nodes_.find(bind.placement.node);
  if (pod == nullptr || !pod->request || node == nodes_.end()) return {};
  return binding_annotations(bind.placement, node->second.view, *pod->request);
}

}  // namespace tessera::scheduler
