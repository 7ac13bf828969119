#include "apiserver/controller_garbage.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::string_view kDefinitions = "apiextensions.k8s.io";

const Value& owners_of(const Object& object) {
  return object.metadata()["ownerReferences"];
}

std::string_view group_of(const Value& reference) {
  const std::string_view version = reference["apiVersion"].as_string();
  const size_t slash = version.find('/');
  return slash == std::string_view::npos ? std::string_view() : version.substr(0, slash);
}

OwnerState state_of(const Object& owner) {
  return owner.deleting() && has_finalizer(owner, kForeground) ? OwnerState::kGoing
                                                               : OwnerState::kSolid;
}

}  // namespace

GarbagePlan plan_garbage(const std::vector<std::pair<std::string, OwnerState>>& owners,
                         bool has_dependents) {
  GarbagePlan plan;
  if (owners.empty()) return plan;
  bool solid = false;
  bool going = false;
  for (const auto& [uid, state] : owners) {
    solid |= state == OwnerState::kSolid;
    going |= state == OwnerState::kGoing;
    if (state != OwnerState::kSolid) plan.drop.push_back(uid);
  }
  if (solid) {
    if (!plan.drop.empty()) plan.act = GarbagePlan::Act::kDropReferences;
    return plan;
  }
  plan.act =
      going && has_dependents ? GarbagePlan::Act::kDeleteForeground : GarbagePlan::Act::kDelete;
  plan.drop.clear();
  return plan;
}

GarbageCollector::GarbageCollector(Cluster& cluster, const Kinds& kinds)
    : cluster_(cluster),
      kinds_(kinds),
      queue_(cluster, "garbage",
             [this](const std::string& id, Done done) { sync(id, std::move(done)); }) {
  for (Cache* cache : cluster.caches()) watch(*cache);
  if (Cache* definitions = cluster.find_cache(kDefinitions, "CustomResourceDefinition")) {
    definitions->subscribe(
        [this](const Object& before, const Object& after) { see_definition(before, after); });
  }
}

void GarbageCollector::watch(Cache& cache) {
  caches_.push_back(&cache);
  cache.subscribe([this, i = caches_.size() - 1](const Object& before, const Object& after) {
    on_change(i, before, after);
  });
}

// A definition came, changed or went, and its kind with it.
void GarbageCollector::see_definition(const Object& before, const Object& after) {
  if (!started_) return;
  const Object& definition = after ? after : before;
  const std::string name(definition.name());
  const Value& spec = definition.get("spec");
  const Kind* kind = nullptr;
  for (const Value& version : spec["versions"].items()) {
    if (!after || kind != nullptr) break;
    kind = kinds_.find({spec["group"].str(), version["name"].str(), spec["names"]["plural"].str()});
  }
  const auto known = customs_.find(name);
  if (known != customs_.end()) {
    if (kind != nullptr && known->second->kind().version == kind->version) return;
    cluster_.drop(*known->second);
    customs_.erase(known);
  }
  if (kind == nullptr || kind->custom == nullptr) return;
  Cache& cache = cluster_.add(*kind);
  watch(cache);
  customs_[name] = &cache;
}

void GarbageCollector::start() {
  started_ = true;
  if (Cache* definitions = cluster_.find_cache(kDefinitions, "CustomResourceDefinition")) {
    for (const auto& [key, object] : definitions->objects()) see_definition({}, object);
  }
  for (size_t i = 0; i < caches_.size(); ++i) {
    for (const auto& [key, object] : caches_[i]->objects()) {
      if (object.deleting() || any_unknown(object)) queue_.enqueue(id_of(i, object));
    }
  }
}

std::string GarbageCollector::id_of(size_t cache, const Object& object) const {
  return std::to_string(cache) + "|" + object.key();
}

GarbageCollector::Item GarbageCollector::resolve(const std::string& id) const {
  const size_t bar = id.find('|');
  size_t cache = 0;
  std::from_chars(id.data(), id.data() + bar, cache);
  return {caches_[cache], caches_[cache]->find(std::string_view(id).substr(bar + 1))};
}

void GarbageCollector::index(const std::string& id, const Object& object, bool add) {
  for (const Value& owner : owners_of(object).items()) {
    const std::string uid = owner["uid"].str();
    if (add) {
      dependents_[uid].insert(id);
      continue;
    }
    const auto it = dependents_.find(uid);
    if (it == dependents_.end()) continue;
    it->second.erase(id);
    if (it->second.empty()) dependents_.erase(it);
  }
}

