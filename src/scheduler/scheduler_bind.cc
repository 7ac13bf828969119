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

Duration back_off(int failures) {
  Duration wait = kBackOffFirst;
  for (int i = 1; i < failures && wait < kBackOffMax; ++i) wait = wait * 2;
  return std::min(wait, kBackOffMax);
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
  kube::Request request;
  request.verb = kube::Verb::kCreate;
  request.gvr = kube::core_v1("pods");
  request.ns = pod.object.ns();
  request.name = pod.object.name();
  request.subresource = "binding";
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
    const std::string node = binding.body["target"]["name"].str();
    const PodEntry* pod = model.find(key);
    if (pod == nullptr || pod->uid != uid || !pod->assumed) continue;
    ++binds_in_flight;
    client.call(std::move(binding),
                [weak = weak_from_this(), key, uid, node](const kube::Reply& reply) {
                  if (auto self = weak.lock()) self->bind_done(key, uid, node, reply);
                });
  }
}

void Scheduler::State::bind_done(const std::string& key, const std::string& uid,
                                 const std::string& node, const kube::Reply& reply) {
  --binds_in_flight;
  send_binds();
  counts.bound += reply ? 1 : 0;
  counts.bind_errors += reply ? 0 : 1;
  const PodEntry* pod = model.find(key);
  if (pod == nullptr || pod->uid != uid) return;
  if (reply) {
    tellings.erase(key);
    if (options.events) {
      recorder.normal(pod->object, "Scheduled",
                      fmt::format("Successfully assigned {} to {}", key, node));
    }
    return;
  }
  base::log_debug("bind failed pod={} reason=\"{}\"", key, reply.error().message);
  // The bind may have happened all the same: the place is kept until the API says.
  settle(key, uid, kBackOffFirst, reply.error().message);
}

void Scheduler::State::settle(const std::string& key, const std::string& uid, Duration wait,
                              const std::string& problem) {
  const size_t slash = key.find('/');
  client.get(kube::core_v1("pods"), key.substr(0, slash), key.substr(slash + 1),
             [weak = weak_from_this(), key, uid, wait, problem](const kube::Reply& reply) {
               if (auto self = weak.lock()) self->settled(key, uid, wait, problem, reply);
             });
}

void Scheduler::State::settled(const std::string& key, const std::string& uid, Duration wait,
                               const std::string& problem, const kube::Reply& reply) {
  const PodEntry* pod = model.find(key);
  if (pod == nullptr || pod->uid != uid || !pod->assumed) return;
  if (!reply && reply.error().code != Code::kNotFound) {
    return after(wait, [key, uid, wait, problem](State& s) {
      s.settle(key, uid, std::min(wait * 2, kBackOffMax), problem);
    });
  }
  const Object found = reply ? Object(*reply) : Object();
  if (!found || found.uid() != uid || found.get("spec", "nodeName").as_string().empty())
    return give_up(key, "binding it failed: " + problem);
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
