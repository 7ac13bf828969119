// Gangs in the words of others, as their manifests come from the field: each starts whole or not at all, goes on above its
// minimum, and has its state told in its own words.

#include <gmock/gmock.h>

#include "gang_lab_testing.h"

namespace tessera::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Three GPUs at once, two more when `late` is let in.
constexpr const char* kFleet = R"(
racks: [{name: r, nodes: [{name: a, model: L4, gpus: 3}, {name: late, model: L4, gpus: 2}]}]
)";

// A definition of somebody else that takes everything.
std::string definition(std::string_view group, std::string_view version, std::string_view kind,
                       std::string_view plural) {
  std::string singular(plural.substr(0, plural.size() - 1));
  return fmt::format(R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {3}.{0}}}
spec:
  group: {0}
  scope: Namespaced
  names: {{plural: {3}, singular: {4}, kind: {2}, listKind: {2}List}}
  versions:
  - name: {1}
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
)",
                     group, version, kind, plural, singular);
}

class GangManifests : public ::testing::Test {
 protected:
  GangManifests() { lab.cordon("late-0", true); }

  void define(std::string_view group, std::string_view version, std::string_view kind,
              std::string_view plural) {
    lab.make(definition(group, version, kind, plural));
    lab.advance(base::seconds(2));
  }
  // "ownerReferences: [...]," of pods that the object controls.
  std::string owned_by(const kube::Object& name) {
    const kube::Object found = lab.read(name);
    EXPECT_TRUE(found) << name.json().dump();
    return fmt::format(
        "ownerReferences: [{{apiVersion: {}, kind: {}, name: {}, uid: {}, controller: true}}],",
        found.api_version(), found.kind(), found.name(), found.uid());
  }
  // With three GPUs nothing of "g-*" starts; with five at least `least` run, and as many as there are GPUs.
  void whole_or_not_at_all(int pods, std::string_view why = "members that must start together") {
    for (int i = 0; i < 30; ++i) {
      lab.advance(base::seconds(1));
      ASSERT_EQ(lab.bound("g-"), 0);
    }
    ASSERT_EQ(lab.pods("g-").size(), static_cast<size_t>(pods));
    EXPECT_THAT(lab.why_of("g-"), HasSubstr(why));
    lab.cordon("late-0", false);
    lab.advance(base::seconds(30));
    EXPECT_EQ(lab.running("g-"), std::min(pods, 5));
  }
  std::string phase(std::string_view group) {
    return lab.group(group, "g").get("status", "phase").str();
  }

  GangLab lab{kFleet};
};

constexpr const char* kVolcano = "scheduling.volcano.sh";
constexpr const char* kPlugins = "scheduling.x-k8s.io";
constexpr const char* kNative = "scheduling.k8s.io";

TEST_F(GangManifests, Volcano_a_group_with_more_members_than_its_minimum) {
  lab.make(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, "
      "spec: {minMember: 4, queue: default}}");
  lab.make(pods_yaml("g", 6, "annotations: {scheduling.k8s.io/group-name: g},"));
  whole_or_not_at_all(6);
  EXPECT_EQ(phase(kVolcano), "Running");
  const kube::Object group = lab.group(kVolcano, "g");
  EXPECT_EQ(group.get("status", "running").as_int(), 5);
  EXPECT_EQ(GangLab::condition(group, "Scheduled")["status"].as_string(), "True");
  EXPECT_THAT(lab.why_of("g-"), HasSubstr("it has a place for 5 members, and for no more"));
}

