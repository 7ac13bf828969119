#include "scheduler/scheduler.h"

#include <algorithm>
#include <deque>
#include <functional>

#include "base/log.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "kube/volumes.h"
#include "scheduler/core/scheduler.h"
#include "scheduler/mirror.h"
#include "scheduler/queue.h"
#include "scheduler/volume_binder.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using base::Duration;
using json::Value;
using kube::Object;

constexpr Duration kBackOffFirst = base::seconds(1);
constexpr Duration kBackOffMax = base::seconds(10);
constexpr Duration kExplainTick = base::seconds(1);
constexpr int kExplainedPerTick = 64;

Duration back_off(int failures) {
  Duration wait = kBackOffFirst;
  for (int i = 1; i < failures && wait < kBackOffMax; ++i) wait = wait * 2;
  return std::min(wait, kBackOffMax);
}

bool finished(const Object& pod) {
  const std::string_view phase = pod.get("status", "phase").as_string();
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

struct Scheduler::State : std::enable_shared_from_this<Scheduler::State> {
  State(kube::Client& c, base::Executor& e, const base::Clock& k, base::Random r, Options o)
      : client(c),
        executor(e),
        clock(k),
        random(r),
        options(std::move(o)),
        decider({.policy = options.policy,
                 .mix = options.mix ? options.mix(mirror.cluster().names()) : core::TypicalMix(),
                 .seed = random.next(),
                 .cached = true}),
        recorder(c, k, random.fork(), "tessera-scheduler") {}

  void start();
  void on_pod(const Object& before, const Object& after);
  bool ours(const Object& pod) const;
  void enqueue(const std::string& key, Tracked& pod);
  void wake();
  void request_cycle();
  void cycle();
  void attempt(const std::string& key);
  void place(const std::string& key, Tracked& pod, const core::Placement& placement);
  void no_place(const std::string& key, Tracked& pod);
  void explain(Tracked& pod);
  void explain_later(const std::string& key, Tracked& pod);
  void explain_some();
  void tell(Tracked& pod, const std::string& why);
  Value unschedulable(const Tracked& pod, const std::string& why) const;
  bool consider_volumes(Tracked& pod);
  void forget_volumes(const std::string& key, const Object& pod);
  void volumes_done(const std::string& key, const std::string& uid, kube::Request binding,
                    const base::Status& status);
  kube::Request binding_of(const Tracked& pod, const core::Placement& placement) const;
  void bind(const std::string& key, kube::Request binding);
  void bind_done(const std::string& key, const std::string& uid, const std::string& node,
                 const kube::Reply& reply);
  void settle(const std::string& key, const std::string& uid, Duration wait);
  void settled(const std::string& key, const std::string& uid, Duration wait,
               const kube::Reply& reply);
  void give_up(const std::string& key, Tracked& pod);

  template <class F>
  void after(Duration delay, F task) {
    executor.post_after(delay, [weak = weak_from_this(), task = std::move(task)] {
      if (auto self = weak.lock()) task(*self);
    });
  }

  kube::Client& client;
  base::Executor& executor;
  const base::Clock& clock;
  base::Random random;
  Options options;
  Mirror mirror;
  core::Scheduler decider;
  kube::EventRecorder recorder;
  WaitingQueue queue;
  std::unique_ptr<kube::Informer> nodes;
  std::unique_ptr<kube::Informer> pods;
  std::unique_ptr<VolumeBinder> volumes;
  std::deque<std::string> to_explain;  // pods with explain_due, oldest first
  bool cycle_posted = false;
  bool explain_posted = false;
  size_t binds_in_flight = 0;
  Stats counts;
};

void Scheduler::State::start() {
  auto informer = [&](const char* resource, auto on_change) {
    kube::Informer::Options what;
    what.gvr = kube::core_v1(resource);
    kube::Informer::Handlers handlers;
    handlers.on_change = std::move(on_change);
    handlers.on_synced = [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->request_cycle();
    };
    auto made = std::make_unique<kube::Informer>(client, executor, random.fork(), what, handlers);
    made->start();
    return made;
  };
  nodes = informer("nodes", [weak = weak_from_this()](const Object& before, const Object& after) {
    auto self = weak.lock();
    if (!self) return;
    if (self->mirror.on_node(before, after)) self->wake();
    if (!after && self->volumes) self->volumes->node_gone(before.name());
  });
  pods = informer("pods", [weak = weak_from_this()](const Object& before, const Object& after) {
    if (auto self = weak.lock()) self->on_pod(before, after);
  });
  VolumeBinder::Hooks hooks;
  hooks.synced = [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->request_cycle();
  };
  hooks.wake = [weak = weak_from_this()](const std::string& key) {
    auto self = weak.lock();
    if (self && self->queue.wake(key)) self->request_cycle();
  };
  volumes = std::make_unique<VolumeBinder>(
      client, executor, VolumeBinder::Options{.timeout = options.volume_timeout}, std::move(hooks));
  volumes->start(random.fork());
}

bool Scheduler::State::ours(const Object& pod) const {
  const std::string_view name = pod.get("spec", "schedulerName").as_string();
  return std::ranges::find(options.names, name) != options.names.end();
}

void Scheduler::State::on_pod(const Object& before, const Object& after) {
  const std::string key = (after ? after : before).key();
  Tracked* known = mirror.find(key);
  const bool replaced = known != nullptr && after && known->uid != after.uid();
  if (!after || finished(after) || replaced) {
    queue.remove(key);
    forget_volumes(key, before ? before : after);
    if (mirror.forget(key)) wake();
    if (!after || finished(after)) return;
  }
  const std::string node(after.get("spec", "nodeName").as_string());
  if (node.empty() && !ours(after)) return;
  Tracked& pod = mirror.track(after);
  if (!node.empty()) {
    queue.remove(key);
    forget_volumes(key, after);
    // Only the first sight of a binding, and changed annotations, change what is charged.
    const bool news =
        pod.node_name != node || !pod.placed ||
        !(before && before.metadata()["annotations"] == after.metadata()["annotations"]);
    if (news) mirror.confirm(pod, node);
    return;
  }
  if (pod.placed) {  // assumed: its bind is on the way, or its claims are being bound
    if (after.deleting() && volumes && volumes->forget(key) && mirror.release(pod)) wake();
    return;
  }
  if (after.deleting() || !after.get("spec", "schedulingGates").empty()) {
    queue.remove(key);
    return;
  }
  const bool changed = !before || !(before["spec"] == after["spec"]) ||
                       !(before.metadata()["annotations"] == after.metadata()["annotations"]) ||
                       !(before.metadata()["labels"] == after.metadata()["labels"]);
  if (!changed) return;
  if (pod.request && (!before || replaced)) decider.observe(pod.request->shape);
  enqueue(key, pod);
}

void Scheduler::State::enqueue(const std::string& key, Tracked& pod) {
  queue.add(key, pod.request ? pod.request->priority : 0, pod.arrival);
  request_cycle();
}

void Scheduler::State::wake() {
  if (queue.wake()) request_cycle();
}

void Scheduler::State::request_cycle() {
  const bool ready =
      nodes && pods && nodes->synced() && pods->synced() && volumes && volumes->synced();
  if (cycle_posted || !ready || queue.active() == 0) return;
  cycle_posted = true;
  after(Duration{}, [](State& s) { s.cycle(); });
}

void Scheduler::State::cycle() {
  cycle_posted = false;
  for (size_t i = 0; i < options.pods_per_cycle && binds_in_flight < options.binds_in_flight_max;
       ++i) {
    const auto key = queue.pop();
    if (!key) return;
    attempt(*key);
  }
  if (binds_in_flight < options.binds_in_flight_max) request_cycle();
}

void Scheduler::State::attempt(const std::string& key) {
  Tracked* pod = mirror.find(key);
  if (pod == nullptr || pod->placed || !pod->node_name.empty()) return;
  if (!pod->request || !consider_volumes(*pod)) return no_place(key, *pod);
  const auto placement = decider.place(mirror.cluster(), *pod->request);
  if (placement) return place(key, *pod, *placement);
  no_place(key, *pod);
}

// What the pod's claims ask of the node becomes part of its request; false where no node would do.
bool Scheduler::State::consider_volumes(Tracked& pod) {
  pod.waits_for.clear();
  if (kube::claims_of(pod.object).empty()) return true;
  VolumeNeeds needs = volumes->needs(pod.object, nodes->objects(), mirror.cluster().names());
  pod.waits_for = std::move(needs.problem);
  if (!pod.waits_for.empty()) return false;
  if (pod.request->shape.volumes == needs.rules) return true;
  core::PodRequest request = *pod.request;
  request.shape.volumes = std::move(needs.rules);
  pod.request = std::make_shared<const core::PodRequest>(std::move(request));
  return true;
}

void Scheduler::State::forget_volumes(const std::string& key, const Object& pod) {
  if (!volumes) return;
  volumes->forget(key);
  volumes->unpark(pod);
}

void Scheduler::State::place(const std::string& key, Tracked& pod,
                             const core::Placement& placement) {
  kube::Request binding = binding_of(pod, placement);
  const Object node = nodes->find(mirror.node_name(placement.node));
  mirror.assume(pod, placement);
  if (volumes->all_bound(pod.object, node)) return bind(key, std::move(binding));
  volumes->bind(pod.object, node,
                [weak = weak_from_this(), key, uid = pod.uid, binding](const base::Status& status) {
                  if (auto self = weak.lock()) self->volumes_done(key, uid, binding, status);
                });
}

void Scheduler::State::volumes_done(const std::string& key, const std::string& uid,
                                    kube::Request binding, const base::Status& status) {
  Tracked* pod = mirror.find(key);
  if (pod == nullptr || pod->uid != uid || !pod->assumed) return;
  if (status) return bind(key, std::move(binding));
  tell(*pod, "binding volumes: " + status.error().message);
  give_up(key, *pod);
}

// The reason is worked out and written only now and then: with thousands waiting it costs more than the decision.
void Scheduler::State::no_place(const std::string& key, Tracked& pod) {
  queue.park(key, pod.request ? pod.request->priority : 0, pod.arrival);
  volumes->park(pod.object);
  if (clock.now() - pod.told_at < options.explain_period) return explain_later(key, pod);
  explain(pod);
}

void Scheduler::State::explain(Tracked& pod) {
  if (!pod.request) return tell(pod, pod.problem);
  if (!pod.waits_for.empty() && mirror.nodes() > 0) {
    return tell(pod, fmt::format("0/{} nodes are available: {}.", mirror.nodes(), pod.waits_for));
  }
  const core::Verdict verdict = core::explain(mirror.cluster(), *pod.request);
  std::string why = verdict.message(mirror.cluster().names());
  const std::string nearest = verdict.nearest_text(mirror.cluster());
  if (!nearest.empty()) why += " " + nearest + ".";
  tell(pod, why);
}

void Scheduler::State::explain_later(const std::string& key, Tracked& pod) {
  if (!std::exchange(pod.explain_due, true)) to_explain.push_back(key);
  if (to_explain.empty() || std::exchange(explain_posted, true)) return;
  after(kExplainTick, [](State& s) { s.explain_some(); });
}

// Writes reasons that have changed, or that the API did not take, of pods that still wait.
void Scheduler::State::explain_some() {
  explain_posted = false;
  for (int i = 0; i < kExplainedPerTick && !to_explain.empty(); ++i) {
    const std::string key = to_explain.front();
    Tracked* pod = mirror.find(key);
    const bool waits = pod != nullptr && pod->explain_due && !pod->placed &&
                       pod->node_name.empty() && !pod->object.deleting();
    if (waits && clock.now() - pod->told_at < options.explain_period)
      break;  // those behind it wait too
    to_explain.pop_front();
    if (pod != nullptr) pod->explain_due = false;
    if (waits) explain(*pod);
  }
  if (to_explain.empty() || std::exchange(explain_posted, true)) return;
  after(kExplainTick, [](State& s) { s.explain_some(); });
}

// The condition as kube-scheduler writes it; the time is that of the change from or to Unschedulable.
Value Scheduler::State::unschedulable(const Tracked& pod, const std::string& why) const {
  std::string since = base::to_rfc3339(clock.now());
  for (const Value& condition : pod.object.get("status", "conditions").items()) {
    if (condition["type"].as_string() == "PodScheduled" &&
        condition["status"].as_string() == "False") {
      since = condition["lastTransitionTime"].str();
    }
  }
  return Value::object({{"type", "PodScheduled"},
                        {"status", "False"},
                        {"reason", "Unschedulable"},
                        {"message", why},
                        {"lastProbeTime", Value()},
                        {"lastTransitionTime", since}});
}

void Scheduler::State::tell(Tracked& pod, const std::string& why) {
  pod.told_at = clock.now();
  if (pod.told == why) return;
  pod.told = why;
  kube::Request request;
  request.verb = kube::Verb::kPatch;
  request.gvr = kube::core_v1("pods");
  request.ns = pod.object.ns();
  request.name = pod.object.name();
  request.subresource = "status";
  request.patch_type = kube::PatchType::kStrategic;
  request.body = Value::object(
      {{"metadata", Value::object({{"uid", pod.uid}})},
       {"status", Value::object({{"conditions", Value::array({unschedulable(pod, why)})}})}});
  client.call(std::move(request), [weak = weak_from_this(), key = pod.object.key(),
                                   uid = pod.uid](const kube::Reply& reply) {
    auto self = weak.lock();
    if (!self || reply) return;
    Tracked* again = self->mirror.find(key);
    if (again == nullptr || again->uid != uid) return;
    again->told.clear();
    self->explain_later(key, *again);
  });
  if (options.events) recorder.warning(pod.object, "FailedScheduling", why);
}

kube::Request Scheduler::State::binding_of(const Tracked& pod,
                                           const core::Placement& placement) const {
  const std::string node(mirror.node_name(placement.node));
  Value annotations = Value::object();
  for (const auto& [name, value] :
       binding_annotations(placement, mirror.node(placement.node), *pod.request)) {
    annotations.set(name, value);
  }
  kube::Request request;
  request.verb = kube::Verb::kCreate;
  request.gvr = kube::core_v1("pods");
  request.ns = pod.object.ns();
  request.name = pod.object.name();
  request.subresource = "binding";
  request.body = Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Binding"},
       {"metadata", Value::object({{"name", pod.object.name()},
                                   {"namespace", pod.object.ns()},
                                   {"uid", pod.uid},
                                   {"annotations", std::move(annotations)}})},
       {"target", Value::object({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}})}});
  return request;
}

