#include "scheduler/evictor.h"

#include <algorithm>

#include "base/log.h"
#include "scheduler/pod_requests.h"

namespace tessera::scheduler {
namespace {

using base::Code;

constexpr int kRefusalsMax = 4;

}  // namespace

struct Evictor::State : std::enable_shared_from_this<Evictor::State> {
  State(kube::Client& c, base::Executor& e, Hooks h)
      : client(c), executor(e), hooks(std::move(h)) {}

  struct One {
    EvictDecision decision;
    std::string batch;
    int refusals = 0;
    int tries = 0;
  };
  struct Batch {
    size_t asked_first = 0;           // of those that a budget covers, not yet answered
    std::vector<std::string> others;  // go when that is 0
    bool refused = false;
  };

  void send(const std::string& pod);
  void answered(const std::string& pod, const std::string& uid, const kube::Reply& reply);
  void again(const std::string& pod, const std::string& uid, int tries);
  void went(const std::string& pod);
  void stays(const std::string& pod);
  void first_answered(const std::string& batch);

  kube::Client& client;
  base::Executor& executor;
  Hooks hooks;
  std::map<std::string, One> ones;
  std::map<std::string, Batch> batches;
  uint64_t made = 0;
};

void Evictor::State::send(const std::string& pod) {
  const auto found = ones.find(pod);
  if (found == ones.end()) return;
  const One& one = found->second;
  const size_t slash = pod.find('/');
  kube::Request request =
      pod_request(kube::Verb::kCreate, pod.substr(0, slash), pod.substr(slash + 1), "eviction");
  using json::Value;
  request.body = Value::object(
      {{"apiVersion", "policy/v1"},
       {"kind", "Eviction"},
       {"metadata", Value::object({{"name", request.name}, {"namespace", request.ns}})},
       {"deleteOptions",
        Value::object({{"preconditions", Value::object({{"uid", one.decision.uid}})}})}});
  client.call(std::move(request),
              [weak = weak_from_this(), pod, uid = one.decision.uid](const kube::Reply& reply) {
                if (auto self = weak.lock()) self->answered(pod, uid, reply);
              });
}

void Evictor::State::answered(const std::string& pod, const std::string& uid,
                              const kube::Reply& reply) {
  const auto found = ones.find(pod);
  if (found == ones.end() || found->second.decision.uid != uid) return;
  One& one = found->second;
  if (reply || reply.error().code == Code::kNotFound) return went(pod);
  const Code code = reply.error().code;
  // Another pod has the name by now, or the object does not allow it: asking again changes nothing.
  const bool hopeless = code == Code::kForbidden || code == Code::kInvalid ||
                        code == Code::kBadRequest || code == Code::kConflict ||
                        code == Code::kInternal;
  if (code == Code::kTooManyRequests || hopeless) ++one.refusals;
  if (one.refusals >= kRefusalsMax || code == Code::kForbidden || code == Code::kInvalid) {
    base::log_info("eviction refused pod={} reason=\"{}\"", pod, reply.error().message);
    return stays(pod);
  }
  again(pod, uid, ++one.tries);
}

void Evictor::State::again(const std::string& pod, const std::string& uid, int tries) {
  executor.post_after(back_off(tries), [weak = weak_from_this(), pod, uid] {
    auto self = weak.lock();
    if (!self) return;
    const auto found = self->ones.find(pod);
    if (found != self->ones.end() && found->second.decision.uid == uid) self->send(pod);
  });
}

void Evictor::State::went(const std::string& pod) {
  const auto found = ones.find(pod);
  const One one = std::move(found->second);
  ones.erase(found);
  hooks.accepted(one.decision);
  if (one.decision.budgeted) first_answered(one.batch);
}

void Evictor::State::stays(const std::string& pod) {
  const auto found = ones.find(pod);
  const One one = std::move(found->second);
  ones.erase(found);
  if (const auto batch = batches.find(one.batch); batch != batches.end())
    batch->second.refused = true;
  hooks.refused(pod);
  if (one.decision.budgeted) first_answered(one.batch);
}

void Evictor::State::first_answered(const std::string& name) {
  const auto found = batches.find(name);
  if (found == batches.end() || --found->second.asked_first > 0) return;
  const Batch batch = std::move(found->second);
  batches.erase(found);
  for (const std::string& pod : batch.others) {
    if (!ones.contains(pod)) continue;
    if (!batch.refused) {
      send(pod);
      continue;
    }
    ones.erase(pod);
    hooks.refused(pod);
  }
}

Evictor::Evictor(kube::Client& client, base::Executor& executor, Hooks hooks)
    : state_(std::make_shared<State>(client, executor, std::move(hooks))) {}

Evictor::~Evictor() = default;

void Evictor::evict(const std::vector<EvictDecision>& decisions) {
  std::map<std::string, std::string> names;  // a group may be made room for more than once
  std::vector<std::string> now;
  for (const EvictDecision& decision : decisions) {
    std::string& name = names[decision.batch];
    if (name.empty()) name = decision.batch + "/" + std::to_string(++state_->made);
    state_->ones[decision.pod] = {decision, name, 0, 0};
    State::Batch& batch = state_->batches[name];
    if (decision.budgeted) {
      ++batch.asked_first;
      now.push_back(decision.pod);
    } else {
      batch.others.push_back(decision.pod);
    }
  }
  for (const auto& [asked, name] : names) {
    const auto found = state_->batches.find(name);
    if (found->second.asked_first > 0) continue;
    now.insert(now.end(), found->second.others.begin(), found->second.others.end());
    state_->batches.erase(found);
  }
  for (const std::string& pod : now) state_->send(pod);
}

void Evictor::forget(const std::string& pod) {
  const auto found = state_->ones.find(pod);
  if (found == state_->ones.end()) return;
  const State::One one = std::move(found->second);
  state_->ones.erase(found);
  if (one.decision.budgeted) state_->first_answered(one.batch);
}

void Evictor::forget_all() {
  state_->batches.clear();
  for (const auto& [pod, one] : std::exchange(state_->ones, {})) state_->hooks.refused(pod);
}

size_t Evictor::in_flight() const {
  return state_->ones.size();
}

}  // namespace tessera::scheduler
