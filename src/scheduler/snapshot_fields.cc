#include "scheduler/snapshot_fields.h"

#include <algorithm>
#include <map>
#include <memory>

#include "scheduler/group_reading.h"
#include "scheduler/watched_kinds.h"

namespace tessera::scheduler {
namespace {

using json::Value;
using kube::Object;

// What may stay of a value. Lists are passed through: the same holds for each item.
struct Fields {
  std::map<std::string, Fields, std::less<>> members{};
  bool value = false;  // a single value may stand here; an object leaves {} behind
};

// Paths are separated by blanks, their steps by '>'; "{a,b}" stands for either. "*" is any member.
class Paths {
 public:
  explicit Paths(std::string_view text) : rest_(text) {
    while (!rest_.empty()) {
      const size_t blank = std::min(rest_.find(' '), rest_.size());
      if (blank > 0) add(out_, rest_.substr(0, blank));
      rest_.remove_prefix(std::min(blank + 1, rest_.size()));
    }
  }
  Fields take() { return std::move(out_); }

 private:
  static void add(Fields& at, std::string_view path) {
    if (path.empty()) {
      at.value = true;
      return;
    }
    std::string_view step = path.substr(0, path.find('>'));
    std::string_view next = path.substr(std::min(step.size() + 1, path.size()));
    if (step.starts_with('{')) {
      const size_t end = path.find('}');
      std::string_view choices = path.substr(1, end - 1);
      next = path.substr(std::min(end + 2, path.size()));
      while (!choices.empty()) {
        const size_t comma = std::min(choices.find(','), choices.size());
        add(at.members[std::string(choices.substr(0, comma))], next);
        choices.remove_prefix(std::min(comma + 1, choices.size()));
      }
      return;
    }
    add(at.members[std::string(step)], next);
  }

