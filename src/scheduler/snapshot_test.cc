#include "scheduler/snapshot.h"

#include <gmock/gmock.h>

#include "scheduler/scheduler_testing.h"
#include "scheduler/snapshot_fields.h"

namespace tessera::scheduler {
namespace {

using kube::Object;
using testing::bound;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::node_object;
using ::testing::Not;
using testing::pod_object;
using testing::yaml;

constexpr base::Time kNow{1'767'225'600'000'000'000};

// Where the readers do not look, "s3cret" stands in it; where they look, "read".
const char* const kPlanted[] = {
    R"(
apiVersion: v1
kind: Pod
metadata:
  name: p
  namespace: ml
  uid: u
  generateName: s3cret
  labels: {team: read}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: s3cret, note: s3cret, tessera.dev/queue: read}
  managedFields: [{manager: s3cret}]
  finalizers: [s3cret]
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: read, uid: u, controller: true, note: s3cret}]
spec:
  serviceAccountName: s3cret
  hostname: s3cret
  imagePullSecrets: [{name: s3cret}]
  nodeSelector: {pool: read}
  containers:
  - name: main
    image: "registry/s3cret"
    command: [s3cret]
    args: ["--token=s3cret"]
    workingDir: s3cret
    env: [{name: A, value: s3cret}, {name: B, valueFrom: {secretKeyRef: {name: s3cret, key: s3cret}}}]
    envFrom: [{secretRef: {name: s3cret}}]
    lifecycle: {postStart: {exec: {command: [s3cret]}}}
    livenessProbe: {httpGet: {path: s3cret, httpHeaders: [{name: Authorization, value: s3cret}]}}
    volumeMounts: [{name: v, mountPath: s3cret}]
    ports: [{name: s3cret, containerPort: 1, hostPort: 8080}]
    resources: {limits: {nvidia.com/gpu: 1}, claims: [{name: s3cret}]}
  initContainers: [{name: i, args: [s3cret], env: [{name: A, value: s3cret}]}]
  ephemeralContainers: [{name: e, args: [s3cret]}]
  volumes:
  - {name: v, secret: {secretName: s3cret}}
  - {name: w, configMap: {name: s3cret}}
  - {name: x, csi: {driver: s3cret, volumeAttributes: {a: s3cret}}}
  - {name: y, persistentVolumeClaim: {claimName: read}}
  - {name: z, ephemeral: {volumeClaimTemplate: {metadata: {annotations: {a: s3cret}}}}}
  affinity:
    note: s3cret
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: read, labelSelector: {matchLabels: {a: read}, note: s3cret}, note: s3cret}
status:
  phase: Pending
  message: s3cret
  reason: s3cret
  conditions: [{type: PodScheduled, status: "False", message: s3cret, reason: s3cret}]
  containerStatuses: [{name: s3cret}]
  podIP: s3cret
)",
    R"(
apiVersion: v1
kind: Node
metadata: {name: n, labels: {zone: read}, annotations: {token: s3cret, tessera.dev/gpu-indexes: read}}
spec: {providerID: s3cret, podCIDR: s3cret, taints: [{key: read, value: read, effect: NoSchedule, note: s3cret}]}
status:
  capacity: {cpu: "4"}
  images: [{names: [s3cret]}]
  addresses: [{address: s3cret}]
  nodeInfo: {machineID: s3cret}
  conditions: [{type: Ready, status: "True", message: s3cret}]
)",
    R"(
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: ml, labels: {a: s3cret}, annotations: {a: s3cret}}
spec:
  parallelism: {note: s3cret}
  template: {spec: {containers: [{name: a, env: [{name: A, value: s3cret}]}]}}
status: {conditions: [{message: s3cret}]}
)",
    R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: j, namespace: ml}
spec:
  pytorchReplicaSpecs:
    Worker: {replicas: 2, template: {spec: {containers: [{name: a, args: [s3cret]}]}}}
  runPolicy: {schedulingPolicy: {queue: read, note: s3cret}}
)",
    R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: j, namespace: ml}
spec:
  replicatedJobs:
  - name: read
    replicas: 2
    template: {metadata: {labels: {a: s3cret}}, spec: {parallelism: 2, template: {spec: {containers: [{command: [s3cret]}]}}}}
)",
    R"(
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: j, namespace: ml}
spec:
  headGroupSpec: {rayStartParams: {password: s3cret}}
  workerGroupSpecs: [{groupName: read, replicas: 2, template: {spec: {containers: [{env: [{value: s3cret}]}]}}}]
)",
    R"(
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j, namespace: ml}
spec: {queue: read, plugins: {svc: [s3cret]}, tasks: [{name: read, replicas: 1, template: {spec: {a: s3cret}}}]}
)",
    R"(
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g, namespace: ml, annotations: {a: s3cret}}
spec: {minMember: 2, queue: read, minResources: {s3cret: s3cret}}
status: {conditions: [{message: s3cret}]}
)",
    R"(
