#include "sim/provisioner.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/log.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "kube/volumes.h"
#include "kube/work_queue.h"

namespace tessera::sim {
namespace {

using base::Code;
using base::Duration;
using base::Time;
using json::Value;
using kube::Object;

const kube::Gvr kClaims = kube::core_v1("persistentvolumeclaims");
const kube::Gvr kVolumes = kube::core_v1("persistentvolumes");
const kube::Gvr kClasses = {"storage.k8s.io", "v1", "storageclasses"};
constexpr std::string_view kClaimKey = "claim ";
constexpr std::string_view kVolumeKey = "volume ";
constexpr std::string_view kDriver = "simulated.tessera.dev";
constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr Duration kRetry = base::seconds(1);

std::string volume_name(const Object& claim) {
  return "pvc-" + std::string(claim.uid());
}

bool is_ours(const Object& volume) {
  return volume.annotation(kube::kProvisionedBy) == kSimulatedProvisioner;
}

bool is_local(const Object& storage_class) {
  return storage_class["parameters"]["local"].as_string() == "true";
}

// Why no volume can be made as the class says; empty: it can.
std::string trouble_of(const Object& storage_class, const Object& claim) {
  for (const json::Member& parameter : storage_class["parameters"].members()) {
    const std::string_view value = parameter.value.as_string();
    if (parameter.name() != "local") {
      return fmt::format("parameter \"{}\" is not known; the only one is \"local\"",
                         parameter.name());
    }
    if (value != "true" && value != "false") {
      return fmt::format("parameter \"local\" is \"{}\"; it must be \"true\" or \"false\"", value);
    }
  }
  if (is_local(storage_class) && !kube::waits_for_consumer(storage_class.json())) {
    return "parameter \"local\" needs volumeBindingMode WaitForFirstConsumer";
  }
  return claim.get("spec", "selector").is_object() ? "claim Selector is not supported" : "";
}

Value affinity_to(const Object& node) {
  const std::string host = node.metadata()["labels"][kHostname].str();
  const Value term = Value::object(
      {{"matchExpressions",
        Value::array({Value::object(
            {{"key", kHostname}, {"operator", "In"}, {"values", Value::array({Value(host)})}})})}});
  return Value::object(
      {{"required", Value::object({{"nodeSelectorTerms", Value::array({term})}})}});
}

Value volume_for(const Object& claim, const Object& storage_class, const Object& node) {
  const std::string name = volume_name(claim);
  const std::string policy = storage_class["reclaimPolicy"].str();
  Value spec =
      Value::object({{"capacity", claim.get("spec", "resources", "requests")},
                     {"accessModes", claim.get("spec", "accessModes")},
                     {"claimRef", Value::object({{"apiVersion", "v1"},
                                                 {"kind", "PersistentVolumeClaim"},
                                                 {"namespace", claim.ns()},
                                                 {"name", claim.name()},
                                                 {"uid", claim.uid()},
                                                 {"resourceVersion", claim.resource_version()}})},
                     {"persistentVolumeReclaimPolicy", policy.empty() ? "Delete" : policy},
                     {"storageClassName", storage_class.name()},
                     {"csi", Value::object({{"driver", kDriver}, {"volumeHandle", name}})}});
  for (const char* field : {"volumeMode", "volumeAttributesClassName"}) {
    if (claim["spec"].contains(field)) spec.set(field, claim.get("spec", field));
  }
  if (!storage_class["mountOptions"].empty()) {
    spec.set("mountOptions", storage_class["mountOptions"]);
  }
  if (is_local(storage_class)) spec.set("nodeAffinity", affinity_to(node));
  return Value::object(
      {{"apiVersion", "v1"},
       {"kind", "PersistentVolume"},
       {"metadata", Value::object({{"name", name},
                                   {"annotations", Value::object({{kube::kProvisionedBy,
                                                                   kSimulatedProvisioner}})}})},
       {"spec", std::move(spec)}});
}

Value default_class() {
  return Value::object(
      {{"apiVersion", "storage.k8s.io/v1"},
       {"kind", "StorageClass"},
       {"metadata", Value::object({{"name", "simulated"},
                                   {"annotations",
                                    Value::object({{"storageclass.kubernetes.io/is-default-class",
                                                    "true"}})}})},
       {"provisioner", kSimulatedProvisioner},
       {"reclaimPolicy", "Delete"},
       {"volumeBindingMode", "WaitForFirstConsumer"},
       {"allowVolumeExpansion", true}});
}

}  // namespace

struct Provisioner::State : std::enable_shared_from_this<Provisioner::State> {
  using Done = std::function<void(base::Status)>;

