// Whether this scheduler acts: its terms as a leader, and what it is told anew while it runs.

#include "base/log.h"
#include "scheduler/scheduler_state.h"

namespace tessera::scheduler {

bool Scheduler::State::acting() const {
  return role == Role::kLeading && ready() && (!options.leading || options.leading());
}

// What the one before has written may not have come by watch yet: the term begins when nodes and pods have been read anew.
void Scheduler::State::lead() {
  if (!options.leading) return;
  role = Role::kTaking;
  auto left = std::make_shared<int>(2);
  const auto listed = [weak = weak_from_this(), left, number = ++terms] {
    const auto self = weak.lock();
    if (self && self->terms == number && --*left == 0) self->take_over();
  };
  nodes->refresh(listed);
  pods->refresh(listed);
}

void Scheduler::State::take_over() {
  role = Role::kLeading;
  settled_found = false;
  cycle_not_before = {};
  // What stands there from before is taken back where the claim does not come again.
  for (const auto& [key, pod] : pods->objects()) {
    const std::string node = pod.get("status", "nominatedNodeName").str();
    const PodEntry* known = node.empty() ? nullptr : model.find(key);
    if (!waits(known)) continue;
    nominated[key] = node;
    claiming.insert(known->group);
  }
  base::log_info("scheduling nodes={} waiting={}", model.nodes(), model.waiting());
  request_cycle();
}

// Binds that may have been sent keep their places until the API has said what became of them.
void Scheduler::State::stand_by() {
  if (!options.leading || role == Role::kStandby) return;
  role = Role::kStandby;
  ++terms;
  const base::Time at = now();
  for (const kube::Request& binding : std::exchange(binds, {})) {
    const std::string key = binding.ns + "/" + binding.name;
    const PodEntry* pod = model.find(key);
    if (pod != nullptr && pod->uid == binding.body["metadata"]["uid"].as_string())
      model.bind_failed(key, "", at);
  }
  for (const std::string& key : volumes->forget_all()) model.bind_failed(key, "", at);
  evictor->forget_all();
  model.take_back(at);
  tellings.clear();
  to_explain.clear();
  to_explain_again.clear();
  nominated.clear();
  claiming.clear();
  request_cycle();
}

void Scheduler::State::reconfigure(Options next) {
  const bool had_evictions = options.engine.evictions;
  options.policy = next.policy;
  options.engine = std::move(next.engine);
  options.engine.scheduler.policy = options.policy;
  options.binds_in_flight_max = next.binds_in_flight_max;
  options.explain_period = next.explain_period;
  options.volume_timeout = next.volume_timeout;
  options.events = next.events;
  model.set_options(options.engine);
  if (volumes) volumes->set_timeout(options.volume_timeout);
  if (evictor && had_evictions && !options.engine.evictions) {
    evictor->forget_all();
    model.take_back(now());
  }
  send_binds();
  request_cycle();
}

void Scheduler::lead() {
  state_->executor.post([state = state_] { state->lead(); });
}

void Scheduler::stand_by() {
  state_->executor.post([state = state_] { state->stand_by(); });
}

void Scheduler::reconfigure(Options options) {
  state_->executor.post([state = state_, options = std::move(options)]() mutable {
    state->reconfigure(std::move(options));
  });
}

}  // namespace tessera::scheduler