TEST_F(GangManifests, Volcano_a_job_makes_its_pods_once_its_group_may_enter_the_queue) {
  lab.make(R"(
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 2, queue: research, minResources: {nvidia.com/gpu: 2}}
)");
  lab.advance(base::seconds(5));
  EXPECT_EQ(phase(kVolcano), "Pending") << "there is no such queue";
  EXPECT_THAT(GangLab::condition(lab.group(kVolcano, "g"), "Unschedulable")["message"].str(),
              HasSubstr("queue \"research\" does not exist"));
  lab.make(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: research}, "
      "spec: {weight: 1, capability: {nvidia.com/gpu: 4}}}");
  lab.advance(base::seconds(5));
  EXPECT_EQ(phase(kVolcano), "Inqueue");
  lab.make(pods_yaml("g", 2,
                     "annotations: {scheduling.k8s.io/group-name: g, tessera.dev/run-for: 60s},"));
  lab.advance(base::seconds(20));
  EXPECT_EQ(phase(kVolcano), "Running");
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.phase("g-0"), "Succeeded");
  EXPECT_EQ(phase(kVolcano), "Completed");
  EXPECT_EQ(lab.group(kVolcano, "g").get("status", "succeeded").as_int(), 2);
}

TEST_F(GangManifests, Volcano_each_task_has_its_own_minimum) {
  lab.make(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, "
      "spec: {minMember: 3, minTaskMember: {master: 1, worker: 2}}}");
  const auto task = [](const char* name) {
    return fmt::format(
        "annotations: {{scheduling.k8s.io/group-name: g, volcano.sh/task-spec: {}}},", name);
  };
  lab.make(pods_yaml("g-worker", 3, task("worker")));
  lab.advance(base::seconds(30));
  EXPECT_EQ(lab.bound("g-"), 0) << "three members are enough, but not one of them is the master";
  lab.make(pods_yaml("g-master", 1, task("master")));
  lab.advance(base::seconds(30));
  EXPECT_EQ(lab.running("g-master"), 1);
  EXPECT_EQ(lab.running("g-worker"), 2);
}

TEST_F(GangManifests, Plugins_a_group_by_label) {
  lab.make(
      "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, "
      "spec: {minMember: 4, scheduleTimeoutSeconds: 10, minResources: {nvidia.com/gpu: 4}}}");
  lab.make(pods_yaml("g", 4, "labels: {scheduling.x-k8s.io/pod-group: g},"));
  whole_or_not_at_all(4);
  EXPECT_EQ(phase(kPlugins), "Running");
  EXPECT_EQ(lab.group(kPlugins, "g").get("status", "running").as_int(), 4);
}

TEST_F(GangManifests, Kubernetes_a_group_by_the_field_of_the_pod) {
  lab.make(
      "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g}, "
      "spec: {schedulingPolicy: {gang: {minCount: 4}}}}");
  lab.make(pods_yaml("g", 6, "", "schedulingGroup: {podGroupName: g},"));
  lab.advance(base::seconds(10));
  const json::Value waits =
      GangLab::condition(lab.group(kNative, "g"), "PodGroupInitiallyScheduled");
  EXPECT_EQ(waits["status"].as_string(), "False");
  EXPECT_EQ(waits["reason"].as_string(), "Unschedulable");
  whole_or_not_at_all(6);
  EXPECT_EQ(GangLab::condition(lab.group(kNative, "g"), "PodGroupInitiallyScheduled")["status"]
                .as_string(),
            "True");
}

TEST_F(GangManifests, KAI_a_group_by_annotation_in_a_queue_of_its_own) {
  lab.make(R"(
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team-a}
spec: {resources: {gpu: {quota: 1, limit: 5, overQuotaWeight: 1}}}
---
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: g}
spec: {minMember: 4, queue: team-a, priorityClassName: train}
)");
  lab.make(pods_yaml("g", 6,
                     "labels: {kai.scheduler/queue: team-a}, annotations: {pod-group-name: g},"));
  whole_or_not_at_all(6);
}

TEST_F(GangManifests, Kueue_a_group_by_label_has_all_its_pods) {
  lab.make(
      pods_yaml("g", 3,
                "labels: {kueue.x-k8s.io/pod-group-name: g, kueue.x-k8s.io/queue-name: default}, "
                "annotations: {kueue.x-k8s.io/pod-group-total-count: '4'},"));
  lab.advance(base::seconds(20));
  EXPECT_EQ(lab.bound("g-"), 0);
  EXPECT_THAT(lab.why_of("g-"), HasSubstr("4 members must start together and 3 exist"));
  lab.make(
      pods_yaml("g-last", 1,
                "labels: {kueue.x-k8s.io/pod-group-name: g, kueue.x-k8s.io/queue-name: default}, "
                "annotations: {kueue.x-k8s.io/pod-group-total-count: '4'},"));
  whole_or_not_at_all(4);
}

