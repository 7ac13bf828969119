// Which gang a pod belongs to, in whatever words that is said: PodGroups of Volcano, scheduler-plugins, Kubernetes and KAI,
// Kueue's pod groups, the owner's kind, or nothing, which is a gang of one.
//
// Shape:   read_group() looks at one pod and asks GroupSources for the objects it names. Where two dialects name a gang the
//          order of Dialect decides, and the other is a note. Every member of a gang reads the same spec from the objects
//          around it, but for what only the pods say (priority, labels of a queue): the bridge keeps the first reading.
//          An owner's pods are a gang only where a minimum is asked for: annotation tessera.dev/min-members (a number, "all",
//          or "master=1,worker=4" by role), kai.scheduler/batch-min-member, scheduling.volcano.sh/group-min-member, or
//          runPolicy.schedulingPolicy.minAvailable. The queue is the group's or the owner's own field, then tessera.dev/queue,
//          kai.scheduler/queue, scheduling.volcano.sh/queue-name, volcano.sh/queue-name, kueue.x-k8s.io/queue-name, YuniKorn's,
//          tessera.dev/queue of the namespace, "default"; a key is looked for on the pod, its group and its owners.
// Units:   as in queueing/gang.h.
// Errors:  never fails. `waits` says why the gang must not start before something is mended; `notes` are for an event.
// Threads: plain functions.
// Source:  Volcano 1.15, scheduler-plugins, scheduling.k8s.io of Kubernetes 1.35 to 1.37, KAI 0.20, Kueue 0.19; Kubeflow
//          trainer 1.9 and 2.3, mpi-operator 0.8, JobSet 0.12, LeaderWorkerSet 0.9, KubeRay 1.7.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.h"
#include "scheduler/queueing/gang.h"

namespace tessera::scheduler {

// Who says what the gang is; the first of these that a pod names counts.
enum class Dialect : uint8_t {
  kKubernetes,  // spec.schedulingGroup, PodGroup scheduling.k8s.io
  kWorkload,    // spec.workloadRef, Workload scheduling.k8s.io/v1alpha1
  kVolcano,     // annotation scheduling.k8s.io/group-name, PodGroup scheduling.volcano.sh
  kPlugins,     // label scheduling.x-k8s.io/pod-group, PodGroup scheduling.x-k8s.io
  kKai,         // annotation pod-group-name, PodGroup scheduling.run.ai
  kKueue,       // label kueue.x-k8s.io/pod-group-name
  kOwner,       // the owner, with a minimum that was asked for
  kAlone,       // a gang of one
};
// "PodGroup of scheduling.volcano.sh", for messages.
std::string_view name_of(Dialect dialect);

struct ObjectName {
  std::string api_version{};
  std::string kind{};
  std::string ns{};
  std::string name{};
  bool operator==(const ObjectName&) const = default;
};

// What is known of the world. An empty Object or optional: there is none. Functions that are not set know nothing.
struct GroupSources {
  // By group ("batch"; of any version), kind, namespace and name: PodGroups, Workloads and owners.
  std::function<kube::Object(std::string_view group, std::string_view kind, std::string_view ns,
                             std::string_view name)>
      object{};
  std::function<kube::Object(std::string_view name)> ns{};
  // The value of a PriorityClass, or of Kueue's WorkloadPriorityClass.
  std::function<std::optional<int32_t>(std::string_view name)> priority_class{};
  std::function<bool(std::string_view name)> queue_exists{};
};

struct Group {
  Dialect dialect = Dialect::kAlone;
  std::string key{};    // the same for all members, in no other gang
  ObjectName object{};  // where status is written and events go; without a kind there is none
  queueing::GangSpec spec{};
  int32_t subgroup = 0;  // of this pod, in spec.subgroup_mins
  std::vector<std::string> subgroup_names{};
  // Members must have started together within this, where the group says so.
  std::optional<base::Duration> schedule_timeout{};
  std::string waits{};
  std::vector<std::string> notes{};
};

Group read_group(const kube::Object& pod, const GroupSources& sources);

}  // namespace tessera::scheduler
