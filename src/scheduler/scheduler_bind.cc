// The way from a decision to a bound pod: its claims first, then the bind, and where the answer is in doubt a look at the pod.

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "scheduler/scheduler_state.h"

namespace tessera::scheduler {

using base::Code;
using base::Duration;
using json::Value;
using kube::Object;

namespace {

// So often a bind is sent again to the place that was decided, which others may have been evicted for.
constexpr int kBindsAgain = 3;

// The same bind may do when it is sent again.
bool may_pass(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout || code == Code::kTooManyRequests;
}

}  // namespace

void Scheduler::State::place(const BindDecision& decision) {
  const PodEntry& pod = *model.find(decision.pod);
  kube::Request binding = binding_of(pod, decision);
  const Object node = nodes->find(model.node_name(decision.placement.node));
  if (volumes->all_bound(pod.object, node)) return bind(std::move(binding));
  volumes->bind(pod.object, node,
                [weak = weak_from_this(), key = decision.pod, uid = pod.uid,
                 binding](const base::Status& status) {
                  if (auto self = weak.lock()) self->volumes_done(key, uid, binding, status);
                });
}

void Scheduler::State::volumes_done(const std::string& key, const std::string& uid,
                                    kube::Request binding, const base::Status& status) {
  const PodEntry* pod = model.find(key);
  if (pod == nullptr || pod->uid != uid || !pod->assumed) return;
  if (!status) return give_up(key, "binding volumes: " + status.error().message);
  bind(std::move(binding));
  send_binds();
}

kube::Request Scheduler::State::binding_of(const PodEntry& pod,
                                           const BindDecision& decision) const {
  const std::string node(model.node_name(decision.placement.node));
  Value annotations = Value::object();
  for (const auto& [name, value] : model.annotations_of(decision)) annotations.set(name, value);
  kube::Request request = pod_request(kube::Verb::kCreate, std::string(pod.object.ns()),
                                      std::string(pod.object.name()), "binding");
  request.body = Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Binding"},
       {"metadata", Value::object({{"name", request.name},
                                   {"namespace", request.ns},
                                   {"uid", pod.uid},
                                   {"annotations", std::move(annotations)}})},
       {"target", Value::object({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}})}});
  return request;
}

void Scheduler::State::bind(kube::Request binding) {
  binds.push_back(std::move(binding));
}

void Scheduler::State::send_binds() {
  while (!binds.empty() && binds_in_flight < options.binds_in_flight_max) {
    kube::Request binding = std::move(binds.front());
    binds.pop_front();
    const std::string key = binding.ns + "/" + binding.name;
    const std::string uid = binding.body["metadata"]["uid"].str();
    const PodEntry* pod = model.find(key);
    if (pod == nullptr || pod->uid != uid || !pod->assumed) continue;
    ++binds_in_flight;
    client.call(binding,
                [weak = weak_from_this(), key, binding, term = terms](const kube::Reply& reply) {
                  if (auto self = weak.lock()) self->bind_done(key, binding, term, reply);
                });
  }
}

void Scheduler::State::bind_done(const std::string& key, const kube::Request& binding,
                                 uint64_t term, const kube::Reply& reply) {
  --binds_in_flight;
  send_binds();
  counts.bound += reply ? 1 : 0;
  counts.bind_errors += reply ? 0 : 1;
  const PodEntry* pod = model.find(key);
  if (pod == nullptr || pod->uid != binding.body["metadata"]["uid"].as_string()) return;
  if (reply) {
    tellings.erase(key);
    if (options.events && acting()) {
      recorder.normal(pod->object, "Scheduled",
                      fmt::format("Successfully assigned {} to {}", key,
                                  binding.body["target"]["name"].as_string()));
    }
    return;
  }
  base::log_debug("bind failed pod={} reason=\"{}\"", key, reply.error().message);
  // The bind may have happened all the same: the place is kept until the API says.
  settle(key, {binding, reply.error(), term}, kBackOffFirst);
}

void Scheduler::State::settle(const std::string& key, const FailedBind& bind, Duration wait) {
  client.get(kube::core_v1("pods"), bind.binding.ns, bind.binding.name,
             [weak = weak_from_this(), key, bind, wait](const kube::Reply& reply) {
               if (auto self = weak.lock()) self->settled(key, bind, wait, reply);
             });
}

void Scheduler::State::settled(const std::string& key, const FailedBind& failed, Duration wait,
                               const kube::Reply& reply) {
  const std::string_view uid = failed.binding.body["metadata"]["uid"].as_string();
  const PodEntry* pod = model.find(key);
  if (pod == nullptr || pod->uid != uid || !pod->assumed) return;
  if (!reply && reply.error().code != Code::kNotFound) {
    return after(wait, [key, failed, wait](State& s) {
      s.settle(key, failed, std::min(wait * 2, kBackOffMax));
    });
  }
  const Object found = reply ? Object(*reply) : Object();
  const bool there = found && found.uid() == uid && !found.deleting();
  // Another that led meanwhile may have given the place away.
  const bool own = acting() && failed.term == terms;
  if (own && there && found.get("spec", "nodeName").as_string().empty() &&
      may_pass(failed.error.code) && ++tellings[key].failures <= kBindsAgain) {
    return after(back_off(tellings[key].failures), [key, failed](State& s) {
      if (failed.term != s.terms) return s.settle(key, failed, kBackOffFirst);
      const PodEntry* still = s.model.find(key);
      if (still == nullptr || !still->member.valid()) return;
      const core::NodeId node = s.model.engine().member(still->member).placement.node;
      if (s.model.node_name(node) != failed.binding.body["target"]["name"].as_string()) return;
      s.bind(failed.binding);
      s.send_binds();
    });
  }
  if (!found || found.uid() != uid || found.get("spec", "nodeName").as_string().empty())
    return give_up(key, "binding it failed: " + failed.error.message);
  if (model.on_pod(key, found, now())) request_cycle();
}

// Not bound after all: the place is free again and the pod waits its turn.
void Scheduler::State::give_up(const std::string& key, const std::string& problem) {
  model.bind_failed(key, problem, now());
  const PodEntry* pod = model.find(key);
  if (pod == nullptr) return;
  if (waits(pod)) tell(*pod, model.why(*pod));
  request_cycle();
  after(back_off(++tellings[key].failures), [key, uid = pod->uid](State& s) {
    const PodEntry* again = s.model.find(key);
    if (again == nullptr || again->uid != uid) return;
    if (s.model.set_hold(key, "", s.now())) s.request_cycle();
  });
}

}  // namespace tessera::scheduler
