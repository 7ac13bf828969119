// The way from a decision to a pod that has left: its Job is allowed the loss first, then it is evicted.

#include <map>

#include "base/log.h"
#include "scheduler/group_reading.h"
#include "scheduler/job_allowance.h"
#include "scheduler/scheduler_state.h"

namespace tessera::scheduler {

using kube::Object;

void Scheduler::State::start_evictor() {
  Evictor::Hooks hooks;
  hooks.accepted = [weak = weak_from_this()](const EvictDecision& decision) {
    auto self = weak.lock();
    const PodEntry* pod = self ? self->model.find(decision.pod) : nullptr;
    if (pod != nullptr && self->options.events)
      self->recorder.normal(pod->object, queueing::name_of(decision.reason), decision.why);
  };
  hooks.refused = [weak = weak_from_this()](const std::string& pod) {
    auto self = weak.lock();
    if (!self) return;
    self->model.evict_failed(pod, self->now());
    if (self->role != Role::kLeading) return self->model.may_be_victim(pod);
    self->after(self->options.engine.claim_timeout, [pod](State& s) {
      s.model.may_be_victim(pod);
      s.request_cycle();
    });
    self->request_cycle();
  };
  evictor = std::make_unique<Evictor>(client, executor, std::move(hooks));
}

// Evicts once every Job concerned has been told, or has refused to be.
void Scheduler::State::evict(const std::vector<EvictDecision>& decisions) {
  auto batch = std::make_shared<Eviction>();
  std::map<std::string, int64_t> jobs;  // "namespace/name": pods that go
  for (const EvictDecision& decision : decisions) {
    const PodEntry& pod = *model.find(decision.pod);
    batch->decisions.push_back(decision);
    for (const json::Value& owner : pod.object.metadata()["ownerReferences"].items()) {
      if (owner["controller"].as_bool() && owner["kind"].as_string() == "Job" &&
          group_of(owner["apiVersion"].as_string()) == "batch")
        ++jobs[fmt::format("{}/{}", pod.object.ns(), owner["name"].as_string())];
    }
  }
  for (const auto& [key, going] : jobs) {
    const size_t slash = key.find('/');
    const Object job = model.object("batch", "Job", key.substr(0, slash), key.substr(slash + 1));
    if (!job) continue;
    int64_t& allowed = allowances[std::string(job.uid())];
    auto patch = allowance_patch(job, allowed, going);
    if (!patch) continue;
    allowed = std::max(allowed, evictions_allowed(job)) + going;
    ++batch->jobs;
    client.merge_patch({"batch", "v1", "jobs"}, std::string(job.ns()), std::string(job.name()),
                       std::move(*patch),
                       [weak = weak_from_this(), batch](const kube::Reply& reply) {
                         auto self = weak.lock();
                         if (!self) return;
                         if (!reply)
                           base::log_info("a job is evicted from without its leave reason=\"{}\"",
                                          reply.error().message);
                         if (--batch->jobs == 0) self->evict_now(*batch);
                       });
  }
  if (batch->jobs == 0) evict_now(*batch);
}

// Those that have gone meanwhile, or are to stay, are left out.
void Scheduler::State::evict_now(const Eviction& batch) {
  std::vector<EvictDecision> decisions;
  for (const EvictDecision& decision : batch.decisions) {
    const PodEntry* pod = model.find(decision.pod);
    if (pod != nullptr && pod->uid == decision.uid && pod->leaving) decisions.push_back(decision);
  }
  if (!decisions.empty()) evictor->evict(decisions);
}

}  // namespace tessera::scheduler
