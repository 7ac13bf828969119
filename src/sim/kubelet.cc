#include "sim/kubelet.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apiserver/api_errors.h"
#include "base/log.h"
#include "kube/informer.h"
#include "kube/pod.h"
#include "kube/pod_resources.h"
#include "kube/volumes.h"
#include "sim/kubelet_logs.h"
#include "sim/kubelet_node.h"

namespace tessera::sim {
namespace {

using base::Code;
using base::Duration;
using base::Time;
using json::Value;
using kube::Object;

constexpr Duration kRetryFirst = base::millis(200);
constexpr Duration kRetryMax = base::seconds(10);

}  // namespace

// One pod on one node, from binding to the end of its object.
struct PodEntry {
  Object object;  // newest seen
  std::optional<PodRun> run;
  size_t node = 0;
  uint64_t reported = 0;  // revision of the last status that the API took
  bool writing = false;
  bool holds = false;  // counted on the node, until the API knows that the pod is over
  bool released = false;
  bool removing = false;
  int64_t grace = INT64_MAX;  // seconds, of the stop under way
  Time timer{INT64_MAX};      // when the next step is due
  Duration retry = kRetryFirst;
  std::string uid;
};

struct Kubelets::State : std::enable_shared_from_this<Kubelets::State> {
  State(kube::Client& c, base::Executor& e, const base::Clock& k, base::Random r, Fleet f,
        Options o)
      : client(c), executor(e), clock(k), random(r), options(o) {
    nodes.reserve(f.nodes.size());
    for (size_t i = 0; i < f.nodes.size(); ++i) {
      by_name.emplace(f.nodes[i].name, i);
      nodes.emplace_back(std::move(f.nodes[i]), i);
    }
  }

  void register_node(size_t index, Duration retry);
  void refresh_node(size_t index);
  void drop_strangers();
  void create_lease(size_t index);
  void renew_lease(size_t index);
  void heartbeat(size_t index);
  void report_devices(size_t index);
  void report_health(size_t index);
  void on_pod(const Object& before, const Object& after);
  void sync(const std::string& key);
  void accept(PodEntry& entry, Time now);
  tl::expected<PodDevices, KubeletNode::Refusal> admit(const PodEntry& entry,
                                                       const kube::ResourceList& requests);
  void hold_for_claims(const std::string& key, PodEntry& entry, Time now);
  void on_claim(const Object& claim);
  void stop_if_deleted(PodEntry& entry, Time now);
  void schedule(const std::string& key, PodEntry& entry, std::optional<Time> due);
  void report(const std::string& key);
  void reported(const std::string& key, const std::string& uid, uint64_t revision,
                const kube::Reply& reply);
  void remove(const std::string& key);
  void release(PodEntry& entry);
  std::optional<LogReadings::Seen> look(const std::string& key, const std::string& uid) const;
  bool alive(size_t node) const { return !nodes[node].failed; }