void GarbageCollector::on_change(size_t cache, const Object& before, const Object& after) {
  const std::string id = id_of(cache, after ? after : before);
  const bool same_owners = before && after && owners_of(before) == owners_of(after);
  if (!same_owners) {
    if (before) index(id, before, false);
    if (after) index(id, after, true);
    if (before) enqueue_going_owners(before);
    if (after && any_unknown(after)) queue_.enqueue(id);
  }
  if (after && after.deleting() &&
      (has_finalizer(after, kOrphan) || has_finalizer(after, kForeground))) {
    queue_.enqueue(id);
  }
  if (after) return;
  const auto it = dependents_.find(std::string(before.uid()));
  if (it == dependents_.end()) return;
  for (const std::string& dependent : it->second) queue_.enqueue(dependent);
}

// An owner that waits for its dependents has one less.
void GarbageCollector::enqueue_going_owners(const Object& dependent) {
  for (const Value& reference : owners_of(dependent).items()) {
    const Cache* owners = cluster_.find_cache(group_of(reference), reference["kind"].as_string());
    if (owners == nullptr) continue;
    const Object owner = owners->find(owner_key(dependent, reference, *owners));
    if (!owner || !owner.deleting()) continue;
    const auto at = std::ranges::find(caches_, owners) - caches_.begin();
    queue_.enqueue(id_of(static_cast<size_t>(at), owner));
  }
}

std::string GarbageCollector::owner_key(const Object& dependent, const Value& reference,
                                        const Cache& owners) const {
  const std::string name = reference["name"].str();
  return owners.kind().namespaced ? std::string(dependent.ns()) + "/" + name : name;
}

// The owner stands in the cache, or is of a kind that nobody here can look up.
bool GarbageCollector::is_known(const Object& dependent, const Value& reference) const {
  const Cache* owners = cluster_.find_cache(group_of(reference), reference["kind"].as_string());
  if (owners == nullptr) return true;
  const Object owner = owners->find(owner_key(dependent, reference, *owners));
  return owner && owner.uid() == reference["uid"].as_string() &&
         state_of(owner) == OwnerState::kSolid;
}

bool GarbageCollector::any_unknown(const Object& object) const {
  return std::ranges::any_of(owners_of(object).items(),
                             [&](const Value& reference) { return !is_known(object, reference); });
}

void GarbageCollector::look_up(const Object& object,
                               std::function<void(base::Result<Owners>)> done) {
  auto owners = std::make_shared<Owners>();
  std::vector<Action> actions;
  for (const Value& reference : owners_of(object).items()) {
    const std::string uid = reference["uid"].str();
    if (is_known(object, reference)) {
      owners->emplace_back(uid, OwnerState::kSolid);
      continue;
    }
    const Cache* cache = cluster_.find_cache(group_of(reference), reference["kind"].as_string());
    const std::string ns = cache->kind().namespaced ? std::string(object.ns()) : std::string();
    if (cache->kind().namespaced && ns.empty()) {
      owners->emplace_back(uid, OwnerState::kGone);  // an owner in no namespace cannot be
      continue;
    }
    actions.push_back([this, owners, uid, cache, ns, name = reference["name"].str()](Done each) {
      cluster_.get(*cache, ns, name, [owners, uid, each](const base::Result<Object>& owner) {
        if (!owner && owner.error().code != base::Code::kNotFound) {
          return each(base::error(owner.error()));
        }
        const bool there = owner && owner->uid() == uid;
        owners->emplace_back(uid, there ? state_of(*owner) : OwnerState::kGone);
        each({});
      });
    });
  }
  run_all(std::move(actions), [owners, done = std::move(done)](const base::Status& status) {
    if (!status) return done(base::error(status.error()));
    done(std::move(*owners));
  });
}

void GarbageCollector::sync(const std::string& id, Done done) {
  const Item item = resolve(id);
  if (!item.object) return done({});
  if (item.object.deleting()) {
    if (has_finalizer(item.object, kOrphan)) return orphan(item, std::move(done));
    if (has_finalizer(item.object, kForeground)) return foreground(item, std::move(done));
    return done({});
  }
  if (owners_of(item.object).empty()) return done({});
  look_up(item.object, [this, id, uid = std::string(item.object.uid()),
                        done = std::move(done)](const base::Result<Owners>& owners) {
    if (!owners) return done(base::error(owners.error()));
    act(id, plan_garbage(*owners, dependents_.contains(uid)), done);
  });
}

