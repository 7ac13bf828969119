#include "scheduler/volume_binder.h"

#include <set>
#include <utility>

#include "kube/informer.h"
#include "kube/volumes.h"

namespace tessera::scheduler {

using base::Code;
using kube::Object;

namespace {

const kube::Gvr kClaims = kube::core_v1("persistentvolumeclaims");
const kube::Gvr kVolumes = kube::core_v1("persistentvolumes");
const kube::Gvr kClasses = {"storage.k8s.io", "v1", "storageclasses"};

}  // namespace

struct VolumeBinder::State : std::enable_shared_from_this<VolumeBinder::State> {
  State(kube::Client& c, base::Executor& e, Options o, Hooks h)
      : client(c), executor(e), options(o), hooks(std::move(h)) {}

  struct Wait {
    uint64_t id = 0;
    Object pod;
    Object node;
    std::vector<VolumePromise> promises;
    size_t writing = 0;
    std::function<void(base::Status)> done;
  };

  VolumeWorld world() const { return {claims->objects(), volumes->objects(), classes->objects()}; }
  std::unique_ptr<kube::Informer> informer(const kube::Gvr& gvr, base::Random random,
                                           void (State::*changed)(const Object&));
  void on_claim(const Object& claim);
  void on_volume(const Object& volume);
  void on_class(const Object&) { wake_all(); }
  void wake_all();
  void wake(const std::set<std::string>& pods);
  void write(const std::string& key, size_t index);
  void written(const std::string& key, uint64_t id, size_t index, const kube::Reply& reply);
  void look(const std::string& key);
  void finish(const std::string& key, base::Status status);

  kube::Client& client;
  base::Executor& executor;
  Options options;
  Hooks hooks;
  std::unique_ptr<kube::Informer> claims;
  std::unique_ptr<kube::Informer> volumes;
  std::unique_ptr<kube::Informer> classes;
  std::map<std::string, Wait> waits;                    // by pod
  std::map<std::string, std::set<std::string>> parked;  // pods by claim
  uint64_t ids = 0;
};

std::unique_ptr<kube::Informer> VolumeBinder::State::informer(
    const kube::Gvr& gvr, base::Random random, void (State::*changed)(const Object&)) {
  kube::Informer::Options what;
  what.gvr = gvr;
  kube::Informer::Handlers handlers;
  handlers.on_change = [weak = weak_from_this(), changed](const Object& before,
                                                          const Object& after) {
    const auto self = weak.lock();
    if (self) ((*self).*changed)(after ? after : before);
  };
  handlers.on_synced = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->hooks.synced();
  };
  return std::make_unique<kube::Informer>(client, executor, random, what, handlers);
}

void VolumeBinder::State::on_claim(const Object& claim) {
  if (const auto it = parked.find(claim.key()); it != parked.end()) {
    wake(std::exchange(it->second, {}));
    parked.erase(claim.key());
  }
  std::vector<std::string> keys;
  for (const auto& [key, wait] : waits) {
    if (wait.pod.ns() == claim.ns()) keys.push_back(key);
  }
  for (const std::string& key : keys) look(key);
}

// Whoever waits may find room in it, or on its nodes.
void VolumeBinder::State::on_volume(const Object&) {
  wake_all();
  std::vector<std::string> keys;
  for (const auto& [key, wait] : waits) keys.push_back(key);
  for (const std::string& key : keys) look(key);
}

void VolumeBinder::State::wake_all() {
  for (const auto& [claim, pods] : std::exchange(parked, {})) wake(pods);
}

void VolumeBinder::State::wake(const std::set<std::string>& pods) {
  for (const std::string& pod : pods) hooks.wake(pod);
}

void VolumeBinder::State::write(const std::string& key, size_t index) {
  Wait& wait = waits.at(key);
  const VolumePromise& promise = wait.promises[index];
  const Object object(promise.write);
  const bool claim = promise.volume.empty();
  client.update(claim ? kClaims : kVolumes, std::string(object.ns()), std::string(object.name()),
                promise.write,
                [weak = weak_from_this(), key, id = wait.id, index](const kube::Reply& reply) {
                  if (const auto self = weak.lock()) self->written(key, id, index, reply);
                });
}

void VolumeBinder::State::written(const std::string& key, uint64_t id, size_t index,
                                  const kube::Reply& reply) {
  const auto it = waits.find(key);
  if (it == waits.end() || it->second.id != id) return;
  // A lost answer is no harm: what was written counts at the next try.
  if (!reply) return finish(key, base::error(reply.error()));
  it->second.promises[index].version = version_of(*reply);
  --it->second.writing;
  look(key);
}

