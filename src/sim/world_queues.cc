// The part of a world that has gangs and queues: kinds of config/crd, users who change their minds, a scheduler started anew.

#include <utility>

#include "apiserver/definitions.h"
#include "scheduler/watched_kinds.h"
#include "sim/world_state.h"

namespace tessera::sim {

using base::Duration;

namespace {

constexpr double kRestartAtBind = 0.01;

}  // namespace

// The scheduler may start before what it watches is there.
void World::define_kinds() {
  queue_workload_ = std::make_unique<QueueWorkload>(random_.fork());
  queue_invariants_ = std::make_unique<QueueInvariants>(
      QueueInvariants::Options{.news = kNewsTake, .all_told = !options_.faults});
  apiserver::install_definitions(
      *user_, loop_, apiserver::builtin_definitions(), [this](const base::Status& status) {
        if (!status && broken_) broken_ = base::error(status.error().in("config/crd"));
        for (const apiserver::Kind* kind : api_->kinds().all()) {
          const bool custom = api_->kinds().find(kind->gvr()) != nullptr &&
                              apiserver::Kinds::builtin().find(kind->gvr()) == nullptr;
          if (custom) watch_kind(*kind, kind->plural + "." + kind->group);
        }
        create_all(queue_workload_->found());
      });
}

void World::create_all(std::vector<Drawn> objects) {
  for (Drawn& drawn : objects) {
    report_.pods_created += drawn.gvr.resource == "pods" ? 1 : 0;
    const std::string ns(kube::Object(drawn.object).ns());
    user_->create(drawn.gvr, ns, drawn.object,
                  [this, object = drawn.object](const kube::Reply& reply) {
                    if (!reply && broken_)
                      broken_ = base::error(reply.error().in("refused: " + object.dump()));
                  });
  }
}

void World::change_something() {
  if (random_.chance(0.1)) {
    const bool briefly = random_.chance(0.5);
    return restart_scheduler(briefly ? Duration{}
                                     : base::seconds(static_cast<int64_t>(1 + random_.below(60))));
  }
  user_->call(queue_workload_->change(), [](const kube::Reply&) {});
}

void World::see_acknowledged(const kube::Request& request) {
  if (request.subresource == "eviction" && broken_)
    broken_ = queue_invariants_->see_eviction(request.ns + "/" + request.name, clock_.now());
  const bool binds = request.subresource == "binding";
  if (!binds || !options_.faults || loop_.now() >= options_.duration) return;
  if (random_.chance(kRestartAtBind)) loop_.post([this] { restart_scheduler({}); });
}

// Everything that it knew is lost; what it has sent may still arrive.
void World::restart_scheduler(Duration away) {
  if (!scheduler_) return;  // away already
  scheduler_.reset();
  ++report_.restarts;
  loop_.post_after(away, [this] {
    start_scheduler();
    scheduler_->start();
    queue_invariants_->see_outage(clock_.now());
  });
}

std::vector<kube::Object> World::scheduling_objects() {
  std::vector<kube::Object> out;
  if (!options_.queues) return out;
  for (const scheduler::WatchedKind& kind : scheduler::watched_kinds()) {
    for (const std::string_view version : kind.known_versions()) {
      std::vector<kube::Object> found = list(kind.group, kind.resource, version);
      if (found.empty()) continue;
      out.insert(out.end(), found.begin(), found.end());
      break;
    }
  }
  return out;
}

}  // namespace tessera::sim
