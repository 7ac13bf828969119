#include "scheduler/verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::scheduler {
namespace {

using queueing::Engine;
using queueing::Gang;
using queueing::Wait;
using queueing::WaitReason;

constexpr size_t kNodesMax = 16;
constexpr int64_t kSecond = 1'000'000'000;

base::Time whole_second(base::Time at) {
  return {at.ns - (at.ns % kSecond + kSecond) % kSecond};
}
// Never before the instant itself.
base::Time next_second(base::Time at) {
  const base::Time floor = whole_second(at);
  return floor == at ? at : floor + base::seconds(1);
}

std::string counted(int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string unit_of(const Engine& engine, queueing::Dim dim) {
  const std::string_view name = engine.dims().name(dim);
  if (dim == queueing::kGpu) return "GPUs";
  if (dim == queueing::kCpu) return "cores";
  if (name.starts_with("gpu/")) return fmt::format("{} GPUs", name.substr(4));
  return std::string(name);
}

// What one member asks for, by its GPUs where it has any.
std::string ask_of(const Engine& engine, const queueing::Member& member) {
  const queueing::Amounts& amounts = member.spec.amounts;
  auto text = [&](queueing::Dim dim) {
    return fmt::format("{} {}", amount_text(engine.dims(), dim, amounts.at(dim)),
                       unit_of(engine, dim));
  };
  if (amounts.at(queueing::kGpu) == queueing::kUnitsPerGpu) return "1 GPU";
  if (amounts.at(queueing::kGpu) > 0) return text(queueing::kGpu);
  if (amounts.at(queueing::kMemory) == 0) return text(queueing::kCpu);
  return fmt::format("{} and {}", text(queueing::kCpu), text(queueing::kMemory));
}

// Writes a verdict for one reason.
class Writer {
 public:
  Writer(const Engine& engine, queueing::GangId id, Verdict& out)
      : engine_(engine), gang_(engine.gang(id)), wait_(gang_.wait), out_(out) {}

  // Whether all that the wait points at is still there: queues, gangs and members come and go between cycles.
  bool current() const {
    switch (wait_.reason) {
      case WaitReason::kClosed:
      case WaitReason::kNotLeaf:
        return known(wait_.queue);
      case WaitReason::kLimit:
        return known(wait_.queue) && wait_.dim < engine_.dims().size();
      case WaitReason::kBehind:
        return known(wait_.queue) && known(wait_.gang);
      case WaitReason::kReserved:
        return known(wait_.gang) || !wait_.reservation.empty();
      case WaitReason::kCapacity:
        return wait_.member.valid() && engine_.member(wait_.member).present;
      default:
        return true;
    }
  }

  void write() {
    switch (wait_.reason) {
      case WaitReason::kNone:
        break;
      case WaitReason::kNoQueue:
        out_.constraint.queue = gang_.spec.queue;
        hopeless(fmt::format("create queue \"{}\", or name one that exists", gang_.spec.queue));
        break;
      case WaitReason::kClosed:
        closed();
        break;
      case WaitReason::kNotLeaf:
        out_.constraint.queue = queue_name(wait_.queue);
        hopeless(fmt::format("name one of the queues under \"{}\"", queue_name(wait_.queue)));
        break;
      case WaitReason::kMembers:
        members();
        break;
      case WaitReason::kLimit:
        limit();
        break;
      case WaitReason::kBehind:
      case WaitReason::kReserved:
        after_other();
        break;
      case WaitReason::kCapacity:
        capacity();
        break;
      case WaitReason::kClaim:
        out_.mends.push_back(fmt::format(
            "the end of {} leaving",
            counted(static_cast<int64_t>(gang_.awaits.size()), "pod that is", "pods that are")));
        break;
      default:  // what holds it back says the sentence
        break;
    }
  }

 private:
  bool known(queueing::QueueId id) const {
    return id.valid() && static_cast<size_t>(id.value) < engine_.queues().size();
  }
  bool known(queueing::GangId id) const { return id.valid() && engine_.gang(id).present; }
  std::string queue_name(queueing::QueueId id) const {
    return id == engine_.queues().root() ? "root" : engine_.queues().at(id).spec.name;
  }
  void hopeless(std::string mend) {
    out_.never = true;
    out_.mends.push_back(std::move(mend));
  }

  void closed() {
    const queueing::Queue& queue = engine_.queues().at(wait_.queue);
    out_.constraint.queue = queue_name(wait_.queue);
    hopeless(queue.problem.empty()
                 ? fmt::format("open queue \"{}\"", out_.constraint.queue)
                 : fmt::format("mend queue \"{}\": {}", out_.constraint.queue, queue.problem));
  }

  void members() {
    out_.constraint.resource = "members";
    out_.constraint.need = fmt::format("{}", wait_.need);
    out_.constraint.have = fmt::format("{}", wait_.have);
    const int64_t more = wait_.need - wait_.have;
    out_.mends.push_back(more > 0 ? fmt::format("{} to be created, or a lower minimum",
                                                counted(more, "more member", "more members"))
                                  : "members of the roles that are short of their own minimum");
  }

  void limit() {
    Constraint& at = out_.constraint;
    const int64_t most =
        engine_.queues().at(wait_.queue).spec.limit.at(wait_.dim, queueing::kUnlimited);
    auto text = [&](int64_t amount) { return amount_text(engine_.dims(), wait_.dim, amount); };
    at.queue = queue_name(wait_.queue);
    at.resource = engine_.dims().name(wait_.dim);
    at.need = text(wait_.need);
    at.have = text(wait_.have);
    at.limit = text(most);
    const std::string unit = unit_of(engine_, wait_.dim);
    if (wait_.need > most) {
      hopeless(fmt::format("raise the limit of queue \"{}\" to {} {}, or ask for less", at.queue,
                           at.need, unit));
      return;
    }
    out_.mends.push_back(fmt::format("{} {} of queue \"{}\"'s limit",
                                     text(std::max<int64_t>(wait_.need - wait_.have, 0)), unit,
                                     at.queue));
  }

  void after_other() {
    if (!wait_.reservation.empty()) {
      out_.constraint.reservation = wait_.reservation;
      out_.mends.push_back(
          fmt::format("the end of reservation \"{}\", or capacity beside it", wait_.reservation));
      out_.mends.emplace_back("or, before its start, a time limit that ends this job by then");
      return;
    }
    const std::string& other = engine_.gang(wait_.gang).spec.name;
    out_.constraint.job = other;
    if (wait_.reason == WaitReason::kBehind) {
      out_.constraint.queue = queue_name(wait_.queue);
      out_.mends.push_back(fmt::format("the start of \"{}\", which is first in line", other));
      return;
    }
    out_.mends.push_back(fmt::format("the start of \"{}\"", other));
    out_.mends.emplace_back("or a time limit that ends this job before then");
  }

  void capacity() {
    const queueing::Member& member = engine_.member(wait_.member);
    const core::Verdict verdict = core::explain(engine_.cluster(), *member.spec.request);
    const int64_t wanted = std::max<int64_t>(gang_.spec.min_members - gang_.placed, 1);
    const int64_t missing = std::max<int64_t>(wanted - wait_.have, 1);
    out_.constraint.resource = "members";
    out_.constraint.need = fmt::format("{}", wanted);
    out_.constraint.have = fmt::format("{}", wait_.have);
    if (verdict.nearest.valid()) {
      out_.nearest_node =
          engine_.cluster().names().text(engine_.cluster().spec(verdict.nearest).name);
      out_.nearest_short = verdict.short_of(engine_.cluster());
    }
    const std::string ask = ask_of(engine_, member);
    if (verdict.code == base::Code::kNever) {
      hopeless(fmt::format("ask for less than {} a member, or add a node that can hold it", ask));
      return;
    }
    out_.mends.push_back(gang_.spec.min_members == 1
                             ? fmt::format("{} on one node", ask)
                             : fmt::format("room for {} with {} each",
                                           counted(missing, "more member", "more members"), ask));
  }

  const Engine& engine_;
  const Gang& gang_;
  const Wait& wait_;
  Verdict& out_;
};

void plan_of(const Engine& engine, const Wait& wait, base::Time now, Verdict& out) {
  if (!wait.planned_start || *wait.planned_start < now) return;
  out.planned_start = next_second(*wait.planned_start);
  out.estimated = wait.estimated;
  core::NodeId last;
  for (const core::NodeId node : wait.planned_nodes) {
    if (node == last || !engine.cluster().present(node)) continue;  // sorted
    last = node;
    if (out.planned_nodes.size() < kNodesMax) {
      out.planned_nodes.emplace_back(
          engine.cluster().names().text(engine.cluster().spec(node).name));
    } else {
      ++out.planned_nodes_more;
    }
  }
}

}  // namespace

Verdict verdict_of(const Engine& engine, queueing::GangId id, base::Time now) {
  const Gang& gang = engine.gang(id);
  Verdict out;
  out.job = gang.spec.name;
  out.queue = gang.spec.queue;
  out.reason = name_of(gang.wait.reason);
  out.members = static_cast<int64_t>(gang.members.size());
  out.min_members = gang.spec.min_members;
  out.placed = gang.placed;
  out.since = whole_second(std::min(gang.broken_since.value_or(gang.spec.created), now));
  if (!gang.present || gang.wait.reason == WaitReason::kNone) return out;
  out.position = static_cast<int64_t>(engine.position(id));
  Writer writer(engine, id, out);
  if (writer.current()) {
    out.sentence = engine.why(id);
    writer.write();
    plan_of(engine, gang.wait, now, out);
  } else {
    out.sentence = "what it waited for has changed: it is about to be looked at again";
  }
  return out;
}

}  // namespace tessera::scheduler
