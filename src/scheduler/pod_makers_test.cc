#include "scheduler/pod_makers.h"

#include <gmock/gmock.h>

#include "scheduler/groups.h"
#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using kube::Object;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::yaml;

constexpr base::Time kNow{1'767'225'600'000'000'000};

class PodMakerTest : public ::testing::Test {
 protected:
  Made make(std::string_view text) {
    PodMaker::Options options;
    options.now = kNow;
    options.ns = "ml";
    options.nodes = {"n1", "n2"};
    options.priority_class = [](std::string_view name) {
      return name == "high" ? Object(yaml("{value: 7, preemptionPolicy: Never}")) : Object();
    };
    made = PodMaker(options).make(yaml(text));
    return made;
  }
  static std::vector<std::string> names(const std::vector<Object>& objects) {
    std::vector<std::string> out;
    for (const Object& object : objects) out.push_back(object.key());
    return out;
  }
  // What the scheduler reads of the gang of the first pod.
  Group group() {
    GroupSources sources;
    sources.object = [this](auto, auto kind, auto ns, auto name) {
      for (const Object& object : made.objects) {
        if (object.kind() == kind && object.ns() == ns && object.name() == name) return object;
      }
      return Object();
    };
    return read_group(made.pods.front(), sources);
  }

  Made made;
};

TEST_F(PodMakerTest, A_pod_is_itself_with_what_the_api_adds) {
  make(
      "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {priorityClassName: high, nodeName: "
      "x}}");
  ASSERT_THAT(names(made.pods), ElementsAre("ml/p"));
  const Object& pod = made.pods[0];
  EXPECT_EQ(pod.get("spec", "schedulerName").as_string(), "default-scheduler");
  EXPECT_EQ(pod.get("spec", "priority").as_int(), 7);
  EXPECT_EQ(pod.get("spec", "preemptionPolicy").as_string(), "Never");
  EXPECT_TRUE(pod.get("spec", "nodeName").is_null());
  EXPECT_FALSE(pod.uid().empty());
  EXPECT_EQ(made.title, "Pod ml/p");
}

TEST_F(PodMakerTest, A_class_that_is_missing_is_told_once) {
  make(R"(
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: r}
spec: {replicas: 2, template: {spec: {priorityClassName: nope}}}
)");
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("PriorityClass nope does not exist")));
}

TEST_F(PodMakerTest, Jobs_make_what_runs_at_one_time) {
  make(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 5, completions: "
      "2}}");
  EXPECT_THAT(names(made.pods), ElementsAre("ml/j-0", "ml/j-1"));
  EXPECT_EQ(made.pods[0].label("batch.kubernetes.io/job-name"), "j");
  make("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {suspend: true}}");
  EXPECT_THAT(made.pods, IsEmpty());
  EXPECT_THAT(made.notes, ElementsAre("Job j is suspended: it makes no pods"));
  make(R"(
apiVersion: batch/v1
kind: CronJob
metadata: {name: c}
spec: {jobTemplate: {spec: {parallelism: 2}}}
)");
  EXPECT_THAT(names(made.pods), ElementsAre("ml/c-run-0", "ml/c-run-1"));
}

TEST_F(PodMakerTest, Workloads_make_their_replicas_through_what_stands_in_between) {
  make(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {replicas: 2, template: {metadata: {labels: {app: d}}, spec: {}}}
)");
  EXPECT_THAT(names(made.objects), ElementsAre("ml/d", "ml/d-planned"));
  EXPECT_THAT(names(made.pods), ElementsAre("ml/d-planned-0", "ml/d-planned-1"));
  EXPECT_EQ(made.pods[0].label("app"), "d");
  make(R"(
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec: {replicas: 2, template: {spec: {}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]}
)");
  EXPECT_THAT(names(made.objects), ElementsAre("ml/s", "ml/data-s-0", "ml/data-s-1"));
  EXPECT_EQ(made.pods[1]
                .get("spec", "volumes")
                .at(0)
                .get("persistentVolumeClaim", "claimName")
                .as_string(),
            "data-s-1");
  make("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {template: {spec: {}}}}");
  EXPECT_THAT(names(made.pods), ElementsAre("ml/d-n1", "ml/d-n2"));
}

