#include "apiserver/controllers_quota.h"

#include <utility>

#include "apiserver/quota.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

// Many objects often go at once: one count serves them.
constexpr base::Duration kGather = base::millis(100);
// What comes has been counted by admission, unless the quota came at the same moment.
constexpr base::Duration kGatherNew = base::seconds(10);
// Pods that should be gone stop counting by time alone.
constexpr base::Duration kLookAgain = base::seconds(60);

// Of a pod only these can change what it uses.
bool same_usage(const Kind& kind, const Object& before, const Object& after) {
  const bool pod = kind.group.empty() && kind.kind == "Pod";
  if (!pod && !quota_watches_updates(kind, "")) return true;
  if (!before["spec"].same_node(after["spec"]) && !(before["spec"] == after["spec"])) return false;
  return !pod || (before["status"]["phase"] == after["status"]["phase"] &&
                  before.deleting() == after.deleting());
}

}  // namespace

// One quota while it is counted.
struct QuotaController::Count {
  Object quota;
  kube::ResourceList used;
  std::vector<const Kind*> kinds;  // still to be listed
  bool some_deleting = false;
};

QuotaController::QuotaController(Cluster& cluster, const Kinds& kinds)
    : cluster_(cluster),
      kinds_(kinds),
      quotas_(cluster.cache("", "ResourceQuota")),
      queue_(cluster, "resourcequota",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  quotas_.subscribe([this](const Object& before, const Object& after) {
    if (!after || (before && before["spec"] == after["spec"] && before.uid() == after.uid() &&
                   quota_status_is_current(after.json(), kinds_))) {
      return;
    }
    queue_.enqueue(after.key());
  });
  for (Cache* cache : cluster.caches()) {
    if (cache->kind().namespaced) watch(*cache);
  }
}

void QuotaController::watch(Cache& cache) {
  cache.subscribe([this, kind = &cache.kind()](const Object& before, const Object& after) {
    usage_changed(before, after, *kind);
  });
}

void QuotaController::usage_changed(const Object& before, const Object& after, const Kind& kind) {
  if (before && after && same_usage(kind, before, after)) return;
  const std::string prefix = std::string((after ? after : before).ns()) + "/";
  const auto& all = quotas_.objects();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    const auto hard = it->second.get("spec", "hard").members();
    for (const json::Member& member : hard) {
      if (!quota_tracks(kind, member.name())) continue;
      count_in(it->first, before ? kGather : kGatherNew);
      break;
    }
  }
}

void QuotaController::count_in(const std::string& key, base::Duration delay) {
  const auto [at, fresh] = planned_.try_emplace(key);
  if (!fresh && at->second.delay <= delay) return;
  at->second = {delay, ++tickets_};
  cluster_.after(delay, [this, key, ticket = tickets_] {
    const auto now = planned_.find(key);
    if (now == planned_.end() || now->second.ticket != ticket) return;
    planned_.erase(now);
    queue_.enqueue(key);
  });
}

void QuotaController::sync(const std::string& key, Done done) {
  const Object known = quotas_.find(key);
  if (!known) return done({});
  cluster_.get(quotas_, std::string(known.ns()), std::string(known.name()),
               [this, key, done = std::move(done)](const base::Result<Object>& found) {
                 if (!found && found.error().code == base::Code::kNotFound) return done({});
                 if (!found) return done(base::error(found.error()));
                 auto counting = std::make_shared<Count>();
                 counting->quota = *found;
                 counting->used = zero_quota_usage(found->json(), kinds_);
                 for (const Kind* kind : kinds_.all()) {
                   if (kind->view) continue;
                   for (const auto& [name, amount] : counting->used) {
                     if (!quota_tracks(*kind, name)) continue;
                     counting->kinds.push_back(kind);
                     break;
                   }
                 }
                 count(counting, done);
               });
}

// Lists one kind after the other.
void QuotaController::count(const std::shared_ptr<Count>& counting, Done done) {
  if (counting->kinds.empty()) return write(counting, std::move(done));
  const Kind& kind = *counting->kinds.back();
  counting->kinds.pop_back();
  kube::Request list;
  list.verb = kube::Verb::kList;
  list.gvr = kind.gvr();
  list.ns = std::string(counting->quota.ns());
  cluster_.call(std::move(list),
                [this, counting, &kind, done = std::move(done)](const kube::Reply& found) {
                  if (!found) return done(base::error(found.error()));
                  const auto items = (*found)["items"].items();
                  for (const Value& item : items) {
                    if (item["metadata"].contains("deletionTimestamp"))
                      counting->some_deleting = true;
                  }
                  add_quota_usage(counting->quota.json(), kind, {items.begin(), items.end()},
                                  cluster_.now(), counting->used);
                  count(counting, done);
                });
}

void QuotaController::write(const std::shared_ptr<Count>& counting, Done done) {
  const Object& quota = counting->quota;
  if (counting->some_deleting) count_in(quota.key(), kLookAgain);
  Value status = quota_status(quota.json(), counting->used);
  if (status == quota["status"]) return done({});
  Value next = quota.json();
  next.set("status", std::move(status));
  cluster_.update(quotas_, std::move(next), "status", as_status(unless_gone(std::move(done))));
}

}  // namespace tessera::apiserver::controller