  State(kube::Client& c, base::Executor& e, const base::Clock& k, base::Random r, Options o)
      : client(c),
        executor(e),
        clock(k),
        random(r),
        options(o),
        recorder(c, k, random.fork(), std::string(kSimulatedProvisioner)) {}

  void start();
  std::unique_ptr<kube::Informer> informer(const kube::Gvr& gvr,
                                           std::function<void(State&, const Object&)> changed);
  bool synced() const;
  void on_claim(const Object& claim);
  void make_default_class();
  void sync(const std::string& key, Done done);
  void sync_claim(const std::string& key, const Object& claim, Done done);
  void provision(const std::string& key, const Object& claim, const Object& storage_class,
                 Done done);
  void grow(const std::string& key, const Object& claim, const Object& volume, Done done);
  void sync_volume(const std::string& key, const Object& volume, Done done);
  bool is_due(const std::string& key, const std::string& what);
  void refuse(const Object& claim, const char* reason, const std::string& why);
  void answer(const Done& done, const kube::Reply& reply) const;

  kube::Client& client;
  base::Executor& executor;
  const base::Clock& clock;
  base::Random random;
  Options options;
  kube::EventRecorder recorder;
  std::unique_ptr<kube::Informer> claims;
  std::unique_ptr<kube::Informer> volumes;
  std::unique_ptr<kube::Informer> classes;
  std::unique_ptr<kube::Informer> nodes;
  std::unique_ptr<kube::WorkQueue> queue;
  // What takes its time, by key: what it is and when it is done.
  std::map<std::string, std::pair<std::string, Time>> under_way;
};

std::unique_ptr<kube::Informer> Provisioner::State::informer(
    const kube::Gvr& gvr, std::function<void(State&, const Object&)> changed) {
  kube::Informer::Options what;
  what.gvr = gvr;
  kube::Informer::Handlers handlers;
  handlers.on_change = [weak = weak_from_this(), changed = std::move(changed)](
                           const Object& before, const Object& after) {
    if (const auto self = weak.lock()) changed(*self, after ? after : before);
  };
  handlers.on_synced = [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || !self->synced()) return;
    for (const auto& [key, claim] : self->claims->objects()) self->on_claim(claim);
  };
  auto made = std::make_unique<kube::Informer>(client, executor, random.fork(), what, handlers);
  made->start();
  return made;
}

void Provisioner::State::start() {
  queue = std::make_unique<kube::WorkQueue>(
      executor, kube::WorkQueue::Options{.name = "provisioner", .delay_max = base::seconds(30)},
      [this](const std::string& key, Done done) { sync(key, std::move(done)); });
  claims = informer(kClaims, [](State& s, const Object& claim) { s.on_claim(claim); });
  volumes = informer(kVolumes, [](State& s, const Object& volume) {
    s.queue->add(std::string(kVolumeKey).append(volume.name()));
    const Value& ref = volume.get("spec", "claimRef");
    if (!ref.is_object()) return;
    s.queue->add(
        fmt::format("{}{}/{}", kClaimKey, ref["namespace"].as_string(), ref["name"].as_string()));
  });
  classes = informer(kClasses, [](State& s, const Object&) {
    for (const auto& [key, claim] : s.claims->objects()) s.on_claim(claim);
  });
  nodes = informer(kube::core_v1("nodes"), [](State&, const Object&) {});
  if (options.default_class) make_default_class();
}