TEST_F(GangManifests, Kubeflow_a_training_job_with_roles) {
  define("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs");
  lab.make(R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: g}
spec:
  runPolicy: {schedulingPolicy: {minAvailable: 4}}
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: []}}}
    Worker: {replicas: 3, template: {spec: {containers: []}}}
)");
  const std::string owner = owned_by(lab.named("kubeflow.org/v1", "PyTorchJob", "g"));
  lab.make(
      pods_yaml("g-worker", 3, owner + "labels: {training.kubeflow.org/replica-type: worker},"));
  lab.advance(base::seconds(30));
  EXPECT_EQ(lab.bound("g-"), 0) << "the master is not there yet";
  lab.make(
      pods_yaml("g-master", 1, owner + "labels: {training.kubeflow.org/replica-type: master},"));
  whole_or_not_at_all(4);
}

TEST_F(GangManifests, Kubeflow_a_minimum_by_role) {
  define("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs");
  lab.make(R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: g, annotations: {tessera.dev/min-members: "master=1,worker=3"}}
spec:
  pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 5}}
)");
  const std::string owner = owned_by(lab.named("kubeflow.org/v1", "PyTorchJob", "g"));
  lab.make(
      pods_yaml("g-worker", 5, owner + "labels: {training.kubeflow.org/replica-type: worker},"));
  lab.cordon("late-0", false);
  lab.advance(base::seconds(30));
  EXPECT_EQ(lab.bound("g-"), 0) << "five workers have room, but no master is there";
  lab.make(
      pods_yaml("g-master", 1, owner + "labels: {training.kubeflow.org/replica-type: master},"));
  lab.advance(base::seconds(30));
  EXPECT_EQ(lab.running("g-master"), 1);
  EXPECT_EQ(lab.running("g-worker"), 4);
}

TEST_F(GangManifests, MPI_launcher_and_workers) {
  define("kubeflow.org", "v2beta1", "MPIJob", "mpijobs");
  lab.make(R"(
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: g, annotations: {tessera.dev/min-members: all}}
spec: {slotsPerWorker: 1, mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 4}}}
)");
  const std::string owner = owned_by(lab.named("kubeflow.org/v2beta1", "MPIJob", "g"));
  lab.make(
      pods_yaml("g-worker", 4, owner + "labels: {training.kubeflow.org/replica-type: worker},"));
  lab.advance(base::seconds(20));
  EXPECT_THAT(lab.why_of("g-"), HasSubstr("5 members must start together and 4 exist"));
  lab.make(pods_yaml("g-launcher", 1,
                     owner + "labels: {training.kubeflow.org/replica-type: launcher},"));
  whole_or_not_at_all(5);
}

TEST_F(GangManifests, Ray_a_cluster) {
  define("ray.io", "v1", "RayCluster", "rayclusters");
  lab.make(R"(
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: g, annotations: {tessera.dev/min-members: "4"}}
spec: {headGroupSpec: {}, workerGroupSpecs: [{groupName: w, replicas: 4, minReplicas: 3, maxReplicas: 4}]}
)");
  const std::string owner = owned_by(lab.named("ray.io/v1", "RayCluster", "g"));
  lab.make(pods_yaml("g-head", 1, owner + "labels: {ray.io/group: headgroup},"));
  lab.make(pods_yaml("g-worker", 4, owner + "labels: {ray.io/group: w},"));
  whole_or_not_at_all(5);
}