void Scheduler::State::bind(const std::string& key, kube::Request binding) {
  const std::string uid = binding.body["metadata"]["uid"].str();
  const std::string node = binding.body["target"]["name"].str();
  ++binds_in_flight;
  client.call(std::move(binding),
              [weak = weak_from_this(), key, uid, node](const kube::Reply& reply) {
                if (auto self = weak.lock()) self->bind_done(key, uid, node, reply);
              });
}

void Scheduler::State::bind_done(const std::string& key, const std::string& uid,
                                 const std::string& node, const kube::Reply& reply) {
  --binds_in_flight;
  request_cycle();
  counts.bound += reply ? 1 : 0;
  counts.bind_errors += reply ? 0 : 1;
  Tracked* pod = mirror.find(key);
  if (pod == nullptr || pod->uid != uid) return;
  if (reply) {
    pod->failures = 0;
    if (options.events) {
      recorder.normal(pod->object, "Scheduled",
                      fmt::format("Successfully assigned {} to {}", key, node));
    }
    return;
  }
  base::log_debug("bind failed pod={} reason=\"{}\"", key, reply.error().message);
  // The bind may have happened all the same: the place is kept until the API says.
  settle(key, uid, kBackOffFirst);
}

void Scheduler::State::settle(const std::string& key, const std::string& uid, Duration wait) {
  const size_t slash = key.find('/');
  client.get(kube::core_v1("pods"), key.substr(0, slash), key.substr(slash + 1),
             [weak = weak_from_this(), key, uid, wait](const kube::Reply& reply) {
               if (auto self = weak.lock()) self->settled(key, uid, wait, reply);
             });
}