apiVersion: tessera.dev/v1alpha1
kind: Queue
metadata: {name: q, labels: {a: s3cret}}
spec: {quota: {gpu: 2}, note: s3cret}
status: {message: s3cret}
)",
    R"(
apiVersion: v1
kind: Namespace
metadata: {name: ml, labels: {a: s3cret, tessera.dev/queue: read}, annotations: {a: s3cret}}
)",
    R"(
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv}
spec:
  csi: {driver: s3cret, volumeHandle: s3cret, volumeAttributes: {a: s3cret}, nodeStageSecretRef: {name: s3cret}}
  mountOptions: [s3cret]
  claimRef: {name: read, namespace: ml, uid: u, resourceVersion: s3cret}
)",
    R"(
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c, namespace: ml, annotations: {a: s3cret}}
spec: {storageClassName: read, dataSource: {name: s3cret}}
)",
    R"(
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: read
parameters: {secret: s3cret}
)",
    R"(
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 7
description: s3cret
)",
    R"(
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b, namespace: ml}
spec: {selector: {matchLabels: {a: read}}, note: s3cret}
status: {disruptedPods: {s3cret: s3cret}, disruptionsAllowed: 1}
)",
};

TEST(SnapshotFields, Keep_what_is_read_and_nothing_else) {
  Snapshot snapshot;
  for (const char* text : kPlanted) {
    const Object object(yaml(text));
    const std::string kept = keep_read_fields(object).json().dump();
    EXPECT_THAT(kept, Not(HasSubstr("s3cret"))) << object.kind();
    const std::string_view before = text;
    size_t read = 0;
    for (size_t at = before.find("read"); at != std::string_view::npos;
         at = before.find("read", at + 1))
      ++read;
    size_t still = 0;
    for (size_t at = kept.find("read"); at != std::string::npos; at = kept.find("read", at + 1))
      ++still;
    EXPECT_EQ(still, read) << kept;
    snapshot.add(object);
  }
  EXPECT_EQ(snapshot.objects.size(), std::size(kPlanted));
  EXPECT_THAT(to_text(snapshot), Not(HasSubstr("s3cret")));
}

TEST(SnapshotFields, Kinds_that_nobody_reads_are_not_kept) {
  for (const char* kind : {"Secret", "ConfigMap", "ServiceAccount", "Event"}) {
    Snapshot snapshot;
    snapshot.add(
        Object(yaml(fmt::format("{{apiVersion: v1, kind: {}, metadata: {{name: a}}}}", kind))));
    EXPECT_TRUE(snapshot.objects.empty()) << kind;
  }
}

TEST(SnapshotFields, What_they_keep_of_an_object_they_keep_of_that_again) {
  for (const char* text : kPlanted) {
    const Object once = keep_read_fields(Object(yaml(text)));
    EXPECT_EQ(keep_read_fields(once).json().dump(), once.json().dump());
  }
}