void VolumeBinder::State::look(const std::string& key) {
  const auto it = waits.find(key);
  if (it == waits.end() || it->second.writing > 0) return;
  const auto ready = volumes_ready(world(), it->second.pod, it->second.node, it->second.promises);
  if (!ready) return finish(key, base::error(ready.error()));
  if (*ready) finish(key, {});
}

void VolumeBinder::State::finish(const std::string& key, base::Status status) {
  const auto it = waits.find(key);
  if (it == waits.end()) return;
  const auto done = std::move(it->second.done);
  waits.erase(it);
  done(std::move(status));
}

VolumeBinder::VolumeBinder(kube::Client& client, base::Executor& executor, Options options,
                           Hooks hooks)
    : state_(std::make_shared<State>(client, executor, options, std::move(hooks))) {}

VolumeBinder::~VolumeBinder() = default;

void VolumeBinder::start(base::Random random) {
  State& s = *state_;
  s.claims = s.informer(kClaims, random.fork(), &State::on_claim);
  s.volumes = s.informer(kVolumes, random.fork(), &State::on_volume);
  s.classes = s.informer(kClasses, random.fork(), &State::on_class);
  s.claims->start();
  s.volumes->start();
  s.classes->start();
}

bool VolumeBinder::synced() const {
  return state_->claims && state_->claims->synced() && state_->volumes->synced() &&
         state_->classes->synced();
}

VolumeNeeds VolumeBinder::needs(const Object& pod, const Objects& nodes,
                                core::Interner& names) const {
  return volume_needs(state_->world(), pod, nodes, names);
}

bool VolumeBinder::all_bound(const Object& pod, const Object& node) const {
  if (kube::claims_of(pod).empty()) return true;
  const auto ready = volumes_ready(state_->world(), pod, node, {});
  return ready && *ready;
}

void VolumeBinder::bind(const Object& pod, const Object& node,
                        std::function<void(base::Status)> done) {
  auto promises = volume_promises(state_->world(), pod, node);
  if (!promises) return done(base::error(promises.error()));
  const std::string key = pod.key();
  State::Wait wait{++state_->ids, pod, node, std::move(*promises), 0, std::move(done)};
  std::vector<size_t> to_write;
  for (size_t i = 0; i < wait.promises.size(); ++i) {
    if (!wait.promises[i].write.is_null()) to_write.push_back(i);
  }
  wait.writing = to_write.size();
  const uint64_t id = wait.id;
  state_->waits.insert_or_assign(key, std::move(wait));
  for (const size_t index : to_write) state_->write(key, index);
  state_->executor.post_after(state_->options.timeout, [weak = std::weak_ptr(state_), key, id] {
    const auto self = weak.lock();
    if (!self) return;
    const auto it = self->waits.find(key);
    if (it == self->waits.end() || it->second.id != id) return;
    self->finish(key, base::error(Code::kTimeout, "the claims were not bound in time"));
  });
  state_->look(key);
}

bool VolumeBinder::forget(const std::string& pod_key) {
  return state_->waits.erase(pod_key) > 0;
}

std::vector<std::string> VolumeBinder::forget_all() {
  std::vector<std::string> keys;
  for (const auto& [key, wait] : std::exchange(state_->waits, {})) keys.push_back(key);
  return keys;
}

void VolumeBinder::set_timeout(base::Duration timeout) {
  state_->options.timeout = timeout;
}

void VolumeBinder::node_gone(std::string_view node) {
  std::vector<std::string> keys;
  for (const auto& [key, wait] : state_->waits) {
    if (wait.node.name() == node) keys.push_back(key);
  }
  for (const std::string& key : keys) {
    state_->finish(key, base::error(Code::kConflict, "node \"{}\" is gone", node));
  }
}

void VolumeBinder::park(const Object& pod) {
  for (const kube::ClaimUse& use : kube::claims_of(pod)) {
    state_->parked[std::string(pod.ns()) + "/" + use.name].insert(pod.key());
  }
}

void VolumeBinder::unpark(const Object& pod) {
  for (const kube::ClaimUse& use : kube::claims_of(pod)) {
    const auto it = state_->parked.find(std::string(pod.ns()) + "/" + use.name);
    if (it == state_->parked.end()) continue;
    it->second.erase(pod.key());
    if (it->second.empty()) state_->parked.erase(it);
  }
}

}  // namespace tessera::scheduler
