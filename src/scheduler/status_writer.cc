#include "scheduler/status_writer.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "scheduler/group_reading.h"
#include "scheduler/group_status.h"
#include "scheduler/model_reading.h"
#include "scheduler/queue_status.h"
#include "scheduler/reservation_status.h"
#include "scheduler/watched_kinds.h"

namespace tessera::scheduler {

using base::Code;
using kube::Object;

namespace {

constexpr base::Duration kTick = base::seconds(1);

const WatchedKind* kind_of(const Object& object) {
  const std::string_view group = group_of(object.api_version());
  for (const WatchedKind& kind : watched_kinds()) {
    if (kind.group == group && kind.kind == object.kind()) return &kind;
  }
  return nullptr;
}

bool runs(const Object& pod) {
  return pod.get("status", "phase").as_string() == "Running";
}

void count_pods(const Model& model, const GroupEntry& group, GroupProgress& out) {
  std::set<std::string> owners;
  const PodEntry* first = nullptr;
  for (const auto& [arrival, slot] : group.pods) {
    const PodEntry& pod = model.pod_at(slot);
    if (pod.finished) continue;
    ++out.members;
    const bool placed = !pod.node.empty() || pod.assumed;
    (placed ? out.placed : out.waiting) += 1;
    out.running += runs(pod.object) ? 1 : 0;
    if (!placed && first == nullptr) first = &pod;
    if (pod.leaving) out.evicting = "its place goes to another";
    for (const json::Value& owner : pod.object.metadata()["ownerReferences"].items()) {
      if (owner["controller"].as_bool()) owners.insert(owner["name"].str());
    }
  }
  for (const int32_t count : group.succeeded) out.succeeded += count;
  out.failed = group.failed;
  out.owners.assign(owners.begin(), owners.end());
  if (first != nullptr) out.why = model.why(*first);
}

void read_gang(const Model& model, const GroupEntry& group, GroupProgress& out) {
  const queueing::Gang& gang = model.engine().gang(group.gang);
  out.min = gang.spec.min_members;
  out.ever_started = gang.ever_started;
  out.reason = gang.wait.reason;
  out.planned_start = gang.wait.planned_start;
  out.planned_by_estimate = gang.wait.estimated;
  for (const core::NodeId node : gang.wait.planned_nodes)
    out.planned_nodes.emplace_back(model.node_name(node));
}

}  // namespace

struct StatusWriter::State : std::enable_shared_from_this<StatusWriter::State> {
  State(kube::Client& c, base::Executor& e, Options o, Source s)
      : client(c), executor(e), options(o), source(std::move(s)) {}

  void tick_later(base::Duration wait);
  void tick();
  bool write_group(const std::string& key);
  bool write_queues(int budget);
  void send(const Object& object, json::Value patch, std::function<void()> again);
  void send_to(const Object& object, const kube::Gvr& gvr, std::string subresource,
               json::Value patch, std::function<void()> again);
  GroupProgress progress_of(const Model& model, const Group& reading, const GroupEntry* group,
                            const Object& object) const;

  kube::Client& client;
  base::Executor& executor;
  Options options;
  Source source;
  std::set<std::string> groups;
  std::map<std::string, base::Time> written;   // groups, not long ago
  std::map<std::string, bool> without_status;  // kinds, by name: has no status subresource
  std::set<std::string> refused;               // kinds that may not be written
  bool queues = false;
  base::Time queues_at{INT64_MIN / 2};
  std::string queue_after;  // where the last tick ended
  bool posted = false;
};

void StatusWriter::State::tick_later(base::Duration wait) {
  if (std::exchange(posted, true)) return;
  executor.post_after(wait, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    self->posted = false;
    self->tick();
  });
}

void StatusWriter::State::tick() {
  const base::Time now = source.now();
  std::erase_if(written,
                [&](const auto& item) { return now - item.second >= options.group_period; });
  int budget = source.acting() ? options.writes_per_tick : 0;
  if (budget == 0) return groups.clear();
  for (auto at = groups.begin(); at != groups.end() && budget > 0;) {
    if (written.contains(*at)) {
      ++at;
      continue;
    }
    if (write_group(*at)) {
      written[*at] = now;
      --budget;
    }
    at = groups.erase(at);
  }
  if (queues && now - queues_at >= options.queue_period) {
    queues = false;
    queues_at = now;
    write_queues(budget);
  }
  if (!groups.empty() || queues) tick_later(kTick);
}

GroupProgress StatusWriter::State::progress_of(const Model& model, const Group& reading,
                                               const GroupEntry* group,
                                               const Object& object) const {
  GroupProgress out;
  out.now = source.now();
  out.min = reading.spec.min_members;
  if (group != nullptr) {
    count_pods(model, *group, out);
    read_gang(model, *group, out);
  }
  out.barred = why_barred(object, reading.spec.queue, model.engine(), model.rules());
  return out;
}

bool StatusWriter::State::write_group(const std::string& key) {
  const Model& model = source.model();
  const auto found = model.groups().find(key);
  const GroupEntry* group = found == model.groups().end() ? nullptr : &found->second;
  Object object;
  Group reading;
  if (group != nullptr) {
    reading = group->reading;
    const ObjectName& name = reading.object;
    if (name.kind != "PodGroup") return false;
    object = model.object(group_of(name.api_version), name.kind, name.ns, name.name);
  } else {
    const size_t dot = key.find('.');
    const size_t slash = key.find('/');
    const size_t last = key.rfind('/');
    if (!key.starts_with("PodGroup.") || slash == std::string::npos || slash == last) return false;
    object = model.object(std::string_view(key).substr(dot + 1, slash - dot - 1), "PodGroup",
                          std::string_view(key).substr(slash + 1, last - slash - 1),
                          std::string_view(key).substr(last + 1));
    if (object) reading = group_without_pods(object, model.sources());
  }
  if (!object || object.deleting()) return false;
  auto patch = group_status(reading, object, progress_of(model, reading, group, object));
  if (!patch) return false;
  send(object, std::move(*patch), [weak = weak_from_this(), key] {
    auto self = weak.lock();
    if (!self) return;
    self->groups.insert(key);
    self->tick_later(kTick);
  });
  return true;
}

