#include "apiserver/controller_volume.h"

#include <utility>

#include "kube/volumes.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;
using What = VolumeStep::What;

namespace {

constexpr base::Duration kLookPeriod = base::seconds(15);
constexpr std::string_view kVolumeKey = "volume ";
constexpr std::string_view kClaimKey = "claim ";
constexpr size_t kToldMax = 10'000;

std::string volume_key(std::string_view name) {
  return std::string(kVolumeKey).append(name);
}
std::string claim_key(std::string_view key) {
  return std::string(kClaimKey).append(key);
}

bool is_waiting(const Object& claim) {
  return claim.get("status", "phase").as_string() != "Bound";
}

}  // namespace

VolumeController::VolumeController(Cluster& cluster)
    : cluster_(cluster),
      volumes_(cluster.cache("", "PersistentVolume")),
      claims_(cluster.cache("", "PersistentVolumeClaim")),
      classes_(cluster.cache("storage.k8s.io", "StorageClass")),
      pods_(cluster.cache("", "Pod")),
      queue_(cluster.executor(),
             kube::WorkQueue::Options{.name = "volume",
                                      .parallel = 1,
                                      .delay_first = base::millis(5),
                                      .delay_max = base::seconds(60)},
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  claims_.subscribe([this](const Object& before, const Object& after) { on_claim(before, after); });
  volumes_.subscribe(
      [this](const Object& before, const Object& after) { on_volume(before, after); });
  pods_.subscribe([this](const Object& before, const Object& after) { on_pod(before, after); });
  classes_.subscribe([this](const Object&, const Object&) { enqueue_waiting(); });
}

void VolumeController::start() {
  for (const auto& [key, volume] : volumes_.objects()) queue_.add(volume_key(key));
  for (const auto& [key, claim] : claims_.objects()) queue_.add(claim_key(key));
  look_around();
}

void VolumeController::on_claim(const Object& before, const Object& after) {
  const std::string key = (after ? after : before).key();
  if (after && is_waiting(after)) {
    waiting_.insert(key);
  } else {
    waiting_.erase(key);
  }
  if (!cluster_.ready()) return;
  if (after) return queue_.add(claim_key(key));
  told_.erase(std::string(before.uid()));
  const std::string volume = before.get("spec", "volumeName").str();
  if (!volume.empty()) queue_.add(volume_key(volume));
}

void VolumeController::on_volume(const Object& before, const Object& after) {
  if (!cluster_.ready()) return;
  const Object& any = after ? after : before;
  const Value& ref = any.get("spec", "claimRef");
  if (ref.is_object()) {
    queue_.add(
        claim_key(fmt::format("{}/{}", ref["namespace"].as_string(), ref["name"].as_string())));
  }
  if (!after) {
    looked_up_.erase(std::string(before.uid()));
    return;
  }
  queue_.add(volume_key(after.name()));
  // There may be claims that wait for one like it.
  const bool available = after.get("status", "phase").as_string() == "Available" &&
                         before.get("status", "phase").as_string() != "Available";
  if (available) enqueue_waiting();
}

void VolumeController::on_pod(const Object& before, const Object& after) {
  if (before && after && before.get("spec", "volumes").same_node(after.get("spec", "volumes")) &&
      before.get("spec", "nodeName") == after.get("spec", "nodeName") &&
      before.get("status", "phase") == after.get("status", "phase")) {
    return;
  }
  const Object& any = after ? after : before;
  for (const kube::ClaimUse& use : kube::claims_of(any)) {
    const std::string key = fmt::format("{}/{}", any.ns(), use.name);
    if (after) {
      users_[key].insert(after.key());
    } else if (const auto it = users_.find(key); it != users_.end()) {
      it->second.erase(before.key());
      if (it->second.empty()) users_.erase(it);
    }
    if (cluster_.ready()) queue_.add(claim_key(key));
  }
}

void VolumeController::enqueue_waiting() {
  if (!cluster_.ready()) return;
  for (const std::string& key : waiting_) queue_.add(claim_key(key));
}

// What waits is told again from time to time, as an informer that lists anew would.
void VolumeController::look_around() {
  enqueue_waiting();
  cluster_.after(kLookPeriod, [this] { look_around(); });
}

VolumeWorld VolumeController::world(const std::string& key) const {
  VolumeWorld out{volumes_.objects(), claims_.objects(), classes_.objects(), {}, cluster_.now()};
  const auto users = users_.find(key);
  if (users == users_.end()) return out;
  for (const std::string& pod : users->second) {
    if (Object found = pods_.find(pod)) out.users.push_back(std::move(found));
  }
  return out;
}

void VolumeController::sync(const std::string& key, Done done) {
  if (key.starts_with(kVolumeKey)) {
    const Object volume = volumes_.find(std::string_view(key).substr(kVolumeKey.size()));
    if (!volume) return done({});
    const bool looked_up = looked_up_.erase(std::string(volume.uid())) > 0;
    return perform(key, plan_volume(world({}), volume, looked_up), std::move(done));
  }
  const std::string name = key.substr(kClaimKey.size());
  const Object claim = claims_.find(name);
  if (!claim) return done({});
  perform(key, plan_claim(world(name), claim), std::move(done));
}

void VolumeController::perform(const std::string& key, VolumeStep step, Done done) {
  if (step.what == What::kNothing || step.what == What::kSyncClaim) {
    for (const VolumeEvent& event : step.events) tell(event);
    if (step.what == What::kSyncClaim) queue_.add(claim_key(step.key));
    return done({});
  }
  // After each write the plan is made again.
  Done written = [this, key, events = step.events,
                  done = std::move(done)](const base::Status& status) {
    if (!status) return done(status);
    for (const VolumeEvent& event : events) tell(event);
    queue_.add(key);
    done({});
  };
  const bool volume = step.what == What::kVolume || step.what == What::kVolumeStatus;
  const bool status = step.what == What::kVolumeStatus || step.what == What::kClaimStatus;
  switch (step.what) {
    case What::kLookUpClaim: {
      looked_up_.emplace(volumes_.find(std::string_view(key).substr(kVolumeKey.size())).uid());
      const size_t slash = step.key.find('/');
      return cluster_.refresh(claims_, step.key.substr(0, slash), step.key.substr(slash + 1),
                              [written] { written({}); });
    }
    case What::kDeleteVolume:
      return cluster_.remove(volumes_, Object(std::move(step.object)), {}, std::move(written));
    default:
      return cluster_.update(volume ? volumes_ : claims_, std::move(step.object),
                             status ? "status" : "", as_status(unless_gone(std::move(written))));
  }
}

// The same about the same object is said once a period.
void VolumeController::tell(const VolumeEvent& event) {
  if (told_.size() >= kToldMax) told_.clear();
  const auto [it, first] = told_.try_emplace(std::string(event.about.uid()));
  Told& last = it->second;
  if (!first && last.message == event.message && cluster_.now() - last.at < kLookPeriod) return;
  last = {event.message, cluster_.now()};
  if (event.warning) {
    cluster_.events().warning(event.about, event.reason, event.message);
  } else {
    cluster_.events().normal(event.about, event.reason, event.message);
  }
}

}  // namespace tessera::apiserver::controller