  // Runs on the executor unless the kubelets are gone by then.
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
  std::vector<KubeletNode> nodes;
  std::map<std::string, size_t, std::less<>> by_name;
  std::unique_ptr<kube::Informer> informer;
  std::unique_ptr<kube::Informer> claims;
  std::map<std::string, std::set<std::string>> held;  // pods by the claim that they wait for
  std::unordered_map<std::string, PodEntry> pods;
  std::shared_ptr<LogReadings> logs;
  size_t registered = 0;
};

// ---- nodes

void Kubelets::State::register_node(size_t index, Duration retry) {
  KubeletNode& node = nodes[index];
  node.ready_since = clock.now();
  auto weak = weak_from_this();
  client.create(kube::core_v1("nodes"), {}, node_object(node.spec, clock.now()),
                [weak, index, retry](kube::Reply reply) {
                  auto self = weak.lock();
                  if (!self) return;
                  if (!reply && reply.error().code != Code::kAlreadyExists) {
                    self->after(retry, [index, retry](State& s) {
                      s.register_node(index, std::min(retry * 2, kRetryMax));
                    });
                    return;
                  }
                  ++self->registered;
                  if (!reply) self->refresh_node(index);  // a node of an earlier run
                  if (!self->options.leases) return;
                  self->create_lease(index);
                });
}

// Brings a node of an earlier run to what the fleet says now: labels that are the fleet's are replaced.
void Kubelets::State::refresh_node(size_t index) {
  auto weak = weak_from_this();
  client.get(kube::core_v1("nodes"), {}, nodes[index].spec.name, [weak, index](kube::Reply reply) {
    auto self = weak.lock();
    if (!self) return;
    if (!reply) {
      return self->after(kRetryFirst, [index](State& s) { s.refresh_node(index); });
    }
    const Value wanted = node_object(self->nodes[index].spec, self->clock.now());
    Value labels = wanted["metadata"]["labels"];
    for (const json::Member& old : (*reply)["metadata"]["labels"].members()) {
      const bool of_fleet = old.name().starts_with("nvidia.com/") ||
                            old.name().starts_with("amd.com/") ||
                            old.name().starts_with("tessera.dev/");
      if (of_fleet && !labels.contains(old.name())) labels.set(old.name(), Value());
    }
    Value patch = Value::object(
        {{"metadata", Value::object({{"labels", std::move(labels)},
                                     {"annotations", wanted["metadata"]["annotations"]}})}});
    self->client.merge_patch(kube::core_v1("nodes"), {}, self->nodes[index].spec.name,
                             std::move(patch), [weak, index](const kube::Reply& patched) {
                               auto again = weak.lock();
                               if (!again) return;
                               if (patched) return again->report_health(index);
                               again->after(kRetryFirst,
                                            [index](State& s) { s.refresh_node(index); });
                             });
  });
}

// Nodes of an earlier run that the fleet no longer has leave the cluster.
void Kubelets::State::drop_strangers() {
  auto weak = weak_from_this();
  client.list(kube::core_v1("nodes"), {}, [weak](kube::Reply reply) {
    auto self = weak.lock();
    if (!self) return;
    if (!reply) return self->after(kRetryFirst, [](State& s) { s.drop_strangers(); });
    for (const Value& item : (*reply)["items"].items()) {
      const Object node(item);
      const bool simulated =
          node.get("status", "nodeInfo", "kubeletVersion").as_string().ends_with("-sim");
      if (!simulated || self->by_name.contains(node.name())) continue;
      base::log_info("node of an earlier fleet removed name={}", node.name());
      self->client.remove(kube::core_v1("nodes"), {}, std::string(node.name()),
                          [](const kube::Reply&) {});
    }
  });
}

void Kubelets::State::create_lease(size_t index) {
  auto weak = weak_from_this();
  client.create(
      {"coordination.k8s.io", "v1", "leases"}, "kube-node-lease",
      nodes[index].lease(options.lease_duration, clock.now()), [weak, index](kube::Reply reply) {
        auto self = weak.lock();
        if (!self) return;
        if (!reply && reply.error().code != Code::kAlreadyExists) {
          self->after(kRetryFirst, [index](State& s) { s.create_lease(index); });
          return;
        }
        // Spread over the period, so that a thousand nodes do not write at the same moment.
        const auto spread = [&](Duration d) {
          return base::nanos(static_cast<int64_t>(self->random.below(static_cast<uint64_t>(d.ns))));
        };
        self->after(spread(self->options.lease_period),
                    [index](State& s) { s.renew_lease(index); });
        self->after(spread(self->options.heartbeat_period),
                    [index](State& s) { s.heartbeat(index); });
      });
}

void Kubelets::State::renew_lease(size_t index) {
  if (alive(index)) {
    client.merge_patch(
        {"coordination.k8s.io", "v1", "leases"}, "kube-node-lease", nodes[index].spec.name,
        Value::object(
            {{"spec", Value::object({{"renewTime", base::to_rfc3339_micro(clock.now())}})}}),
        [](const kube::Reply&) {});  // the next renewal is the retry
  }
  after(options.lease_period, [index](State& s) { s.renew_lease(index); });
}

void Kubelets::State::heartbeat(size_t index) {
  if (alive(index)) report_devices(index);
  after(options.heartbeat_period, [index](State& s) { s.heartbeat(index); });
}

void Kubelets::State::report_devices(size_t index) {
  auto weak = weak_from_this();
  client.merge_patch(
      kube::core_v1("nodes"), {}, nodes[index].spec.name, nodes[index].status_patch(clock.now()),
      [weak, index](kube::Reply reply) {
        auto self = weak.lock();
        if (!self || reply || !self->alive(index)) return;
        self->after(base::seconds(1), [index](State& s) {
          if (s.alive(index)) s.report_devices(index);
        });
      },
      "status");
}

// Which devices are sick goes first, so that nobody who sees the smaller allocatable has to guess.
void Kubelets::State::report_health(size_t index) {
  client.merge_patch(kube::core_v1("nodes"), {}, nodes[index].spec.name,
                     nodes[index].health_patch(),
                     [weak = weak_from_this(), index](kube::Reply reply) {
                       auto self = weak.lock();
                       if (!self || !self->alive(index)) return;
                       if (reply) return self->report_devices(index);
                       self->after(base::seconds(1), [index](State& s) {
                         if (s.alive(index)) s.report_health(index);
                       });
                     });
}

// ---- pods

void Kubelets::State::on_pod(const Object& before, const Object& after_change) {
  const Object& any = after_change ? after_change : before;
  const std::string key = any.key();
  const auto it = pods.find(key);
  if (!after_change) {
    if (it == pods.end()) return;
    release(it->second);
    pods.erase(it);
    logs->feed(key);
    return;
  }
  const auto node = by_name.find(after_change.get("spec", "nodeName").as_string());
  if (node == by_name.end()) return;
  if (it != pods.end() && it->second.uid != after_change.uid()) {
    release(it->second);  // deleted and made anew between two events
    pods.erase(it);
  }
  PodEntry& entry = pods[key];
  entry.object = after_change;
  entry.node = node->second;
  entry.uid = after_change.uid();
  sync(key);
}

// Refuses or takes a pod that is new on its node.
void Kubelets::State::accept(PodEntry& entry, Time now) {
  const std::string_view phase = entry.object.get("status", "phase").as_string();
  auto pod = kube::decode_pod(entry.object);
  auto run =
      pod ? PodRun::make(*pod, options.times) : base::Result<PodRun>(tl::unexpect, pod.error());
  if (!run) {
    kube::Pod bare;
    bare.containers.push_back({});
    entry.run = *PodRun::make(bare, options.times);
    entry.run->reject("InvalidPod", run.error().message, now);
    return;
  }
  entry.run = std::move(*run);
  if (phase == "Succeeded" || phase == "Failed") {
    entry.released = true;  // finished before this kubelet started
    entry.run->reject("", "", now);
    entry.reported = entry.run->revision();
    return;
  }
  KubeletNode& node = nodes[entry.node];
  auto devices = admit(entry, kube::pod_requests(*pod));
  if (!devices) {
    const auto& [reason, message] = devices.error();
    entry.run->reject(reason, message, now);
    entry.released = true;
    return;
  }
  entry.holds = true;
  entry.run->admit(std::move(*devices), node.next_pod_ip(), node.ip(), now);
  if (entry.object["status"].contains("startTime")) entry.run->recover(entry.object, now);
}

// Pods that are over keep their place until the API shows it, or until it is needed: whoever bound this pod has then seen
// more than the news that have reached this kubelet.
tl::expected<PodDevices, KubeletNode::Refusal> Kubelets::State::admit(
    const PodEntry& entry, const kube::ResourceList& requests) {
  KubeletNode& node = nodes[entry.node];
  auto devices = node.admit(entry.uid, requests, entry.run->ask());
  if (devices) return devices;
  bool freed = false;
  for (auto& [key, other] : pods) {
    if (other.node != entry.node || !other.holds || other.released || !other.run->over()) continue;
    release(other);
    freed = true;
  }
  return freed ? node.admit(entry.uid, requests, entry.run->ask()) : std::move(devices);
}

// Containers start once every claim that the pod names is bound.
void Kubelets::State::hold_for_claims(const std::string& key, PodEntry& entry, Time now) {
  const auto uses = kube::claims_of(entry.object);
  if (uses.empty() || entry.run->over()) return;
  bool missing = false;
  for (const kube::ClaimUse& use : uses) {
    const std::string name = fmt::format("{}/{}", entry.object.ns(), use.name);
    if (claims->find(name).get("status", "phase").as_string() == "Bound") continue;
    missing = true;
    held[name].insert(key);
  }
  entry.run->hold(missing, now);
}

void Kubelets::State::on_claim(const Object& claim) {
  const auto it = held.find(claim.key());
  if (it == held.end()) return;
  const std::set<std::string> keys = std::exchange(it->second, {});
  held.erase(it);
  for (const std::string& key : keys) sync(key);
}

void Kubelets::State::stop_if_deleted(PodEntry& entry, Time now) {
  if (!entry.object.deleting() || entry.run->over()) return;
  const int64_t grace = std::clamp<int64_t>(
      entry.object.metadata()["deletionGracePeriodSeconds"].as_int(30), 0, 1'000'000'000);
  if (entry.run->stopping() && grace >= entry.grace) return;
  entry.grace = grace;
  entry.run->stop(base::seconds(grace), now);
}

void Kubelets::State::sync(const std::string& key) {
  const auto it = pods.find(key);
  if (it == pods.end() || !alive(it->second.node)) return;
  PodEntry& entry = it->second;
  const Time now = clock.now();
  if (!entry.run) accept(entry, now);
  hold_for_claims(key, entry, now);
  stop_if_deleted(entry, now);
  const std::optional<Time> next = entry.run->step(now);
  const std::string_view phase = entry.object.get("status", "phase").as_string();
  const bool known_over =
      phase == "Succeeded" || phase == "Failed" || entry.run->revision() == entry.reported;
  if (entry.run->over() && known_over) release(entry);
  schedule(key, entry, next);
  logs->feed(key);
  if (entry.run->revision() != entry.reported) {
    report(key);
  } else if (entry.run->over() && entry.object.deleting()) {
    remove(key);
  }
}

void Kubelets::State::schedule(const std::string& key, PodEntry& entry, std::optional<Time> due) {
  if (!due || entry.timer == *due) return;
  entry.timer = *due;
  const Duration wait = *due - clock.now();
  after(wait, [key, uid = entry.uid, at = *due](State& s) {
    const auto it = s.pods.find(key);
    if (it == s.pods.end() || it->second.uid != uid || it->second.timer != at) return;
    it->second.timer = Time{INT64_MAX};
    s.sync(key);
  });
}

void Kubelets::State::report(const std::string& key) {
  PodEntry& entry = pods.at(key);
  if (entry.writing) return;
  entry.writing = true;
  const uint64_t revision = entry.run->revision();
  kube::Request request;
  request.verb = kube::Verb::kPatch;
  request.patch_type = kube::PatchType::kStrategic;
  request.gvr = kube::core_v1("pods");
  request.ns = entry.object.ns();
  request.name = entry.object.name();
  request.subresource = "status";
  request.body = Value::object(
      {{"metadata", Value::object({{"uid", entry.uid}})}, {"status", entry.run->status()}});
  client.call(std::move(request),
              [weak = weak_from_this(), key, uid = entry.uid, revision](const kube::Reply& reply) {
                if (auto self = weak.lock()) self->reported(key, uid, revision, reply);
              });
}

void Kubelets::State::reported(const std::string& key, const std::string& uid, uint64_t revision,
                               const kube::Reply& reply) {
  const auto it = pods.find(key);
  if (it == pods.end() || it->second.uid != uid) return;
  PodEntry& entry = it->second;
  entry.writing = false;
  if (!reply && reply.error().code == Code::kNotFound) return;  // the watch will say so
  if (!reply) {
    entry.retry = std::min(entry.retry * 2, kRetryMax);
    after(entry.retry, [key, uid](State& s) {
      const auto again = s.pods.find(key);
      if (again != s.pods.end() && again->second.uid == uid) s.sync(key);
    });
    return;
  }
  entry.retry = kRetryFirst;
  entry.reported = revision;
  sync(key);
}

// The last act: the object of a stopped pod goes.
void Kubelets::State::remove(const std::string& key) {
  PodEntry& entry = pods.at(key);
  if (entry.removing || entry.writing) return;
  entry.removing = true;
  Value options_body = Value::object(
      {{"gracePeriodSeconds", 0}, {"preconditions", Value::object({{"uid", entry.uid}})}});
  client.remove(
      kube::core_v1("pods"), std::string(entry.object.ns()), std::string(entry.object.name()),
      [weak = weak_from_this(), key, uid = entry.uid](kube::Reply reply) {
        auto self = weak.lock();
        if (!self || reply || reply.error().code == Code::kNotFound) return;
        self->after(base::seconds(1), [key, uid](State& s) {
          const auto it = s.pods.find(key);
          if (it == s.pods.end() || it->second.uid != uid) return;
          it->second.removing = false;
          s.sync(key);
        });
      },
      std::move(options_body));
}

void Kubelets::State::release(PodEntry& entry) {
  if (!entry.holds || entry.released) return;
  entry.released = true;
  nodes[entry.node].release(entry.uid);
}

// What a kubelet knows of a pod: of one that was over before it started, what the API says.
std::optional<LogReadings::Seen> Kubelets::State::look(const std::string& key,
                                                       const std::string& uid) const {
  const auto it = pods.find(key);
  if (it == pods.end() || it->second.uid != uid || !alive(it->second.node)) return std::nullopt;
  const PodEntry& entry = it->second;
  const bool own = entry.run && entry.run->admitted();
  return LogReadings::Seen{entry.object, own ? entry.run->status() : entry.object["status"]};
}

// ---- the public face

Kubelets::Kubelets(kube::Client& client, base::Executor& executor, const base::Clock& clock,
                   base::Random random, Fleet fleet, Options options)
    : state_(std::make_shared<State>(client, executor, clock, random, std::move(fleet), options)) {
  state_->logs = std::make_shared<LogReadings>(
      executor, clock,
      [state = std::weak_ptr(state_)](const std::string& key, const std::string& uid) {
        const auto live = state.lock();
        return live ? live->look(key, uid) : std::nullopt;
      });
}

Kubelets::~Kubelets() = default;

void Kubelets::start() {
  state_->executor.post([state = state_] {
    state->drop_strangers();
    for (size_t i = 0; i < state->nodes.size(); ++i) state->register_node(i, kRetryFirst);
    kube::Informer::Options options;
    options.gvr = kube::core_v1("pods");
    options.field_selector = "spec.nodeName!=";
    kube::Informer::Handlers handlers;
    handlers.on_change = [weak = std::weak_ptr(state)](const Object& before, const Object& after) {
      if (auto self = weak.lock()) self->on_pod(before, after);
    };
    state->informer = std::make_unique<kube::Informer>(state->client, state->executor,
                                                       state->random.fork(), options, handlers);
    kube::Informer::Options of_claims;
    of_claims.gvr = kube::core_v1("persistentvolumeclaims");
    kube::Informer::Handlers on_claims;
    on_claims.on_change = [weak = std::weak_ptr(state)](const Object& before, const Object& after) {
      if (auto self = weak.lock()) self->on_claim(after ? after : before);
    };
    state->claims = std::make_unique<kube::Informer>(state->client, state->executor,
                                                     state->random.fork(), of_claims, on_claims);
    state->claims->start();
    state->informer->start();
  });
}

bool Kubelets::registered() const {
  return state_->registered == state_->nodes.size();
}

void Kubelets::read(apiserver::LogQuery query, std::shared_ptr<apiserver::LogReader> reader) {
  state_->executor.post(
      [state = state_, query = std::move(query), reader = std::move(reader)]() mutable {
        const auto node = state->by_name.find(query.node);
        if (node == state->by_name.end() || !state->alive(node->second)) {
          return reader->fail(apiserver::plain_error("no kubelet answers on node " + query.node));
        }
        state->logs->read(std::move(query), std::move(reader));
      });
}

void Kubelets::fail_node(std::string_view node) {
  const auto it = state_->by_name.find(node);
  if (it != state_->by_name.end()) state_->nodes[it->second].failed = true;
}

void Kubelets::restore_node(std::string_view node) {
  const auto it = state_->by_name.find(node);
  if (it == state_->by_name.end() || state_->alive(it->second)) return;
  state_->nodes[it->second].failed = false;
  state_->nodes[it->second].ready_since = state_->clock.now();
  state_->report_health(it->second);
  std::vector<std::string> keys;
  for (auto& [key, entry] : state_->pods) {
    if (entry.node != it->second) continue;
    if (entry.run) entry.run->crash(state_->clock.now());
    entry.timer = Time{INT64_MAX};
    keys.push_back(key);
  }
  std::ranges::sort(keys);  // the map's order is not part of a seed
  for (const std::string& key : keys) state_->sync(key);
}

bool Kubelets::node_failed(std::string_view node) const {
  const auto it = state_->by_name.find(node);
  return it != state_->by_name.end() && state_->nodes[it->second].failed;
}

void Kubelets::set_gpu_healthy(std::string_view node, int gpu, bool healthy) {
  const auto it = state_->by_name.find(node);
  if (it == state_->by_name.end() || gpu < 0 || gpu >= state_->nodes[it->second].spec.gpus) return;
  state_->nodes[it->second].pool.set_healthy(gpu, healthy);
  if (state_->alive(it->second)) state_->report_health(it->second);
}

size_t Kubelets::pods() const {
  return state_->pods.size();
}

size_t Kubelets::running() const {
  size_t count = 0;
  for (const auto& [key, entry] : state_->pods) {
    if (entry.run && entry.run->phase() == "Running") ++count;
  }
  return count;
}

}  // namespace tessera::sim
