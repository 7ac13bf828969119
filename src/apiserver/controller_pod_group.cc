#include "apiserver/controller_pod_group.h"

#include <algorithm>
#include <utility>

#include "apiserver/controllers_pods.h"
#include "apiserver/pod_groups.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

// "namespace/name" of the group of a pod that has not ended.
std::string group_of(const Object& pod) {
  if (!pod || is_finished(pod)) return {};
  const std::string_view name = pod.get("spec", "schedulingGroup", "podGroupName").as_string();
  return name.empty() ? std::string() : fmt::format("{}/{}", pod.ns(), name);
}

bool waits(const Object& group) {
  const auto finalizers = group.metadata()["finalizers"].items();
  return group.deleting() &&
         std::ranges::find(finalizers, Value(kGroupProtection)) != finalizers.end();
}

}  // namespace

PodGroupController::PodGroupController(Cluster& cluster)
    : cluster_(cluster),
      groups_(cluster.cache("scheduling.k8s.io", "PodGroup")),
      queue_(cluster.executor(), kube::WorkQueue::Options{.name = "podgroup_protection"},
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  groups_.subscribe([this](const Object&, const Object& after) {
    if (after && waits(after) && cluster_.ready()) queue_.add(after.key());
  });
  cluster.cache("", "Pod").subscribe(
      [this](const Object& before, const Object& after) { see_pod(before, after); });
}

void PodGroupController::start() {
  for (const auto& [key, group] : groups_.objects()) {
    if (waits(group)) queue_.add(key);
  }
}

void PodGroupController::see_pod(const Object& before, const Object& after) {
  const std::string now = group_of(after);
  if (!now.empty()) active_[now].insert(after.key());
  const std::string then = group_of(before);
  if (then.empty() || then == now) return;
  const auto members = active_.find(then);
  if (members == active_.end()) return;
  members->second.erase(before.key());
  if (!members->second.empty()) return;
  active_.erase(members);
  if (cluster_.ready()) queue_.add(then);
}

void PodGroupController::sync(const std::string& key, Done done) {
  const Object group = groups_.find(key);
  if (!group || !waits(group) || active_.contains(key)) return done({});
  Value patch = Value::object();
  patch.ref("metadata")
      .set("$deleteFromPrimitiveList/finalizers", Value::array({kGroupProtection}));
  cluster_.patch(groups_, group, std::move(patch), {},
                 [done = std::move(done)](const base::Result<Object>& reply) {
                   done(reply ? base::Status{} : base::error(reply.error()));
                 });
}

}  // namespace tessera::apiserver::controller
