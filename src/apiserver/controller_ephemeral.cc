#include "apiserver/controller_ephemeral.h"

#include <algorithm>
#include <utility>

#include "apiserver/controllers_pods.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

bool has_ephemeral(const Object& pod) {
  return std::ranges::any_of(pod.get("spec", "volumes").items(),
                             [](const Value& volume) { return volume.contains("ephemeral"); });
}

std::string claim_name(const Object& pod, const Value& volume) {
  return fmt::format("{}-{}", pod.name(), volume["name"].as_string());
}

Value claim_of(const Object& pod, const Kind& pod_kind, const Value& volume) {
  const Value& model = volume["ephemeral"]["volumeClaimTemplate"];
  Value meta =
      Value::object({{"name", claim_name(pod, volume)},
                     {"namespace", pod.ns()},
                     {"ownerReferences", Value::array({controller_reference(pod, pod_kind)})}});
  for (const char* field : {"labels", "annotations"}) {
    if (model["metadata"].contains(field)) meta.set(field, model["metadata"][field]);
  }
  return Value::object({{"apiVersion", "v1"},
                        {"kind", "PersistentVolumeClaim"},
                        {"metadata", std::move(meta)},
                        {"spec", model["spec"]}});
}

}  // namespace

EphemeralController::EphemeralController(Cluster& cluster)
    : cluster_(cluster),
      pods_(cluster.cache("", "Pod")),
      claims_(cluster.cache("", "PersistentVolumeClaim")),
      queue_(cluster.executor(), kube::WorkQueue::Options{.name = "ephemeral_volume"},
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  pods_.subscribe([this](const Object& before, const Object& after) {
    if (!before && cluster_.ready()) enqueue(after);
  });
  // A claim that went while its pod is still there is made again.
  claims_.subscribe([this](const Object& before, const Object& after) {
    if (after || !cluster_.ready()) return;
    const Value& owner = controller_of(before);
    if (owner["kind"].as_string() != "Pod") return;
    queue_.add(fmt::format("{}/{}", before.ns(), owner["name"].as_string()));
  });
}

void EphemeralController::start() {
  for (const auto& [key, pod] : pods_.objects()) enqueue(pod);
}

void EphemeralController::enqueue(const Object& pod) {
  if (pod && !pod.deleting() && has_ephemeral(pod)) queue_.add(pod.key());
}

void EphemeralController::sync(const std::string& key, Done done) {
  const Object pod = pods_.find(key);
  if (!pod || pod.deleting()) return done({});
  std::vector<Action> actions;
  for (const Value& volume : pod.get("spec", "volumes").items()) {
    if (volume.contains("ephemeral")) actions.push_back(claim_for(pod, volume));
  }
  run_in_order(std::move(actions), std::move(done));
}

Action EphemeralController::claim_for(const Object& pod, const Value& volume) {
  return [this, pod, volume](const Done& done) {
    const auto fail = [this, pod, volume, done](const std::string& why) {
      const std::string text =
          fmt::format("ephemeral volume {}: {}", volume["name"].as_string(), why);
      cluster_.events().warning_of("ephemeral_volume", pod, "FailedBinding", text);
      done(base::error(base::Code::kConflict, "pod {}, {}", pod.key(), text));
    };
    const std::string name = claim_name(pod, volume);
    const Object known = claims_.find(fmt::format("{}/{}", pod.ns(), name));
    if (known && controller_of(known)["uid"].as_string() == pod.uid()) return done({});
    if (known) {
      return fail(fmt::format("PVC {} was not created for pod {} (pod is not owner)", known.key(),
                              pod.key()));
    }
    cluster_.create(claims_, claim_of(pod, pods_.kind(), volume),
                    [fail, done, name](const base::Result<Object>& made) {
                      if (made) return done({});
                      fail(fmt::format("create PVC {}: {}", name, made.error().message));
                    });
  };
}

}  // namespace tessera::apiserver::controller