  std::string_view rest_;
  Fields out_{};
};

bool single(const Value& value) {
  return !value.is_null() && !value.is_object() && !value.is_array();
}

// Null: nothing stays.
Value kept(const Value& value, const Fields& fields) {
  if (single(value)) return fields.value ? value : Value();
  if (value.is_array()) {
    Value out = Value::array();
    for (const Value& item : value.items()) {
      if (Value some = kept(item, fields); !some.is_null()) out.push_back(std::move(some));
    }
    return out;
  }
  if (!value.is_object()) return {};
  Value out = Value::object();
  const auto any = fields.members.find("*");
  for (const json::Member& member : value.members()) {
    auto found = fields.members.find(member.name());
    if (found == fields.members.end()) found = any;
    if (found == fields.members.end()) continue;
    if (Value some = kept(member.value, found->second); !some.is_null())
      out.set(member.name(), std::move(some));
  }
  return out;
}

// Labels or annotations by which groups, queues and amounts are asked for, and those that bindings write.
constexpr std::string_view kMarks[] = {
    "applicationId",
    "gpu-fraction",
    "gpu-fraction-num-devices",
    "gpu-memory",
    "jobset.sigs.k8s.io/replicatedjob-name",
    "kai.scheduler/batch-min-member",
    "kai.scheduler/preemptibility",
    "kai.scheduler/queue",
    "kai.scheduler/subgroup-name",
    "kubernetes.io/config.mirror",
    "kueue.x-k8s.io/max-exec-time-seconds",
    "kueue.x-k8s.io/pod-group-name",
    "kueue.x-k8s.io/pod-group-total-count",
    "kueue.x-k8s.io/priority-class",
    "kueue.x-k8s.io/queue-name",
    "leaderworkerset.sigs.k8s.io/group-index",
    "leaderworkerset.sigs.k8s.io/name",
    "pod-group-name",
    "priorityClassName",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "queue",
    "ray.io/group",
    "ray.io/priority-class-name",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-min-member",
    "scheduling.volcano.sh/group-name",
    "scheduling.volcano.sh/queue-name",
    "scheduling.x-k8s.io/pod-group",
    "slurmjob.slinky.slurm.net/timelimit",
    "storageclass.beta.kubernetes.io/is-default-class",
    "storageclass.kubernetes.io/is-default-class",
    "tessera.dev/checkpointed-at",
    "tessera.dev/gpu-count",
    "tessera.dev/gpu-indexes",
    "tessera.dev/gpu-milli",
    "tessera.dev/gpu-model",
    "tessera.dev/gpus",
    "tessera.dev/min-members",
    "tessera.dev/preemptible",
    "tessera.dev/queue",
    "tessera.dev/share-gpus",
    "tessera.dev/share-milli",
    "tessera.dev/unhealthy-gpus",
    "trainer.kubeflow.org/trainjob-ancestor-step",
    "training.kubeflow.org/replica-type",
    "volcano.sh/preemptable",
    "volcano.sh/queue-name",
    "volcano.sh/task-spec",
    "volume.beta.kubernetes.io/storage-class",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
    "yunikorn.apache.org/app-id",
    "yunikorn.apache.org/queue",
};

constexpr const char* kMeta =
    "name namespace uid creationTimestamp deletionTimestamp "
    "ownerReferences>{apiVersion,kind,name,uid,controller}";

constexpr const char* kNode =
    "spec>unschedulable spec>taints>{key,value,effect} status>{capacity,allocatable}>* "
    "status>conditions>{type,status}";

constexpr const char* kPod =
    "spec>{schedulerName,nodeName,priority,priorityClassName,preemptionPolicy,hostNetwork,"
    "activeDeadlineSeconds} spec>{nodeSelector,overhead}>* spec>resources>{requests,limits}>* "
    "spec>{containers,initContainers}>{name,restartPolicy} "
    "spec>{containers,initContainers}>resources>{requests,limits}>* "
    "spec>{containers,initContainers}>ports>{hostPort,hostIP,protocol} "
    "spec>tolerations>{key,operator,value,effect,tolerationSeconds} spec>schedulingGates>name "
    "spec>schedulingGroup>podGroupName spec>workloadRef>{name,podGroup,podGroupReplicaKey} "
    "spec>volumes>{name,ephemeral} spec>volumes>persistentVolumeClaim>claimName "
    "spec>topologySpreadConstraints>{maxSkew,topologyKey,whenUnsatisfiable,minDomains,"
    "nodeAffinityPolicy,nodeTaintsPolicy,matchLabelKeys} "
    "spec>topologySpreadConstraints>labelSelector>matchLabels>* "
    "spec>topologySpreadConstraints>labelSelector>matchExpressions>{key,operator,values} "
    "spec>affinity>nodeAffinity>requiredDuringSchedulingIgnoredDuringExecution>nodeSelectorTerms>"
    "{matchExpressions,matchFields}>{key,operator,values} "
    "spec>affinity>nodeAffinity>preferredDuringSchedulingIgnoredDuringExecution>weight "
    "spec>affinity>nodeAffinity>preferredDuringSchedulingIgnoredDuringExecution>preference>"
    "{matchExpressions,matchFields}>{key,operator,values} "
    "spec>affinity>{podAffinity,podAntiAffinity}>preferredDuringSchedulingIgnoredDuringExecution>"
    "weight status>{phase,startTime} status>conditions>{type,status,lastTransitionTime}";
// Of each term of a pod's affinity, wherever it stands.
constexpr const char* kPodTerms[] = {
    "spec>affinity>{podAffinity,podAntiAffinity}>requiredDuringSchedulingIgnoredDuringExecution",
    "spec>affinity>{podAffinity,podAntiAffinity}>preferredDuringSchedulingIgnoredDuringExecution>"
    "podAffinityTerm"};
constexpr const char* kPodTerm[] = {
    ">{topologyKey,namespaces,matchLabelKeys,mismatchLabelKeys}",
    ">{labelSelector,namespaceSelector}>matchLabels>*",
    ">{labelSelector,namespaceSelector}>matchExpressions>{key,operator,values}"};

constexpr const char* kOwner =
    "spec>{parallelism,completions,replicas,podManagementPolicy,activeDeadlineSeconds,queue,"
    "startupPolicy,launcherCreationPolicy,enableInTreeAutoscaling,runningEstimate} "
    "spec>replicatedJobs>{name,replicas} "
    "spec>replicatedJobs>template>spec>{parallelism,completions} "
    "spec>replicatedJobs>template>metadata>labels>trainer.kubeflow.org/trainjob-ancestor-step "
    "spec>leaderWorkerTemplate>size spec>elasticPolicy>maxReplicas "
    "spec>{pytorchReplicaSpecs,tfReplicaSpecs,xgbReplicaSpecs,paddleReplicaSpecs,jaxReplicaSpecs,"
    "mpiReplicaSpecs}>*>replicas spec>runPolicy>activeDeadlineSeconds "
    "spec>runPolicy>schedulingPolicy>{minAvailable,queue,priorityClass} "
    "spec>workerGroupSpecs>{groupName,replicas,maxReplicas,numOfHosts} "
    "spec>tasks>{name,replicas} status>succeeded";

constexpr const char* kGroup =
    "spec>{minMember,queue,priority,priorityClassName,preemptionPolicy,preemptibility,"
    "scheduleTimeoutSeconds,disruptionMode} spec>disruptionMode>{all,single} "
    "spec>schedulingPolicy>basic spec>schedulingPolicy>gang>minCount "
    "spec>podGroups>{name,priority,priorityClassName} spec>podGroups>policy>basic "
    "spec>podGroups>policy>gang>minCount spec>minTaskMember>* "
    "spec>subGroups>{name,minMember,minSubGroup} "
    "spec>subGroupPolicy>{name,subGroupSize,minSubGroups,matchLabelKeys} "
    "spec>subGroupPolicy>labelSelector>matchLabels>* "
    "spec>subGroupPolicy>labelSelector>matchExpressions>{key,operator,values}";

constexpr const char* kReservation = "spec>{queue,start,duration} spec>resources>* status>nodes";
constexpr const char* kQueue =
    "spec>{parent,weight,priority,strictFifo,reclaimable,reservations,closed,minRuntime,"
    "defaultRuntime,dequeueStrategy,parentQueue,preemptMinRuntime,reclaimMinRuntime} "
    "spec>{quota,limit,capability,deserved}>* spec>guarantee>resource>* "
    "spec>resources>{gpu,cpu,memory}>{quota,limit,overQuotaWeight} status>state";

constexpr const char* kBudget =
    "spec>selector>matchLabels>* spec>selector>matchExpressions>{key,operator,values} "
    "status>disruptionsAllowed";
constexpr const char* kClass = "value globalDefault preemptionPolicy";
constexpr const char* kClaim =
    "spec>{volumeName,storageClassName,accessModes,volumeMode,volumeAttributesClassName} "
    "spec>resources>requests>storage spec>selector>matchLabels>* "
    "spec>selector>matchExpressions>{key,operator,values} status>phase";
constexpr const char* kVolume =
    "spec>{storageClassName,accessModes,volumeMode,volumeAttributesClassName} "
    "spec>capacity>storage spec>claimRef>{name,namespace,uid} "
    "spec>nodeAffinity>required>nodeSelectorTerms>{matchExpressions,matchFields}>"
    "{key,operator,values} status>phase";
constexpr const char* kStorageClass =
    "provisioner volumeBindingMode allowedTopologies>matchLabelExpressions>{key,values}";

struct Kept {
  Fields fields{};
  bool all_labels = false;  // selectors look at them
};

Kept of(std::string_view paths, bool all_labels = false) {
  return {Paths(paths).take(), all_labels};
}

Kept pods() {
  std::string paths = kPod;
  for (const char* term : kPodTerms) {
    for (const char* field : kPodTerm) paths += std::string(" ") + term + field;
  }
  return of(paths, true);
}

bool is_owner(std::string_view group, std::string_view kind) {
  if (group == "apps" || group == "batch" || group == "batch.volcano.sh" || group == "ray.io")
    return true;
  return kind.ends_with("Job") || kind == "JobSet" || kind == "LeaderWorkerSet";
}

Kept kept_of(std::string_view group, std::string_view kind) {
  if (kind == "PodGroup" || kind == "Workload") return of(kGroup);
  if (kind == "Queue") return of(kQueue);
  if (kind == "Reservation") return of(kReservation);
  if (kind == "PodDisruptionBudget") return of(kBudget);
  if (kind.ends_with("PriorityClass")) return of(kClass);
  return is_owner(group, kind) ? of(kOwner) : of("");
}

using ByKind = std::map<std::pair<std::string, std::string>, Kept>;

const ByKind& table() {
  static const ByKind kTable = [] {
    ByKind out;
    out[{"", "Node"}] = of(kNode, true);
    out[{"", "Pod"}] = pods();
    out[{"", "PersistentVolumeClaim"}] = of(kClaim);
    out[{"", "PersistentVolume"}] = of(kVolume, true);
    out[{"storage.k8s.io", "StorageClass"}] = of(kStorageClass);
    for (const WatchedKind& kind : watched_kinds())
      out[{std::string(kind.group), std::string(kind.kind)}] = kept_of(kind.group, kind.kind);
    return out;
  }();
  return kTable;
}

Value marks_in(const Value& map, bool all) {
  Value out = Value::object();
  for (const json::Member& member : map.members()) {
    if (!member.value.is_string()) continue;
    if (all || std::ranges::binary_search(kMarks, member.name()))
      out.set(member.name(), member.value);
  }
  return out;
}

}  // namespace

bool is_kept(std::string_view group, std::string_view kind) {
  return table().contains({std::string(group), std::string(kind)});
}

Object keep_read_fields(const Object& object) {
  static_assert(std::ranges::is_sorted(kMarks));
  static const Fields kMetaFields = Paths(kMeta).take();
  const auto found =
      table().find({std::string(group_of(object.api_version())), std::string(object.kind())});
  if (found == table().end()) return {};
  Value out = kept(object.json(), found->second.fields);
  Value meta = kept(object.metadata(), kMetaFields);
  for (const char* key : {"labels", "annotations"}) {
    const bool all = found->second.all_labels && std::string_view(key) == "labels";
    if (Value some = marks_in(object.metadata()[key], all); !some.empty())
      meta.set(key, std::move(some));
  }
  out.set("metadata", std::move(meta));
  out.set("apiVersion", object["apiVersion"]);
  out.set("kind", object["kind"]);
  return Object(std::move(out));
}

}  // namespace tessera::scheduler
