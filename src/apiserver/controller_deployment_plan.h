// What a Deployment does next to its ReplicaSets, and what its status says: pure.
//
// Source:  Kubernetes 1.36 pkg/controller/deployment (rolling.go, recreate.go, sync.go, progress.go; behaviour).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/controllers_pods.h"
#include "kube/job.h"

namespace tessera::apiserver::controller {

inline constexpr std::string_view kTemplateHash = "pod-template-hash";
inline constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";

struct OwnedSet {
  kube::Object object;
  kube::ReplicaSet set;
  bool current = false;  // of the Deployment's template as it is now
};

struct DeploymentPlan {
  // Replicas of the new ReplicaSet to make; nothing where it exists or is not made yet.
  std::optional<int32_t> create;
  // Index into the sets, and its new size.
  std::vector<std::pair<size_t, int32_t>> resize;
  std::vector<size_t> remove;  // past revisionHistoryLimit
};

// Marks the set whose template is the Deployment's; of several the oldest.
void mark_current(const kube::Deployment& deployment, std::vector<OwnedSet>& sets);
// `old_pods_run`: pods of older sets that have not ended (Recreate waits for them).
DeploymentPlan plan_deployment(const kube::Deployment& deployment,
                               const std::vector<OwnedSet>& sets, bool old_pods_run);
// The revision that the current template has or gets.
int64_t current_revision(const std::vector<OwnedSet>& sets);

json::Value new_replica_set(const kube::Object& object, const kube::Deployment& deployment,
                            const Kind& kind, int32_t replicas, int64_t revision);
// Annotations that tell a later sync how big the Deployment was, so that it sees a change of size.
json::Value size_annotations(const kube::Deployment& deployment);
// All that the set of the current template is to carry: the Deployment's own annotations, its size, and the revision;
// one that it had before goes into its history.
json::Value set_annotations(const kube::Object& object, const kube::Deployment& deployment,
                            const json::Value& before, int64_t revision);

json::Value deployment_status(const kube::Object& object, const kube::Deployment& deployment,
                              const std::vector<OwnedSet>& sets, base::Time now);
// When a rollout that stands still runs out of time; nothing where none does.
std::optional<base::Time> progress_deadline(const kube::Deployment& deployment,
                                            const json::Value& status);

}  // namespace tessera::apiserver::controller
