// What the scheduler writes into the status of a group, in the words of the dialect that was used.
//
// Shape:   group_status() answers with the merge patch of the object's status, or nothing where the object says it already:
//          applied, and asked again, it answers nothing. It reads what was before from the object alone, so that a restart
//          changes nothing. Lists of conditions are written as a whole: send the patch with the resourceVersion it was made for.
//          Volcano:   phase, counters, conditions Unschedulable, Scheduled and ours. Its own definition of PodGroups has no
//                     status subresource: the patch goes to the object itself, but to the subresource where one is served.
//          Plugins:   (scheduling.x-k8s.io) phase, counters, scheduleStartTime, occupiedBy. Its own definition has no
//                     conditions: Unschedulable is written where they are kept, as in ours, and never for its own sake where
//                     they are dropped. The planned start is not said there: the pods say it.
//          Kubernetes: PodGroupScheduled in v1alpha2, PodGroupInitiallyScheduled from v1alpha3 and v1beta1 on, which stay True
//                     once they are; DisruptionTarget; ours. Never of a Workload, which has no status.
//          KAI's groups are its grouper's; Kueue's, owners and single pods have none: nothing is written.
//          Ours is condition tessera.dev/PlannedStart.
// Errors:  none; what in the object is of another type counts as missing.
// Threads: pure.
// Source:  scheduling.volcano.sh/v1beta1 of Volcano 1.15, scheduling.x-k8s.io/v1alpha1 of scheduler-plugins,
//          scheduling.k8s.io of Kubernetes 1.36 and 1.37.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "kube/object.h"
#include "scheduler/groups.h"
#include "scheduler/member_amounts.h"
#include "scheduler/queueing/engine.h"

namespace tessera::scheduler {

inline constexpr std::string_view kPlannedStart = "tessera.dev/PlannedStart";

struct GroupProgress {
  int32_t members = 0;  // pods that exist and have not ended
  int32_t waiting = 0;  // of those, without a place
  int32_t placed = 0;   // of those, bound or told to be
  int32_t running = 0;  // of those, in phase Running
  int32_t succeeded = 0;
  int32_t failed = 0;
  int32_t min = 1;
  bool ever_started = false;
  queueing::WaitReason reason = queueing::WaitReason::kNone;
  std::string why{};       // Engine::why; empty: it does not wait
  std::string barred{};    // why_barred(): why its pods may not be made yet; empty: they may
  std::string error{};     // the scheduler itself failed on it
  std::string evicting{};  // why its pods are being evicted; empty: they are not
  std::vector<std::string> owners{};  // names of what its pods belong to
  std::optional<base::Time> planned_start{};
  std::vector<std::string> planned_nodes{};
  bool planned_by_estimate = false;
  base::Time now{};
};

// Nothing where nothing is to be written.
std::optional<json::Value> group_status(const Group& group, const kube::Object& object,
                                        const GroupProgress& progress);

// Why a group may not enter its queue, so that no controller makes its pods: the queue does not exist, is closed or no leaf,
// or spec.minResources is more than a limit of it or of a queue above. Never for want of room at present: a controller or an
// autoscaler may be waiting for the pods.
std::string why_barred(const kube::Object& object, std::string_view queue,
                       const queueing::Engine& engine, const ShareRules& rules);

// The group as its pods would read it, for one that has no pods yet; kAlone where the object is no PodGroup of a dialect
// that is written to.
Group group_without_pods(const kube::Object& object, const GroupSources& sources);

}  // namespace tessera::scheduler
