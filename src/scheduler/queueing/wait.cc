#include "scheduler/queueing/wait.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/queueing/engine.h"

namespace tessera::scheduler::queueing {
namespace {

std::string queue_name(const Engine& engine, QueueId id) {
  return id == engine.queues().root()
             ? "the root queue"
             : fmt::format("queue \"{}\"", engine.queues().at(id).spec.name);
}

// A resource with its article's worth of name: "GPUs", "H100 GPUs", "cores".
std::string resource_name(const Engine& engine, Dim dim) {
  std::string_view name = engine.dims().name(dim);
  if (dim == kGpu) return "GPUs";
  if (dim == kCpu) return "cores";
  if (name.starts_with("gpu/")) return fmt::format("{} GPUs", name.substr(4));
  return std::string(name);
}

std::string limit_text(const Engine& engine, const Wait& wait) {
  const Dims& dims = engine.dims();
  int64_t limit = engine.queues().at(wait.queue).spec.limit.at(wait.dim, kUnlimited);
  std::string name = resource_name(engine, wait.dim);
  std::string need = amount_text(dims, wait.dim, wait.need);
  std::string of = queue_name(engine, wait.queue);
  if (wait.need > limit)
    return fmt::format("it needs {} {} and {} has a limit of {}: it can never start there", need,
                       name, of, amount_text(dims, wait.dim, limit));
  return fmt::format("it needs {} {} and {} has {} left of its limit of {}", need, name, of,
                     amount_text(dims, wait.dim, wait.have), amount_text(dims, wait.dim, limit));
}

// The member that found no place, or, where that one has gone or was another gang's of the same ask, the first that waits.
const Member* misfit(const Engine& engine, GangId id, const Wait& wait) {
  if (wait.member.valid()) {
    const Member& member = engine.member(wait.member);
    if (member.present && member.gang == id) return &member;
  }
  for (MemberId m : engine.gang(id).members) {
    if (engine.member(m).state == MemberState::kWaiting) return &engine.member(m);
  }
  return nullptr;
}

std::string capacity_text(const Engine& engine, GangId id, const Wait& wait) {
  const Gang& gang = engine.gang(id);
  const Member* member = misfit(engine, id, wait);
  if (member == nullptr) return {};
  const core::Verdict verdict = core::explain(engine.cluster(), *member->spec.request);
  std::string text = verdict.message(engine.cluster().names());
  const int64_t missing = std::max<int64_t>(gang.spec.min_members - gang.placed - wait.have, 1);
  if (gang.placed >= gang.spec.min_members && gang.placed > 0)
    text = fmt::format("it has a place for {} members, and for no more: {}", gang.placed, text);
  else if (gang.spec.min_members > 1)
    text = fmt::format("{} of its {} members that must start together have no place: {}", missing,
                       gang.spec.min_members, text);
  const std::string nearest = verdict.nearest_text(engine.cluster());
  if (!nearest.empty()) text += " " + nearest + ".";
  if (verdict.code == base::Code::kNever && verdict.nodes > 0 && nearest.empty())
    text += " (no node could hold it even when empty)";
  return text;
}

}  // namespace

std::string_view name_of(WaitReason reason) {
  switch (reason) {
    case WaitReason::kNone:
      return "None";
    case WaitReason::kHeld:
      return "Held";
    case WaitReason::kNoQueue:
      return "NoQueue";
    case WaitReason::kClosed:
      return "QueueClosed";
    case WaitReason::kNotLeaf:
      return "QueueNotLeaf";
    case WaitReason::kMembers:
      return "NotEnoughMembers";
    case WaitReason::kLimit:
      return "QueueLimit";
    case WaitReason::kBehind:
      return "BehindOther";
    case WaitReason::kReserved:
      return "Reserved";
    case WaitReason::kCapacity:
      return "NoCapacity";
    case WaitReason::kClaim:
      return "WaitingForEviction";
  }
  return "None";
}

std::string_view name_of(EvictReason reason) {
  switch (reason) {
    case EvictReason::kPreempted:
      return "Preempted";
    case EvictReason::kReclaimed:
      return "Reclaimed";
    case EvictReason::kBroken:
      return "GangBroken";
  }
  return "Preempted";
}

std::string Engine::why(GangId id) const {
  const Gang& gang = this->gang(id);
  const Wait& wait = gang.wait;
  if (wait.queue.valid() && static_cast<size_t>(wait.queue.value) >= tree_.size()) return {};
  switch (wait.reason) {
    case WaitReason::kNone:
      return {};
    case WaitReason::kHeld:
      return gang.spec.hold;
    case WaitReason::kNoQueue:
      return fmt::format("queue \"{}\" does not exist: create it, or name another",
                         gang.spec.queue);
    case WaitReason::kClosed: {
      const std::string& problem = tree_.at(wait.queue).problem;
      if (problem.empty()) return fmt::format("{} is closed", queue_name(*this, wait.queue));
      return fmt::format("{} is closed: {}", queue_name(*this, wait.queue), problem);
    }
    case WaitReason::kNotLeaf:
      return fmt::format("{} has queues under it: name one of those",
                         queue_name(*this, wait.queue));
    case WaitReason::kMembers:
      return fmt::format("{} members must start together and {} exist", wait.need, wait.have);
    case WaitReason::kLimit:
      return limit_text(*this, wait);
    case WaitReason::kBehind:
      return fmt::format("{} is first in, first out, and \"{}\" is before it",
                         queue_name(*this, wait.queue), this->gang(wait.gang).spec.name);
    case WaitReason::kReserved:
      if (!wait.gang.valid())
        return fmt::format("the room that it would fit into is held by reservation \"{}\"",
                           wait.reservation);
      return fmt::format("it would delay the planned start of \"{}\"",
                         this->gang(wait.gang).spec.name);
    case WaitReason::kClaim:
      return gang.awaits.size() == 1
                 ? "its place is decided and 1 pod that holds it is leaving"
                 : fmt::format("its place is decided and {} pods that hold it are leaving",
                               gang.awaits.size());
    case WaitReason::kCapacity:
      return capacity_text(*this, id, wait);
  }
  return {};
}

std::string Engine::audit() const {
  std::vector<Totals> used(uses_.size());
  std::vector<Totals> wanted(uses_.size());
  size_t pods = 0;
  for (size_t g = 0; g < gangs_.size(); ++g) {
    const Gang& gang = gangs_[g];
    if (!gang.present) continue;
    int32_t placed = 0;
    int32_t waiting = 0;
    for (MemberId id : gang.members) {
      const Member& member = this->member(id);
      placed += counts_as_placed(member);
      waiting += member.state == MemberState::kWaiting;
      if (member.pod.valid()) {
        ++pods;
        if (cluster_.pod(member.pod).request != member.spec.request)
          return fmt::format("a member of {} holds the place of another pod", gang.spec.name);
      } else if (counts_as_placed(member)) {
        return fmt::format("a member of {} is placed nowhere", gang.spec.name);
      }
      if (!gang.leaf.valid()) continue;
      tree_.each_up(gang.leaf, [&](QueueId q) {
        auto at = static_cast<size_t>(q.value);
        if (member.pod.valid()) used[at].add(member.charged, 1);
        if (member.state == MemberState::kWaiting)
          wanted[at].add(const_cast<Engine*>(this)->wanted_by(member.spec), 1);
      });
    }
    if (placed != gang.placed || waiting != gang.waiting)
      return fmt::format("{} counts {} placed and {} waiting, and has {} and {}", gang.spec.name,
                         gang.placed, gang.waiting, placed, waiting);
    bool listed = gang.leaf.valid() && lines_[static_cast<size_t>(gang.leaf.value)].contains(
                                           turn_of(gang, GangId(static_cast<int32_t>(g))));
    if (gang.leaf.valid() && listed != (waiting > 0))
      return fmt::format("{} is not where it should wait", gang.spec.name);
  }
  if (pods != cluster_.pods())
    return fmt::format("the model holds {} pods, the gangs {}", cluster_.pods(), pods);
  for (size_t q = 0; q < uses_.size(); ++q) {
    if (!(used[q] == uses_[q].used) || !(wanted[q] == uses_[q].wanted))
      return fmt::format("the sums of queue \"{}\" are wrong",
                         tree_.at(QueueId(static_cast<int32_t>(q))).spec.name);
  }
  return {};
}

}  // namespace tessera::scheduler::queueing
