#include "scheduler/scheduler.h"

#include <algorithm>

#include "base/log.h"
#include "scheduler/scheduler_state.h"

namespace tessera::scheduler {
namespace {

using base::Duration;
using kube::Object;

// Time alone may change what is decided: a claim that takes too long, a member that has run its minimum.
constexpr Duration kLookAgain = base::seconds(5);
// A standby keeps its model true that often, at most.
constexpr Duration kLookOnEvery = base::millis(100);
// So much longer than a cycle takes is waited before the next, so that changes are taken together under load.
constexpr int64_t kRestPerCycle = 3;

ModelOptions model_options(const Scheduler::Options& options, uint64_t seed) {
  ModelOptions out;
  out.names = options.names;
  out.engine = options.engine;
  out.engine.scheduler.policy = options.policy;
  out.engine.scheduler.seed = seed;
  out.mix = options.mix;
  out.shard_key = options.shard_key;
  out.shard_value = options.shard_value;
  return out;
}

}  // namespace

Scheduler::State::State(kube::Client& c, base::Executor& e, const base::Clock& k, base::Random r,
                        Options o)
    : client(c, o.writes ? *o.writes : c, e, {o.leading, o.write_timeout, o.writes_in_flight_max}),
      executor(e),
      clock(k),
      random(r),
      options(std::move(o)),
      wall_at_start(k.now()),
      monotonic_at_start(k.monotonic()),
      model(model_options(options, random.next())),
      recorder(client, k, random.fork(), "tessera-scheduler"),
      role(options.leading ? Role::kStandby : Role::kLeading) {}

base::Time Scheduler::State::now() const {
  return wall_at_start + (clock.monotonic() - monotonic_at_start);
}

void Scheduler::State::start() {
  start_informers();
  start_sources();
  start_volumes();
  start_evictor();
}

void Scheduler::State::start_volumes() {
  VolumeBinder::Hooks hooks;
  hooks.synced = [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->request_cycle();
  };
  hooks.wake = [weak = weak_from_this()](const std::string&) {
    if (auto self = weak.lock()) self->request_cycle();
  };
  volumes = std::make_unique<VolumeBinder>(
      client, executor, VolumeBinder::Options{.timeout = options.volume_timeout}, std::move(hooks));
  volumes->start(random.fork());
}

void Scheduler::State::start_sources() {
  StatusWriter::Source source;  // lives no longer than this
  source.model = [this]() -> const Model& { return model; };
  source.now = [this] { return now(); };
  source.acting = [this] { return acting(); };
  statuses =
      std::make_unique<StatusWriter>(client, executor, StatusWriter::Options{}, std::move(source));
  ObjectSources::Handlers handlers;
  handlers.on_change = [weak = weak_from_this()](const Object& before, const Object& after) {
    auto self = weak.lock();
    if (!self) return;
    // Groups and queues without pods have a status too.
    const bool matters = self->model.on_object(before, after, self->now());
    const std::string_view kind = (after ? after : before).kind();
    if (matters || kind == "PodGroup" || kind == "Queue") self->request_cycle();
    if (!after && kind == "Job") self->allowances.erase(std::string(before.uid()));
  };
  handlers.on_synced = [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->request_cycle();
  };
  sources = std::make_unique<ObjectSources>(client, executor, random.fork(),
                                            ObjectSources::Options{}, std::move(handlers));
  sources->start();
}

void Scheduler::State::start_informers() {
  nodes = informer("nodes", [weak = weak_from_this()](const Object& before, const Object& after) {
    if (auto self = weak.lock()) self->on_node(before, after);
  });
  pods = informer("pods", [weak = weak_from_this()](const Object& before, const Object& after) {
    if (auto self = weak.lock()) self->on_pod(before, after);
  });
}

std::unique_ptr<kube::Informer> Scheduler::State::informer(
    const char* resource, std::function<void(const Object&, const Object&)> on_change) {
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
}

void Scheduler::State::on_node(const Object& before, const Object& after) {
  if (model.on_node(after, (after ? after : before).name(), now())) request_cycle();
  if (!after && volumes) volumes->node_gone(before.name());
}

void Scheduler::State::on_pod(const Object& before, const Object& after) {
  const std::string key = (after ? after : before).key();
  const PodEntry* known = model.find(key);
  const bool replaced = known != nullptr && after && known->uid != after.uid();
  if (!after || replaced) {
    forget_volumes(key, before ? before : after);
    evictor->forget(key);
    tellings.erase(key);
    nominated.erase(key);
  }
  const bool matters = model.on_pod(key, after, now());
  const PodEntry* pod = model.find(key);
  // How many run is part of the group's status, though it decides nothing.
  if (pod != nullptr && pod->group.starts_with("PodGroup.")) statuses->touch({pod->group});
  if (pod != nullptr && (!pod->node.empty() || pod->finished)) {
    forget_volumes(key, after);
    tellings.erase(key);
    if (pod->finished) evictor->forget(key);
  }
  // Its place waits for its claims only: nothing has been sent yet that may bind it.
  if (pod != nullptr && pod->assumed && after.deleting() && volumes && volumes->forget(key))
    model.bind_failed(key, "", now());
  // One that cannot be placed at all is to be told so.
  if (matters || (waits(pod) && !tellings.contains(key))) request_cycle();
}

void Scheduler::State::forget_volumes(const std::string& key, const Object& pod) {
  if (!volumes) return;
  volumes->forget(key);
  volumes->unpark(pod);
}

bool Scheduler::State::ready() const {
  return nodes && pods && nodes->synced() && pods->synced() && volumes && volumes->synced() &&
         sources && sources->synced();
}

void Scheduler::State::request_cycle() {
  if (cycle_posted || !ready()) return;
  cycle_posted = true;
  const Duration wait = std::max(Duration{}, cycle_not_before - clock.monotonic());
  after(wait, [](State& s) { s.cycle(); });
}

void Scheduler::State::cycle() {
  cycle_posted = false;
  const Duration begin = clock.monotonic();
  if (!acting()) {
    cycle_not_before = begin + kLookOnEvery;
    return model.look_on(now());
  }
  if (!std::exchange(settled_found, true)) model.settle_found(now());
  consider_volumes();
  const Decisions decisions = model.cycle(now());
  for (const BindDecision& bind : decisions.binds) place(bind);
  if (!decisions.evicts.empty()) evict(decisions.evicts);
  for (const EvictDecision& evict : decisions.evicts) {
    if (!evict.for_group.empty()) claiming.insert(evict.for_group);
  }
  nominate();
  send_binds();
  explain_touched();
  const Duration end = clock.monotonic();
  cycle_not_before = end + (end - begin) * kRestPerCycle;
  look_again_later();
}

void Scheduler::State::look_again_later() {
  if (!model.restless() || std::exchange(look_posted, true)) return;
  after(kLookAgain, [](State& s) {
    s.look_posted = false;
    s.request_cycle();
  });
}

// What the pods' claims ask of nodes becomes part of their requests; a pod whose claims no node would do for is held.
void Scheduler::State::consider_volumes() {
  for (const std::string& key : std::set<std::string>(model.with_claims())) {
    const PodEntry* pod = model.find(key);
    if (pod == nullptr || (!pod->hold.empty() && tellings[key].failures > 0)) continue;
    VolumeNeeds needs =
        volumes->needs(pod->object, nodes->objects(), model.engine().cluster().names());
    volumes->park(pod->object);
    if (needs.problem.empty()) model.set_volumes(key, std::move(needs.rules), now());
    model.set_hold(key, std::move(needs.problem), now());
  }
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
  out.waiting = state_->model.waiting();
  out.assumed = state_->model.assumed();
  out.nodes = state_->model.nodes();
  out.writing = state_->client.writing();
  out.acting = state_->acting();
  return out;
}

}  // namespace tessera::scheduler