TEST_F(GangManifests, JobSet_all_its_jobs_together) {
  define("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets");
  lab.make(R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: g, annotations: {tessera.dev/min-members: all}}
spec:
  replicatedJobs:
  - {name: workers, replicas: 2, template: {spec: {parallelism: 2, completions: 2}}}
)");
  const std::string owner = owned_by(lab.named("jobset.x-k8s.io/v1alpha2", "JobSet", "g"));
  for (int i = 0; i < 2; ++i) {
    lab.make(fmt::format(R"(
apiVersion: batch/v1
kind: Job
metadata: {{{} name: g-workers-{}}}
spec:
  parallelism: 2
  completions: 2
  completionMode: Indexed
  template:
    metadata: {{labels: {{jobset.sigs.k8s.io/replicatedjob-name: workers}}}}
    spec:
      restartPolicy: Never
      containers: [{{name: c, image: "registry.example/c:1", resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]
)",
                         owner, i));
    lab.advance(base::seconds(10));
    EXPECT_EQ(lab.bound("g-"), 0);
  }
  whole_or_not_at_all(4);
}

std::string set_yaml(std::string_view name, int replicas, std::string_view meta,
                     std::string_view labels) {
  return fmt::format(R"(---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{{2} name: {0}}}
spec:
  replicas: {1}
  serviceName: {0}
  podManagementPolicy: Parallel
  selector: {{matchLabels: {{set: {0}}}}}
  template:
    metadata: {{labels: {{{3} set: {0}}}}}
    spec:
      containers: [{{name: c, image: "registry.example/c:1", resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]
)",
                     name, replicas, meta, labels);
}

TEST_F(GangManifests, LeaderWorkerSet_each_group_is_a_gang) {
  define("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets");
  lab.make(R"(
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: g, annotations: {tessera.dev/min-members: all}}
spec: {replicas: 1, leaderWorkerTemplate: {size: 4}}
)");
  constexpr const char* kLabels =
      "leaderworkerset.sigs.k8s.io/name: g, leaderworkerset.sigs.k8s.io/group-index: '0',";
  lab.make(set_yaml(
      "g", 1, owned_by(lab.named("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "g")), kLabels));
  lab.advance(base::seconds(5));
  EXPECT_EQ(lab.bound("g-"), 0);
  EXPECT_THAT(lab.why_of("g-0"), HasSubstr("4 members must start together and 1 exist"));
  lab.make(set_yaml("g-0", 3, owned_by(lab.named("v1", "Pod", "g-0")), kLabels));
  whole_or_not_at_all(4);
}

TEST_F(GangManifests, An_indexed_job_with_a_minimum) {
  lab.make(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: g, annotations: {tessera.dev/min-members: "4"}}
spec:
  parallelism: 6
  completions: 6
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "registry.example/c:1", resources: {limits: {nvidia.com/gpu: 1}}}]
)");
  whole_or_not_at_all(6);
}

TEST_F(GangManifests, A_set_of_pods_with_a_minimum) {
  lab.make(set_yaml("g", 4, "annotations: {tessera.dev/min-members: all},", ""));
  whole_or_not_at_all(4);
}

TEST_F(GangManifests, Without_a_minimum_the_pods_of_a_job_come_one_by_one) {
  lab.make(set_yaml("g", 4, "", ""));
  lab.advance(base::seconds(20));
  EXPECT_EQ(lab.running("g-"), 3);
}

TEST_F(GangManifests, Pods_for_another_scheduler_are_left_alone_until_this_one_serves_its_name) {
  lab.make(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, "
      "spec: {minMember: 2}}");
  lab.make(pods_yaml("g", 2, "annotations: {scheduling.k8s.io/group-name: g},",
                     "schedulerName: volcano,"));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.bound("g-"), 0);
  EXPECT_EQ(lab.why_of("g-"), "");
  EXPECT_THAT(lab.events("Pod", "g-0"), IsEmpty());
  scheduler::Scheduler::Options options;
  options.names = {"volcano"};
  scheduler::Scheduler other(lab.client(), lab.loop(), lab.clock(), base::Random(9), options);
  other.start();
  lab.advance(base::seconds(30));
  EXPECT_EQ(lab.running("g-"), 2);
}

}  // namespace
}  // namespace tessera::sim
