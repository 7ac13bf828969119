#include "apiserver/controllers_cluster.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"

namespace tessera::apiserver::controller {
namespace {

using json::Value;
using kube::Object;

constexpr size_t kGoneMax = 16'384;
constexpr base::Duration kConfirmPeriod = base::seconds(10);
constexpr base::Duration kRefreshFirst = base::millis(100);
constexpr base::Duration kRefreshMax = base::seconds(5);

// The write may have been done all the same, or the cache is behind.
bool needs_refresh(base::Code code) {
  switch (code) {
    case base::Code::kTimeout:
    case base::Code::kUnavailable:
    case base::Code::kInternal:
    case base::Code::kConflict:
    case base::Code::kAlreadyExists:
    case base::Code::kNotFound:
      return true;
    default:
      return false;
  }
}

// A reply to a delete that leaves the object there for now.
bool still_there(const Object& reply) {
  return reply.deleting() &&
         (!reply.metadata()["finalizers"].empty() || !reply.get("spec", "finalizers").empty() ||
          reply.metadata()["deletionGracePeriodSeconds"].as_int() > 0);
}

std::string key_of(std::string_view ns, std::string_view name) {
  std::string key(ns);
  if (!key.empty()) key += '/';
  return key.append(name);
}

}  // namespace

void run_all(std::vector<Action> actions, Done done) {
  if (actions.empty()) return done({});
  struct State {
    size_t left;
    base::Status status;
    Done done;
  };
  auto state = std::make_shared<State>(State{actions.size(), {}, std::move(done)});
  for (Action& action : actions) {
    action([state](base::Status status) {
      if (!status && state->status) state->status = std::move(status);
      if (--state->left == 0) state->done(std::move(state->status));
    });
  }
}

namespace {

void run_batches(std::vector<Action> actions, size_t size, size_t factor, Done done) {
  if (actions.empty()) return done({});
  const auto split = actions.begin() + static_cast<ptrdiff_t>(std::min(size, actions.size()));
  std::vector<Action> batch(std::make_move_iterator(actions.begin()),
                            std::make_move_iterator(split));
  actions.erase(actions.begin(), split);
  run_all(std::move(batch), [rest = std::move(actions), size, factor,
                             done = std::move(done)](base::Status status) mutable {
    if (!status) return done(std::move(status));
    run_batches(std::move(rest), size * factor, factor, std::move(done));
  });
}

}  // namespace

void run_slow_start(std::vector<Action> actions, Done done) {
  run_batches(std::move(actions), 1, 2, std::move(done));
}

void run_in_order(std::vector<Action> actions, Done done) {
  run_batches(std::move(actions), 1, 1, std::move(done));
}

uint64_t version_of(const Object& object) {
  const std::string_view text = object.resource_version();
  uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

Object Cache::find(std::string_view key) const {
  const auto it = objects_.find(key);
  return it == objects_.end() ? Object() : it->second;
}

void Cache::emit(const Object& before, const Object& after) {
  for (const Handler& handler : handlers_) handler(before, after);
}

void Cache::put(const Object& object) {
  Object& at = objects_[object.key()];
  const Object before = std::exchange(at, object);
  if (before && before.uid() != object.uid()) {
    emit(before, {});
    emit({}, object);
    return;
  }
  emit(before, object);
}

void Cache::drop(std::string_view key) {
  const auto it = objects_.find(key);
  if (it == objects_.end()) return;
  const Object before = std::move(it->second);
  objects_.erase(it);
  emit(before, {});
}

void Cache::bury(std::string_view uid) {
  if (!gone_.emplace(uid).second) return;
  gone_by_age_.emplace_back(uid);
  if (gone_by_age_.size() <= kGoneMax) return;
  gone_.erase(gone_by_age_.front());
  gone_by_age_.pop_front();
}

void Cache::observe(const Object& before, const Object& after) {
  const Object& shown = after ? after : before;
  const std::string key = shown.key();
  const Object known = find(key);
  if (before && (!after || after.uid() != before.uid())) {
    bury(before.uid());
    if (known && known.uid() == before.uid()) drop(key);
  }
  if (!after || gone_.contains(std::string(after.uid()))) return;
  unconfirmed_.erase(key);
  if (known && version_of(known) >= version_of(after)) return;
  put(after);
}

bool Cache::learn(const Object& object) {
  if (gone_.contains(std::string(object.uid()))) return true;
  const std::string key = object.key();
  const Object known = find(key);
  if (known && version_of(known) >= version_of(object)) return true;
  const bool is_new = !known || known.uid() != object.uid();
  put(object);
  if (is_new) unconfirmed_[key] = object.uid();
  return !is_new;
}

void Cache::forget(std::string_view key, std::string_view uid) {
  bury(uid);
  const auto it = objects_.find(key);
  if (it != objects_.end() && it->second.uid() == uid) drop(key);
}

kube::EventRecorder& Events::recorder(const Object& about) {
  std::string name;
  if (about.kind() == "Pod") {
    name = "taint-eviction";
  } else if (about.kind() == "PersistentVolumeClaim" || about.kind() == "PersistentVolume") {
    name = "persistentvolume";
  } else {
    for (const char c : about.kind()) {
      name += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
  }
  return recorder(name + "-controller");
}

kube::EventRecorder& Events::recorder(const std::string& name) {
  const auto at = recorders_.find(name);
  if (at != recorders_.end()) return at->second;
  return recorders_.try_emplace(name, client_, clock_, random_.fork(), name).first->second;
}

void Events::normal(const Object& about, std::string_view reason, std::string_view message) {
  recorder(about).normal(about, reason, message);
}

void Events::warning(const Object& about, std::string_view reason, std::string_view message) {
  recorder(about).warning(about, reason, message);
}

void Events::warning_of(const std::string& component, const Object& about, std::string_view reason,
                        std::string_view message) {
  recorder(component).warning(about, reason, message);
}

Cluster::Cluster(kube::Client& client, base::Executor& executor, const base::Clock& clock,
                 base::Random random, const Kinds& kinds)
    : client_(client),
      executor_(executor),
      clock_(clock),
      random_(random),
      events_(client, clock, random_.fork()) {
  for (const Kind* kind : kinds.all()) {
    const bool kept = kind->kind != "Event" && !kind->virtual_create && !kind->view;
    if (!kept || kind->custom != nullptr) continue;
    entries_.push_back({std::make_unique<Cache>(*kind), nullptr, false});
  }
}

void Cluster::start(std::function<void()> ready) {
  on_ready_ = std::move(ready);
  // A job's status may speak of pods: who sees the job must see them. Hence pods are listed after everything else.
  for (Entry& entry : entries_) {
    if (entry.cache->kind().kind != "Pod") start_informer(entry);
  }
}

void Cluster::start_informer(Entry& entry) {
  Cache* cache = entry.cache.get();
  kube::Informer::Handlers handlers;
  handlers.on_change = [cache](const Object& before, const Object& after) {
    cache->observe(before, after);
  };
  handlers.on_synced = [this] { on_synced(); };
  kube::Informer::Options options;
  options.gvr = cache->kind().gvr();
  entry.informer = std::make_unique<kube::Informer>(client_, executor_, random_.fork(),
                                                    std::move(options), std::move(handlers));
  entry.informer->start();
}

Cache& Cluster::add(const Kind& kind) {
  entries_.push_back({std::make_unique<Cache>(kind), nullptr, false});
  start_informer(entries_.back());
  return *entries_.back().cache;
}

void Cluster::drop(Cache& cache) {
  const auto entry =
      std::ranges::find_if(entries_, [&](const Entry& each) { return each.cache.get() == &cache; });
  if (entry == entries_.end()) return;
  entry->dropped = true;
  entry->informer.reset();
  const Cache::Objects objects = cache.objects();
  for (const auto& [key, object] : objects) cache.observe(object, {});
}

void Cluster::on_synced() {
  if (ready_) return;
  ++synced_;
  if (synced_ + 1 == entries_.size()) {
    const auto pods = std::ranges::find_if(
        entries_, [](const Entry& entry) { return entry.cache->kind().kind == "Pod"; });
    if (pods != entries_.end()) start_informer(*pods);
  }
  if (synced_ != entries_.size()) return;
  ready_ = true;
  on_ready_();
}

Cache* Cluster::find_cache(std::string_view group, std::string_view kind) {
  for (const Entry& entry : entries_) {
    if (!entry.dropped && entry.cache->kind().kind == kind && entry.cache->kind().group == group) {
      return entry.cache.get();
    }
  }
  return nullptr;
}

Cache& Cluster::cache(std::string_view group, std::string_view kind) {
  Cache* found = find_cache(group, kind);
  TS_CHECK(found != nullptr, "no kind {} in group \"{}\"", kind, group);
  return *found;
}

std::vector<Cache*> Cluster::caches() {
  std::vector<Cache*> out;
  for (const Entry& entry : entries_) out.push_back(entry.cache.get());
  return out;
}

void Cluster::after(base::Duration delay, std::function<void()> task) {
  executor_.post_after(delay, [weak = weak_from_this(), task = std::move(task)] {
    if (const auto self = weak.lock()) task();
  });
}

void Cluster::call(kube::Request request, std::function<void(kube::Reply)> done) {
  client_.call(std::move(request),
               [weak = weak_from_this(), done = std::move(done)](kube::Reply reply) {
                 if (const auto self = weak.lock()) done(std::move(reply));
               });
}

void Cluster::learn(Cache& cache, const Object& object) {
  if (object.name().empty()) return;
  // The last finalizer of what is being deleted went: so did the object.
  if (object.deleting() && !still_there(object)) return cache.forget(object.key(), object.uid());
  if (cache.learn(object) || to_confirm_.contains(&cache)) return;
  to_confirm_[&cache] = {};
  after(kConfirmPeriod, [this, at = &cache] { confirm(*at); });
}

// What the informer has not shown in a whole period is looked at: it may have come and gone between two lists.
void Cluster::confirm(Cache& cache) {
  const std::vector<std::string> old = std::exchange(to_confirm_[&cache], {});
  for (const std::string& key : old) {
    const Object object = cache.find(key);
    if (!cache.unconfirmed().contains(key)) continue;
    if (!object) {
      cache.unconfirmed().erase(key);
      continue;
    }
    refresh(cache, std::string(object.ns()), std::string(object.name()), [] {});
  }
  if (cache.unconfirmed().empty()) {
    to_confirm_.erase(&cache);
    return;
  }
  for (const auto& [key, uid] : cache.unconfirmed()) to_confirm_[&cache].push_back(key);
  after(kConfirmPeriod, [this, at = &cache] { confirm(*at); });
}

void Cluster::get(const Cache& cache, std::string ns, std::string name, ObjectDone done) {
  kube::Request request;
  request.verb = kube::Verb::kGet;
  request.gvr = cache.kind().gvr();
  request.ns = std::move(ns);
  request.name = std::move(name);
  call(std::move(request), [done = std::move(done)](kube::Reply reply) {
    if (!reply) return done(base::error(reply.error()));
    done(Object(std::move(*reply)));
  });
}

void Cluster::refresh(Cache& cache, std::string ns, std::string name, std::function<void()> done) {
  refresh_again(cache, std::move(ns), std::move(name), kRefreshFirst, std::move(done));
}

void Cluster::refresh_again(Cache& cache, std::string ns, std::string name, base::Duration delay,
                            std::function<void()> done) {
  const std::string key = key_of(ns, name);
  const std::string uid(cache.find(key).uid());
  get(cache, ns, name,
      [this, at = &cache, ns, name, key, uid, delay,
       done = std::move(done)](base::Result<Object> reply) {
        if (reply) {
          learn(*at, *reply);
          return done();
        }
        if (reply.error().code == base::Code::kNotFound) {
          if (!uid.empty()) at->forget(key, uid);
          at->unconfirmed().erase(key);
          return done();
        }
        after(delay, [this, at, ns, name, delay, done] {
          refresh_again(*at, ns, name, std::min(delay * 2, kRefreshMax), done);
        });
      });
}

void Cluster::finish(Cache& cache, std::string ns, std::string name, kube::Reply reply,
                     ObjectDone done) {
  if (reply) {
    Object object(std::move(*reply));
    learn(cache, object);
    return done(std::move(object));
  }
  if (!needs_refresh(reply.error().code)) return done(base::error(reply.error()));
  refresh(cache, std::move(ns), std::move(name),
          [error = std::move(reply.error()), done = std::move(done)] { done(base::error(error)); });
}

void Cluster::create(Cache& cache, Value object, ObjectDone done) {
  kube::Request request;
  request.verb = kube::Verb::kCreate;
  request.gvr = cache.kind().gvr();
  request.ns = object.get("metadata", "namespace").str();
  std::string ns = request.ns;
  std::string name = object.get("metadata", "name").str();
  TS_CHECK(!name.empty(), "a controller names what it makes, so that a lost reply can be settled");
  request.body = std::move(object);
  call(std::move(request), [this, at = &cache, ns = std::move(ns), name = std::move(name),
                            done = std::move(done)](kube::Reply reply) mutable {
    finish(*at, std::move(ns), std::move(name), std::move(reply), std::move(done));
  });
}

void Cluster::update(Cache& cache, Value object, std::string subresource, ObjectDone done) {
  kube::Request request;
  request.verb = kube::Verb::kUpdate;
  request.gvr = cache.kind().gvr();
  request.ns = object.get("metadata", "namespace").str();
  request.name = object.get("metadata", "name").str();
  request.subresource = std::move(subresource);
  request.body = std::move(object);
  std::string ns = request.ns;
  std::string name = request.name;
  call(std::move(request), [this, at = &cache, ns = std::move(ns), name = std::move(name),
                            done = std::move(done)](kube::Reply reply) mutable {
    finish(*at, std::move(ns), std::move(name), std::move(reply), std::move(done));
  });
}

void Cluster::patch(Cache& cache, const Object& object, Value patch, std::string subresource,
                    ObjectDone done) {
  kube::Request request;
  request.verb = kube::Verb::kPatch;
  request.patch_type = kube::PatchType::kStrategic;
  request.gvr = cache.kind().gvr();
  request.ns = object.ns();
  request.name = object.name();
  request.subresource = std::move(subresource);
  patch.ref("metadata").set("uid", object.uid());
  request.body = std::move(patch);
  std::string ns = request.ns;
  std::string name = request.name;
  call(std::move(request), [this, at = &cache, ns = std::move(ns), name = std::move(name),
                            done = std::move(done)](kube::Reply reply) mutable {
    finish(*at, std::move(ns), std::move(name), std::move(reply), std::move(done));
  });
}

void Cluster::remove(Cache& cache, const Object& object, Value options, Done done) {
  kube::Request request;
  request.verb = kube::Verb::kDelete;
  request.gvr = cache.kind().gvr();
  request.ns = object.ns();
  request.name = object.name();
  options.set("apiVersion", "v1");
  options.set("kind", "DeleteOptions");
  options.ref("preconditions").set("uid", object.uid());
  request.body = std::move(options);
  call(std::move(request), [this, at = &cache, target = object,
                            done = std::move(done)](kube::Reply reply) mutable {
    if (reply) {
      const Object after(std::move(*reply));
      if (after.uid() == target.uid()) {
        if (still_there(after)) {
          learn(*at, after);
        } else {
          at->forget(target.key(), target.uid());
        }
        return done({});
      }
      // A bare Status: finalizers may hold the object all the same.
      return refresh(*at, std::string(target.ns()), std::string(target.name()),
                     [done = std::move(done)] { done({}); });
    }
    if (reply.error().code == base::Code::kNotFound) {
      at->forget(target.key(), target.uid());
      return done({});
    }
    auto finished = [error = reply.error(), done = std::move(done)] { done(base::error(error)); };
    if (!needs_refresh(reply.error().code)) return finished();
    refresh(*at, std::string(target.ns()), std::string(target.name()), std::move(finished));
  });
}

}  // namespace tessera::apiserver::controller