bool Provisioner::State::synced() const {
  return claims && volumes && classes && nodes && claims->synced() && volumes->synced() &&
         classes->synced() && nodes->synced();
}

void Provisioner::State::on_claim(const Object& claim) {
  queue->add(std::string(kClaimKey).append(claim.key()));
}

void Provisioner::State::make_default_class() {
  const auto again = [](const std::shared_ptr<State>& self) {
    self->executor.post_after(kRetry, [weak = std::weak_ptr(self)] {
      if (const auto live = weak.lock()) live->make_default_class();
    });
  };
  client.list(kClasses, {}, [weak = weak_from_this(), again](const kube::Reply& list) {
    const auto self = weak.lock();
    if (!self) return;
    if (!list) return again(self);
    if (std::ranges::any_of((*list)["items"].items(), kube::is_default_class)) return;
    self->client.create(kClasses, {}, default_class(), [weak, again](const kube::Reply& made) {
      const auto live = weak.lock();
      if (live && !made && made.error().code != Code::kAlreadyExists) again(live);
    });
  });
}

void Provisioner::State::answer(const Done& done, const kube::Reply& reply) const {
  const bool settled =
      reply || reply.error().code == Code::kAlreadyExists || reply.error().code == Code::kNotFound;
  done(settled ? base::Status() : base::Status(base::error(reply.error())));
}

void Provisioner::State::sync(const std::string& key, Done done) {
  if (!synced()) return done({});
  if (key.starts_with(kVolumeKey)) {
    const Object volume = volumes->find(std::string_view(key).substr(kVolumeKey.size()));
    if (volume && is_ours(volume)) return sync_volume(key, volume, std::move(done));
  } else {
    const Object claim = claims->find(std::string_view(key).substr(kClaimKey.size()));
    if (claim && !claim.deleting()) return sync_claim(key, claim, std::move(done));
  }
  under_way.erase(key);
  done({});
}

// True once the work, which takes its time, is done; false: the key comes again when it is.
bool Provisioner::State::is_due(const std::string& key, const std::string& what) {
  auto [it, added] = under_way.try_emplace(key, what, clock.now() + options.delay);
  if (it->second.first != what) it->second = {what, clock.now() + options.delay};
  if (it->second.second <= clock.now()) return true;
  queue->add_after(key, it->second.second - clock.now());
  return false;
}

void Provisioner::State::refuse(const Object& claim, const char* reason, const std::string& why) {
  recorder.warning(claim, reason, why);
}

void Provisioner::State::sync_claim(const std::string& key, const Object& claim, Done done) {
  const std::string name = claim.get("spec", "volumeName").str();
  if (!name.empty()) {
    const Object volume = volumes->find(name);
    const bool bound = volume && is_ours(volume) && kube::is_meant_for(volume, claim) &&
                       claim.get("status", "phase").as_string() == "Bound";
    if (bound) return grow(key, claim, volume, std::move(done));
    under_way.erase(key);
    return done({});
  }
  const Object storage_class = classes->find(kube::storage_class_of(claim.json()));
  const bool asked = claim.annotation(kube::kProvisioner) == kSimulatedProvisioner;
  if (!asked || !storage_class || storage_class["provisioner"] != Value(kSimulatedProvisioner) ||
      volumes->find(volume_name(claim))) {
    under_way.erase(key);
    return done({});
  }
  const std::string trouble = trouble_of(storage_class, claim);
  if (!trouble.empty()) {
    refuse(claim, "ProvisioningFailed",
           fmt::format("failed to provision volume with StorageClass \"{}\": {}",
                       storage_class.name(), trouble));
    return done({});
  }
  provision(key, claim, storage_class, std::move(done));
}