bool StatusWriter::State::write_queues(int budget) {
  const Model& model = source.model();
  const queueing::Engine& engine = model.engine();
  std::map<int32_t, QueueJobs> jobs;
  for (const auto& [key, group] : model.groups()) {
    const queueing::Gang& gang = engine.gang(group.gang);
    if (gang.placed == 0 || gang.placed < gang.spec.min_members || !gang.leaf.valid()) continue;
    engine.queues().each_up(gang.leaf, [&](queueing::QueueId q) { ++jobs[q.value].running; });
  }
  model.each_object("scheduling.volcano.sh", "PodGroup", [&](const Object& group) {
    const auto leaf = engine.queues().find(
        group.get("spec", "queue").empty() ? "default" : group.get("spec", "queue").as_string());
    if (leaf.valid()) count_phase(jobs[leaf.value], group.get("status", "phase").as_string());
  });
  auto later = [weak = weak_from_this()] {
    if (auto self = weak.lock()) {
      self->queues = true;
      self->tick_later(kTick);
    }
  };
  for (const auto& [name, reservation] : model.reservations()) {
    if (budget <= 0) {
      queues = true;
      return true;
    }
    auto patch = reservation_status(reservation, engine, source.now());
    if (!patch) continue;
    --budget;
    send(reservation, std::move(*patch), later);
  }
  for (const auto& [key, queue] : model.queues()) {
    if (budget <= 0) {
      queues = true;
      return true;
    }
    if (queue.object.deleting() || key.starts_with("scheduling.run.ai/")) continue;
    const auto id = engine.queues().find(queue.reading.spec.name);
    const std::string problem = id.valid() ? engine.queues().at(id).problem : queue.reading.problem;
    auto patch = queue_status(queue.object, engine, id, problem, jobs[id.value], source.now());
    if (!patch) continue;
    --budget;
    send(queue.object, std::move(*patch), later);
  }
  return true;
}

void StatusWriter::State::send(const Object& object, json::Value patch,
                               std::function<void()> again) {
  const WatchedKind* kind = kind_of(object);
  if (kind == nullptr || refused.contains(kind->name())) return;
  const std::string_view api = object.api_version();
  const kube::Gvr gvr = kind->gvr(api.substr(api.find('/') + 1));
  patch.ref("metadata", "resourceVersion") = object.resource_version();
  const auto bare = without_status.find(kind->name());
  const bool known_bare = bare != without_status.end() && bare->second;
  send_to(object, gvr, known_bare ? "" : "status", std::move(patch), std::move(again));
}

void StatusWriter::State::send_to(const Object& object, const kube::Gvr& gvr,
                                  std::string subresource, json::Value patch,
                                  std::function<void()> again) {
  kube::Request request;
  request.verb = kube::Verb::kPatch;
  request.gvr = gvr;
  request.ns = object.ns();
  request.name = object.name();
  request.subresource = subresource;
  request.patch_type = kube::PatchType::kMerge;
  request.body = patch;
  client.call(std::move(request), [weak = weak_from_this(), object, gvr, subresource,
                                   patch = std::move(patch),
                                   again = std::move(again)](const kube::Reply& reply) {
    auto self = weak.lock();
    if (!self || reply) return;
    const Code code = reply.error().code;
    const std::string name = gvr.resource + "." + gvr.group;
    if (code == Code::kNotFound && subresource == "status" &&
        !self->without_status.contains(name)) {
      // The object may be gone as well: then this is not found either, and nothing has been learned.
      self->without_status[name] = true;
      return self->send_to(object, gvr, "", patch, again);
    }
    if (code == Code::kNotFound) {
      if (subresource.empty()) self->without_status.erase(name);
      return;
    }
    if (code == Code::kForbidden) {
      // Of an object that is gone, where only its status may be written.
      if (subresource.empty() && self->without_status.erase(name) > 0) return;
      if (self->refused.insert(name).second)
        base::log_warn("status is not written kind={} reason=\"{}\"", name, reply.error().message);
      return;
    }
    if (code == Code::kInvalid || code == Code::kBadRequest) {
      base::log_warn("status refused name={} reason=\"{}\"", object.key(), reply.error().message);
      return;
    }
    again();
  });
}

StatusWriter::StatusWriter(kube::Client& client, base::Executor& executor, Options options,
                           Source source)
    : state_(std::make_shared<State>(client, executor, options, std::move(source))) {}

StatusWriter::~StatusWriter() = default;

void StatusWriter::touch(const std::set<std::string>& groups) {
  bool fresh = false;
  for (const std::string& key : groups) {
    if (!key.starts_with("PodGroup.")) continue;
    state_->groups.insert(key);
    fresh |= !state_->written.contains(key);
  }
  if (fresh && !state_->posted) state_->tick_later({});
  if (!state_->groups.empty()) state_->tick_later(kTick);
}

void StatusWriter::touch_queues() {
  state_->queues = true;
  state_->tick_later(kTick);
}

}  // namespace tessera::scheduler