TEST_F(PodMakerTest, Training_jobs_make_their_roles_as_one_gang) {
  make(R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: t, annotations: {tessera.dev/min-members: all}}
spec: {pytorchReplicaSpecs: {Master: {template: {spec: {}}}, Worker: {replicas: 2, template: {spec: {}}}}}
)");
  EXPECT_THAT(names(made.pods), ElementsAre("ml/t-master-0", "ml/t-worker-0", "ml/t-worker-1"));
  EXPECT_EQ(group().spec.min_members, 3);
  EXPECT_EQ(group().spec.name, "ml/t");
}

TEST_F(PodMakerTest, A_job_of_volcano_has_the_group_that_its_pods_name) {
  make(R"(
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: v}
spec:
  minAvailable: 3
  queue: research
  tasks: [{name: ps, replicas: 1, template: {spec: {}}}, {name: worker, replicas: 2, template: {spec: {}}}]
)");
  EXPECT_THAT(names(made.pods), ElementsAre("ml/v-ps-0", "ml/v-worker-0", "ml/v-worker-1"));
  EXPECT_EQ(group().spec.min_members, 3);
  EXPECT_EQ(group().spec.queue, "research");
  EXPECT_THAT(group().spec.subgroup_mins, ElementsAre(1, 2, 0));
}

TEST_F(PodMakerTest, Sets_of_jobs_and_of_groups_and_clusters_are_made_whole) {
  make(R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: s, annotations: {tessera.dev/min-members: all}}
spec: {replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 2}}}]}
)");
  EXPECT_THAT(names(made.pods),
              ElementsAre("ml/s-w-0-0", "ml/s-w-0-1", "ml/s-w-1-0", "ml/s-w-1-1"));
  EXPECT_EQ(group().spec.min_members, 4);
  make(R"(
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: l, annotations: {tessera.dev/min-members: all}}
spec: {replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {}}}}
)");
  EXPECT_THAT(names(made.pods), ElementsAre("ml/l-0", "ml/l-0-1", "ml/l-1", "ml/l-1-1"));
  EXPECT_EQ(group().spec.min_members, 2);
  make(R"(
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: r}
spec:
  rayClusterSpec:
    headGroupSpec: {template: {spec: {}}}
    workerGroupSpecs: [{groupName: g, replicas: 2, template: {spec: {}}}]
)");
  EXPECT_THAT(names(made.pods),
              ElementsAre("ml/r-raycluster-head", "ml/r-raycluster-g-0", "ml/r-raycluster-g-1"));
}

TEST_F(PodMakerTest, What_makes_no_pods_is_left_out_or_taken_as_it_is) {
  make("{apiVersion: v1, kind: Secret, metadata: {name: s}}");
  EXPECT_THAT(made.objects, IsEmpty());
  EXPECT_THAT(made.notes, ElementsAre("Secret ml/s: has no say in where pods go, and is left out"));
  make("{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: q}}");
  EXPECT_THAT(names(made.objects), ElementsAre("q"));
  EXPECT_EQ(made.problem, "");
}

TEST_F(PodMakerTest, Kinds_whose_pods_are_not_known_are_refused) {
  for (const char* what : {"trainer.kubeflow.org/v1alpha1, kind: TrainJob",
                           "example.com/v1, kind: Thing", "kubeflow.org/v1, kind: FooJob"}) {
    make(fmt::format("{{apiVersion: {}, metadata: {{name: a}}}}", what));
    EXPECT_THAT(made.problem, HasSubstr("is not known: give its pods")) << what;
  }
  make("{metadata: {name: a}}");
  EXPECT_THAT(made.problem, HasSubstr("no kind"));
}

TEST_F(PodMakerTest, There_is_an_end_to_how_many_are_made) {
  make(
      "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {replicas: "
      "999999999999}}");
  EXPECT_THAT(made.problem, HasSubstr("more than 100000 pods"));
}

}  // namespace
}  // namespace tessera::scheduler