void Provisioner::State::provision(const std::string& key, const Object& claim,
                                   const Object& storage_class, Done done) {
  Object node;
  if (kube::waits_for_consumer(storage_class.json())) {
    const std::string chosen(claim.annotation(kube::kSelectedNode));
    if (chosen.empty()) return done({});
    node = nodes->find(chosen);
    if (!node) {
      // The scheduler is told to choose again.
      Value again = claim.json();
      again.ref("metadata", "annotations").erase(kube::kSelectedNode);
      return client.update(kClaims, std::string(claim.ns()), std::string(claim.name()),
                           std::move(again), [weak = weak_from_this(), done](const auto& reply) {
                             if (const auto self = weak.lock()) self->answer(done, reply);
                           });
    }
  }
  if (!under_way.contains(key)) {
    recorder.normal(
        claim, "Provisioning",
        fmt::format("External provisioner is provisioning volume for claim \"{}\"", claim.key()));
  }
  if (!is_due(key, "make")) return done({});
  client.create(kVolumes, {}, volume_for(claim, storage_class, node),
                [weak = weak_from_this(), key, claim, done](const kube::Reply& reply) {
                  const auto self = weak.lock();
                  if (!self) return;
                  if (reply) {
                    self->under_way.erase(key);
                    self->recorder.normal(
                        claim, "ProvisioningSucceeded",
                        fmt::format("Successfully provisioned volume {}", volume_name(claim)));
                  } else if (reply.error().code != Code::kAlreadyExists) {
                    self->refuse(claim, "ProvisioningFailed", reply.error().message);
                  }
                  self->answer(done, reply);
                });
}

// First the volume grows, then the claim says so.
void Provisioner::State::grow(const std::string& key, const Object& claim, const Object& volume,
                              Done done) {
  const Value& wanted = claim.get("spec", "resources", "requests")["storage"];
  const auto status = kube::Quantity::parse(claim.get("status", "capacity")["storage"].as_string());
  const kube::Quantity asked = kube::storage_of(claim);
  const Object storage_class = classes->find(kube::storage_class_of(claim.json()));
  const bool larger = kube::storage_of(volume) < asked;
  const bool lags = status && *status < asked;
  if ((!larger && !lags) || !storage_class["allowVolumeExpansion"].as_bool()) {
    under_way.erase(key);
    return done({});
  }
  if (larger && !is_due(key, "grow to " + wanted.str())) return done({});
  const auto then = [weak = weak_from_this(), key, claim, done, larger](const kube::Reply& reply) {
    const auto self = weak.lock();
    if (!self) return;
    if (!reply) self->refuse(claim, "VolumeResizeFailed", reply.error().message);
    if (reply && !larger) {
      self->recorder.normal(claim, "VolumeResizeSuccessful", "Resize volume succeeded");
    }
    self->answer(done, reply);
  };
  const Value capacity = Value::object({{"storage", wanted}});
  if (larger) {
    return client.merge_patch(kVolumes, {}, std::string(volume.name()),
                              Value::object({{"spec", Value::object({{"capacity", capacity}})}}),
                              then);
  }
  client.merge_patch(kClaims, std::string(claim.ns()), std::string(claim.name()),
                     Value::object({{"metadata", Value::object({{"uid", claim.uid()}})},
                                    {"status", Value::object({{"capacity", capacity}})}}),
                     then, "status");
}

void Provisioner::State::sync_volume(const std::string& key, const Object& volume, Done done) {
  const bool goes = volume.get("status", "phase").as_string() == "Released" &&
                    volume.get("spec", "persistentVolumeReclaimPolicy").as_string() == "Delete";
  if (!goes || volume.deleting()) {
    under_way.erase(key);
    return done({});
  }
  if (!is_due(key, "delete")) return done({});
  client.remove(
      kVolumes, {}, std::string(volume.name()),
      [weak = weak_from_this(), done](const kube::Reply& reply) {
        if (const auto self = weak.lock()) self->answer(done, reply);
      },
      Value::object({{"preconditions", Value::object({{"uid", volume.uid()}})}}));
}

Provisioner::Provisioner(kube::Client& client, base::Executor& executor, const base::Clock& clock,
                         base::Random random, Options options)
    : state_(std::make_shared<State>(client, executor, clock, random, options)) {}

Provisioner::~Provisioner() = default;

void Provisioner::start() {
  state_->executor.post([state = state_] { state->start(); });
}

}  // namespace tessera::sim
