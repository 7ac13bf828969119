// What a StatefulSet does next to its pods, who owns its claims, and what its status says: pure.
//
// Source:  Kubernetes 1.36 pkg/controller/statefulset (stateful_set_control.go, stateful_set_utils.go; behaviour).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controllers_pods.h"

namespace tessera::apiserver::controller {

struct StatefulSet {
  kube::Object object;
  int64_t replicas = 1;
  int64_t start = 0;  // the first ordinal
  int32_t min_ready_seconds = 0;
  int64_t history_limit = 10;
  bool parallel = false;
  bool on_delete = false;
  std::optional<int64_t> partition;  // none: the strategy says nothing of it
  bool delete_scaled = false;        // claims go with pods that are scaled away
  bool delete_deleted = false;       // claims go with the set
  kube::LabelSelector selector;

  std::string_view name() const { return object.name(); }
  const json::Value& claims() const { return object.get("spec", "volumeClaimTemplates"); }
  bool in_range(int64_t ordinal) const { return ordinal >= start && ordinal < start + replicas; }
};

// Errors: kInvalid for a selector that is none.
base::Result<StatefulSet> read_stateful_set(const kube::Object& object);

// The number at the end of "<set>-<number>"; nothing where the pod is not the set's by its name.
std::optional<int64_t> ordinal_of(std::string_view set, std::string_view pod);

// What the current template is called, and where the rollout goes to.
struct StatefulRevisions {
  kube::Object current;
  kube::Object update;
  int64_t collisions = 0;
};

// What happens to one pod, in this order.
struct StatefulTurn {
  kube::Object pod;  // as it is; with `create`: as it is to be made
  bool make_claims = false;
  bool create = false;
  bool own_claims = false;
  bool repair = false;  // its identity or its volumes
  bool remove = false;
};

// One stage after the other; a set that is not parallel takes its turns one by one.
struct StatefulPlan {
  std::vector<std::vector<StatefulTurn>> stages;
};

using FindClaim = std::function<kube::Object(std::string_view name)>;

// `pods`: those that the set owns and selects and that are its by their names.
StatefulPlan plan_stateful_set(const StatefulSet& set, const StatefulRevisions& revisions,
                               const std::vector<kube::Object>& pods, const FindClaim& find_claim,
                               const Kind& kind, base::Time now);
json::Value stateful_status(const StatefulSet& set, const StatefulRevisions& revisions,
                            const std::vector<kube::Object>& pods, base::Time now);

// The claims of the pod, as they are to be made.
std::vector<json::Value> claims_of(const StatefulSet& set, int64_t ordinal);
// The claim's owners as the retention policy asks for; nothing where they are so already or are not the set's to change.
std::optional<json::Value> claim_owners(const StatefulSet& set, const kube::Object& claim,
                                        const kube::Object& pod);
// Another controller manages the claim although the set has a retention policy.
bool claim_is_contested(const StatefulSet& set, const kube::Object& claim, const kube::Object& pod);
// The pod with the identity and the volumes that it should have.
json::Value repaired_pod(const StatefulSet& set, const kube::Object& pod);

}  // namespace tessera::apiserver::controller