void GarbageCollector::act(const std::string& id, const GarbagePlan& plan, Done done) {
  const Item item = resolve(id);
  if (!item.object || plan.act == GarbagePlan::Act::kNothing) return done({});
  if (plan.act == GarbagePlan::Act::kDropReferences) {
    return drop_references(item, plan.drop, std::move(done));
  }
  const bool in_front =
      plan.act == GarbagePlan::Act::kDeleteForeground || has_finalizer(item.object, kForeground);
  const char* policy = has_finalizer(item.object, kOrphan) ? "Orphan"
                       : in_front                          ? "Foreground"
                                                           : "Background";
  // Whoever changed the object meanwhile may have given it another owner.
  Value options = Value::object({{"propagationPolicy", policy}});
  options.ref("preconditions").set("resourceVersion", item.object.resource_version());
  cluster_.remove(*item.cache, item.object, std::move(options), std::move(done));
}

void GarbageCollector::orphan(const Item& item, Done done) {
  std::vector<Action> actions;
  const std::string uid(item.object.uid());
  const auto it = dependents_.find(uid);
  if (it != dependents_.end()) {
    for (const std::string& id : it->second) {
      const Item dependent = resolve(id);
      if (!dependent.object) continue;
      actions.push_back([this, dependent, uid](Done each) {
        drop_references(dependent, {uid}, std::move(each));
      });
    }
  }
  run_all(std::move(actions), [this, item, done = std::move(done)](base::Status status) {
    if (!status) return done(std::move(status));
    drop_finalizer(item, kOrphan, done);
  });
}

void GarbageCollector::foreground(const Item& item, Done done) {
  const std::string uid(item.object.uid());
  bool blocked = false;
  const auto it = dependents_.find(uid);
  if (it != dependents_.end()) {
    for (const std::string& id : it->second) {
      const Item dependent = resolve(id);
      for (const Value& reference : owners_of(dependent.object).items()) {
        if (reference["uid"].as_string() != uid) continue;
        blocked |= reference["blockOwnerDeletion"].as_bool();
      }
      if (!dependent.object.deleting()) queue_.enqueue(id);
    }
  }
  if (blocked) return done({});
  drop_finalizer(item, kForeground, std::move(done));
}

// The list without what `goes` names; the member goes with its last element.
void GarbageCollector::drop_members(const Item& item, const char* field,
                                    const std::function<bool(const Value&)>& goes, Done done) {
  Value object = item.object.json();
  Value left = Value::array();
  for (const Value& each : object["metadata"][field].items()) {
    if (!goes(each)) left.push_back(each);
  }
  if (left.empty()) {
    object.ref("metadata").erase(field);
  } else {
    object.ref("metadata", field) = std::move(left);
  }
  cluster_.update(*item.cache, std::move(object), {}, as_status(unless_gone(std::move(done))));
}

void GarbageCollector::drop_finalizer(const Item& item, std::string_view finalizer, Done done) {
  if (item.cache->kind().custom != nullptr) {  // takes no strategic merge patch
    return drop_members(
        item, "finalizers",
        [word = std::string(finalizer)](const Value& each) { return each.as_string() == word; },
        std::move(done));
  }
  Value patch;
  patch.ref("metadata").set("$deleteFromPrimitiveList/finalizers", Value::array({finalizer}));
  cluster_.patch(*item.cache, item.object, std::move(patch), {},
                 as_status(unless_gone(std::move(done))));
}

void GarbageCollector::drop_references(const Item& item, const std::vector<std::string>& uids,
                                       Done done) {
  if (item.cache->kind().custom != nullptr) {
    return drop_members(
        item, "ownerReferences",
        [&uids](const Value& each) {
          return std::ranges::find(uids, each["uid"].str()) != uids.end();
        },
        std::move(done));
  }
  Value patch;
  Value& references = patch.ref("metadata", "ownerReferences");
  for (const std::string& uid : uids) {
    references.push_back(Value::object({{"$patch", "delete"}, {"uid", uid}}));
  }
  cluster_.patch(*item.cache, item.object, std::move(patch), {},
                 as_status(unless_gone(std::move(done))));
}

}  // namespace tessera::apiserver::controller