void Scheduler::State::settled(const std::string& key, const std::string& uid, Duration wait,
                               const kube::Reply& reply) {
  Tracked* pod = mirror.find(key);
  if (pod == nullptr || pod->uid != uid || !pod->assumed) return;
  if (!reply && reply.error().code != Code::kNotFound) {
    return after(
        wait, [key, uid, wait](State& s) { s.settle(key, uid, std::min(wait * 2, kBackOffMax)); });
  }
  if (!reply || Object(*reply).uid() != uid) return give_up(key, *pod);
  const std::string node(Object(*reply).get("spec", "nodeName").as_string());
  if (node.empty()) return give_up(key, *pod);
  pod->object = Object(*reply);
  mirror.confirm(*pod, node);
}

// Not bound after all: the place is free again and the pod waits its turn.
void Scheduler::State::give_up(const std::string& key, Tracked& pod) {
  mirror.release(pod);
  wake();
  after(back_off(++pod.failures), [key, uid = pod.uid](State& s) {
    Tracked* again = s.mirror.find(key);
    if (again == nullptr || again->uid != uid || again->placed || again->object.deleting()) return;
    s.mirror.track(again->object);  // it may ask for something else by now
    s.enqueue(key, *again);
  });
}

Scheduler::Scheduler(kube::Client& client, base::Executor& executor, const base::Clock& clock,
                     base::Random random, Options options)
    : state_(std::make_shared<State>(client, executor, clock, random, std::move(options))) {}

Scheduler::~Scheduler() = default;

void Scheduler::start() {
  state_->executor.post([state = state_] { state->start(); });
}

Scheduler::Stats Scheduler::stats() const {
  Stats out = state_->counts;
  out.waiting = state_->queue.active();
  out.parked = state_->queue.parked();
  out.assumed = state_->mirror.assumed();
  out.nodes = state_->mirror.nodes();
  return out;
}

}  // namespace tessera::scheduler