class SnapshotTest : public ::testing::Test {
 protected:
  static void add_everything(Snapshot& into, bool whole) {
    const auto put = [&](const Object& object) {
      if (whole) into.objects.push_back(object);
      if (!whole) into.add(object);
    };
    put(node_object("a", 8, "spec: {taints: [{key: t, effect: NoSchedule}]}"));
    put(node_object("b", 4, "metadata: {annotations: {tessera.dev/unhealthy-gpus: '1'}}"));
    put(Object(yaml(R"(
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: pg, namespace: default}
spec: {minMember: 2}
)")));
    put(Object(yaml(R"(
apiVersion: tessera.dev/v1alpha1
kind: Queue
metadata: {name: q}
spec: {limit: {gpu: 3}, quota: {gpu: 1}}
)")));
    put(Object(yaml(R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: pt, namespace: default, uid: pt, annotations: {tessera.dev/min-members: all}}
spec: {pytorchReplicaSpecs: {Master: {}, Worker: {replicas: 2}}}
)")));
    put(bound(pod_object("runs", "{}", 2), "b", "0,2"));
    put(pod_object("tolerates", "spec: {tolerations: [{key: t, operator: Exists}]}", 6));
    for (const char* name : {"g1", "g2"})
      put(pod_object(name, "metadata: {labels: {scheduling.x-k8s.io/pod-group: pg}}", 1));
    put(pod_object("limited", "metadata: {annotations: {tessera.dev/queue: q}}", 4));
    put(pod_object("share", "metadata: {annotations: {tessera.dev/gpu-milli: '500'}}"));
    put(pod_object("pt-0",
                   "metadata: {ownerReferences: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, "
                   "name: pt, uid: pt, controller: true}]}",
                   1));
    put(pod_object("claims",
                   "spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: c}}]}"));
  }
  static std::vector<std::string> decisions(Model model) {
    std::vector<std::string> out;
    for (const BindDecision& bind : model.cycle(kNow).binds) {
      out.push_back(fmt::format("{}>{} {}", bind.pod, model.node_name(bind.placement.node),
                                bind.placement.devices));
    }
    for (const auto& [key, group] : model.groups()) {
      for (const auto& [arrival, slot] : group.pods) {
        const PodEntry& pod = model.pod_at(slot);
        out.push_back(pod.object.key() + ": " + model.why(pod) + pod.hold);
      }
    }
    return out;
  }
};

TEST_F(SnapshotTest, A_model_of_what_was_kept_decides_as_one_of_the_whole_objects) {
  Snapshot whole;
  Snapshot kept;
  add_everything(whole, true);
  add_everything(kept, false);
  const auto wanted = decisions(model_of(whole, {}, kNow));
  EXPECT_EQ(decisions(model_of(kept, {}, kNow)), wanted);
  EXPECT_THAT(wanted, ::testing::Contains(HasSubstr("default/tolerates>a")));
  EXPECT_THAT(wanted, ::testing::Contains(HasSubstr("default/g1: 1 of its 2 members")));
  EXPECT_THAT(wanted, ::testing::Contains(HasSubstr("queue \"q\" has a limit of 3")));
  EXPECT_THAT(wanted, ::testing::Contains(HasSubstr("persistentvolumeclaim \"c\" not found")));
}

TEST_F(SnapshotTest, Its_text_is_read_back_as_it_was_written) {
  Snapshot snapshot;
  add_everything(snapshot, false);
  snapshot.taken = kNow;
  snapshot.server = "v1.36.3";
  snapshot.scheduler_names = {"default-scheduler", "tessera"};
  snapshot.left_out = {"jobs.batch: forbidden"};
  const auto again = parse_snapshot(to_text(snapshot));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_text(*again), to_text(snapshot));
  EXPECT_EQ(again->taken, kNow);
  EXPECT_EQ(decisions(model_of(*again, {}, kNow)), decisions(model_of(snapshot, {}, kNow)));
}

TEST(SnapshotFile, A_file_that_is_none_is_refused_with_what_is_wrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "line 1"},
      {"{}", "format: \"\" is not \"tessera-snapshot\""},
      {"[]", "format: "},
      {R"({"format":"tessera-snapshot","version":2})", "version: 2 is not 1"},
      {R"({"format":"tessera-snapshot","version":1,"objects":{}})", "objects: is not a list"},
      {R"({"format":"tessera-snapshot","version":1,"objects":[]})", "taken: null is no time"},
      {R"({"format":"tessera-snapshot","version":1,"objects":[],"extra":1})", "extra: is no field"},
      {R"({"format":"tessera-snapshot","version":1,"taken":"2026-01-01T00:00:00Z","objects":[1]})",
       "objects[0]: has no kind"},
      {R"({"format":"tessera-snapshot","version":1,"taken":"2026-01-01T00:00:00Z","objects":[
          {"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}]})",
       "objects[0]: a snapshot has no Secret of v1"},
      {R"({"format":"tessera-snapshot","version":1,"taken":"2026-01-01T00:00:00Z","objects":[
          {"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}},
          {"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}]})",
       "objects[1]: Node a stands there twice"},
      {R"({"format":"tessera-snapshot","version":1,"taken":"2026-01-01T00:00:00Z","objects":[],
          "leftOut":[1]})",
       "leftOut: is not a list of texts"},
  };
  for (const auto& [text, says] : wrong) {
    const auto read = parse_snapshot(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr(says));
  }
}

TEST(SnapshotNames, Schedulers_are_told_by_what_only_tessera_writes) {
  const auto pod = [](std::string_view name, std::string_view annotations) {
    return Object(
        yaml(fmt::format("{{metadata: {{name: a, annotations: {}}}, spec: {{schedulerName: {}}}}}",
                         annotations, name)));
  };
  EXPECT_THAT(
      served_names({pod("default-scheduler", "{tessera.dev/gpus: '0'}"), pod("other", "{}")}),
      ElementsAre("default-scheduler", "tessera"));
}

}  // namespace
}  // namespace tessera::scheduler
