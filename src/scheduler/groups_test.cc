#include "scheduler/groups.h"

#include <gmock/gmock.h>

#include "scheduler/group_reading.h"
#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::pod_object;
using testing::yaml;

class GroupsTest : public ::testing::Test {
 protected:
  GroupsTest() {
    sources.object = [this](std::string_view group, std::string_view kind, std::string_view in,
                            std::string_view name) {
      for (const kube::Object& each : world) {
        if (group_of(each.api_version()) == group && each.kind() == kind && each.name() == name &&
            each.ns() == in)
          return each;
      }
      return kube::Object();
    };
    sources.ns = [this](std::string_view) { return ns; };
    sources.priority_class = [](std::string_view name) -> std::optional<int32_t> {
      return name == "high" ? std::optional(1000) : std::nullopt;
    };
    sources.queue_exists = [](std::string_view name) { return name == "default/lq"; };
  }
  // An object of namespace "default" whose uid is "uid-NAME".
  void have(std::string_view api_version, std::string_view kind, std::string_view name,
            std::string_view rest = "{}") {
    json::Value object = yaml("metadata: {namespace: default}");
    object.set("apiVersion", api_version);
    object.set("kind", kind);
    object.ref("metadata", "name") = name;
    object.ref("metadata", "uid") = "uid-" + std::string(name);
    testing::merge(object, yaml(rest));
    world.emplace_back(object);
  }
  static std::string owned(std::string_view api_version, std::string_view kind,
                           std::string_view name) {
    return fmt::format(
        "ownerReferences: [{{apiVersion: {}, kind: {}, name: {}, uid: uid-{}, controller: true}}]",
        api_version, kind, name, name);
  }
  static std::string owned_object(std::string_view api_version, std::string_view kind,
                                  std::string_view name) {
    return fmt::format("metadata: {{{}}}\n", owned(api_version, kind, name));
  }
  Group read(std::string_view pod) { return read_group(pod_object("p", pod), sources); }

  std::vector<kube::Object> world;
  kube::Object ns{};
  GroupSources sources;
};

constexpr const char* kVolcanoPod = "metadata: {annotations: {scheduling.k8s.io/group-name: g}}";
constexpr const char* kPluginsPod = "metadata: {labels: {scheduling.x-k8s.io/pod-group: g}}";
constexpr const char* kNativePod = "spec: {schedulingGroup: {podGroupName: g}}";
constexpr const char* kVolcanoApi = "scheduling.volcano.sh/v1beta1";
constexpr const char* kPluginsApi = "scheduling.x-k8s.io/v1alpha1";
constexpr const char* kNativeApi = "scheduling.k8s.io/v1beta1";

TEST_F(GroupsTest, A_pod_that_names_nothing_is_a_gang_of_one) {
  const Group group = read("spec: {priority: 7}");
  EXPECT_EQ(group.dialect, Dialect::kAlone);
  EXPECT_EQ(group.key, "Pod/default/p/uid-p");
  EXPECT_EQ(group.spec.name, "default/p");
  EXPECT_EQ(group.spec.min_members, 1);
  EXPECT_EQ(group.spec.priority, 7);
  EXPECT_EQ(group.spec.queue, "default");
  EXPECT_FALSE(group.spec.runtime);
  EXPECT_EQ(group.waits, "");
  EXPECT_THAT(group.notes, IsEmpty());
}

TEST_F(GroupsTest, Every_kind_of_group_says_its_minimum) {
  have(kVolcanoApi, "PodGroup", "g", "spec: {minMember: 3}");
  have(kPluginsApi, "PodGroup", "g", "spec: {minMember: 4, scheduleTimeoutSeconds: 90}");
  have(kNativeApi, "PodGroup", "g", "spec: {schedulingPolicy: {gang: {minCount: 5}}}");
  have(kNativeApi, "PodGroup", "basic", "spec: {schedulingPolicy: {basic: {}}}");
  have("scheduling.k8s.io/v1alpha1", "Workload", "w",
       "spec: {podGroups: [{name: a, policy: {basic: {}}}, {name: b, policy: {gang: {minCount: "
       "6}}}]}");
  have("scheduling.run.ai/v2alpha2", "PodGroup", "g", "spec: {minMember: 7}");
  struct Case {
    const char* pod;
    Dialect dialect;
    const char* key;
    int32_t least;
  };
  for (const Case& c :
       {Case{kVolcanoPod, Dialect::kVolcano, "PodGroup.scheduling.volcano.sh/default/g", 3},
        Case{"metadata: {annotations: {scheduling.volcano.sh/group-name: g}}", Dialect::kVolcano,
             "PodGroup.scheduling.volcano.sh/default/g", 3},
        Case{kPluginsPod, Dialect::kPlugins, "PodGroup.scheduling.x-k8s.io/default/g", 4},
        Case{kNativePod, Dialect::kKubernetes, "PodGroup.scheduling.k8s.io/default/g", 5},
        Case{"spec: {schedulingGroup: {podGroupName: basic}}", Dialect::kKubernetes,
             "PodGroup.scheduling.k8s.io/default/basic", 1},
        Case{"spec: {workloadRef: {name: w, podGroup: b, podGroupReplicaKey: r}}",
             Dialect::kWorkload, "Workload.scheduling.k8s.io/default/w/b/r", 6},
        Case{"metadata: {annotations: {pod-group-name: g}}", Dialect::kKai,
             "PodGroup.scheduling.run.ai/default/g", 7},
        Case{"metadata: {labels: {kueue.x-k8s.io/pod-group-name: q}, annotations: "
             "{kueue.x-k8s.io/pod-group-total-count: '8'}}",
             Dialect::kKueue, "PodGroup.kueue.x-k8s.io/default/q", 8}}) {
    const Group group = read(c.pod);
    EXPECT_EQ(group.dialect, c.dialect) << c.pod;
    EXPECT_EQ(group.key, c.key);
    EXPECT_EQ(group.spec.min_members, c.least) << c.pod;
    EXPECT_EQ(group.waits, "") << c.pod;
    EXPECT_THAT(group.notes, IsEmpty()) << c.pod;
  }
  EXPECT_EQ(read(kPluginsPod).schedule_timeout, base::seconds(90));
  EXPECT_EQ(read(kVolcanoPod).object, (ObjectName{kVolcanoApi, "PodGroup", "default", "g"}));
}

TEST_F(GroupsTest, A_minimum_that_cannot_be_read_holds_the_gang_back_with_the_field) {
  struct Case {
    const char* value;
    const char* why;
  };
  for (const Case& c : {Case{"-1", "spec.minMember: \"-1\" is no whole number"},
                        Case{"many", "spec.minMember: \"many\" is no whole number"},
                        Case{"1.5", "is no whole number"}, Case{"[]", "is no whole number"},
                        Case{"99999999999", "is no whole number from 0 to 2147483647"}}) {
    world.clear();
    const std::string spec = fmt::format("spec: {{minMember: {}}}", c.value);
    have(kVolcanoApi, "PodGroup", "g", spec);
    have(kPluginsApi, "PodGroup", "g", spec);
    EXPECT_THAT(read(kVolcanoPod).waits, HasSubstr(c.why));
    EXPECT_THAT(read(kPluginsPod).waits, HasSubstr(c.why));
    EXPECT_EQ(read(kVolcanoPod).spec.min_members, 1);
  }
  world.clear();
  have(kVolcanoApi, "PodGroup", "g");
  have(kNativeApi, "PodGroup", "g", "spec: {schedulingPolicy: {gang: {}}}");
  EXPECT_EQ(read(kVolcanoPod).waits, "");
  EXPECT_THAT(read(kVolcanoPod).notes, ElementsAre(HasSubstr("spec.minMember is missing")));
  EXPECT_THAT(read(kNativePod).waits, HasSubstr("gang.minCount is missing"));
  EXPECT_THAT(read("metadata: {labels: {kueue.x-k8s.io/pod-group-name: q}}").waits,
              HasSubstr("pod-group-total-count is missing"));
}

TEST_F(GroupsTest, A_group_that_does_not_exist_holds_its_pods_back) {
  EXPECT_EQ(read(kVolcanoPod).waits,
            "PodGroup g of scheduling.volcano.sh does not exist: create it, or take its name off "
            "the pod");
  EXPECT_THAT(read("spec: {workloadRef: {name: w, podGroup: x}}").waits,
              HasSubstr("Workload w of scheduling.k8s.io"));
  have("scheduling.k8s.io/v1alpha1", "Workload", "w");
  EXPECT_THAT(read("spec: {workloadRef: {name: w, podGroup: x}}").waits,
              HasSubstr("has no pod group \"x\""));
  EXPECT_EQ(read("metadata: {annotations: {pod-group-name: g}}").dialect, Dialect::kAlone);
}

TEST_F(GroupsTest, A_minimum_by_task_makes_sub_groups_that_all_members_agree_on) {
  have(kVolcanoApi, "PodGroup", "g", "spec: {minMember: 2, minTaskMember: {worker: 3, master: 1}}");
  const auto of_task = [&](std::string_view task) {
    return read(
        fmt::format("metadata: {{annotations: {{scheduling.k8s.io/group-name: g, "
                    "volcano.sh/task-spec: {}}}}}",
                    task));
  };
  const Group worker = of_task("worker");
  EXPECT_THAT(worker.spec.subgroup_mins, ElementsAre(1, 3, 0));
  EXPECT_THAT(worker.subgroup_names, ElementsAre("master", "worker", ""));
  EXPECT_EQ(worker.subgroup, 1);
  EXPECT_EQ(worker.spec.min_members, 4);
  EXPECT_EQ(of_task("master").subgroup, 0);
  EXPECT_EQ(of_task("other").subgroup, 2);
  EXPECT_EQ(of_task("other").spec.subgroup_mins, worker.spec.subgroup_mins);
}

TEST_F(GroupsTest, Policies_of_sub_groups_count_their_groups_together) {
  have(kVolcanoApi, "PodGroup", "g", R"(
spec:
  minMember: 2
  subGroupPolicy:
  - {name: a, labelSelector: {matchLabels: {r: a}}, subGroupSize: 4, minSubGroups: 2}
  - {name: b, labelSelector: {matchLabels: {r: b}}, matchLabelKeys: [x], subGroupSize: 1}
)");
  const Group group =
      read("metadata: {labels: {r: b}, annotations: {scheduling.k8s.io/group-name: g}}");
  EXPECT_THAT(group.spec.subgroup_mins, ElementsAre(8, 1, 0));
  EXPECT_EQ(group.subgroup, 1);
  EXPECT_EQ(group.spec.min_members, 9);
  EXPECT_THAT(group.notes, ElementsAre(HasSubstr("subGroupPolicy[1].matchLabelKeys")));
  have("scheduling.run.ai/v2alpha2", "PodGroup", "k",
       "spec: {minMember: 3, subGroups: [{name: l, minMember: 1}, {name: w, minMember: 4}]}");
  const Group kai = read(
      "metadata: {labels: {kai.scheduler/subgroup-name: w}, annotations: {pod-group-name: k}}");
  EXPECT_THAT(kai.spec.subgroup_mins, ElementsAre(1, 4, 0));
  EXPECT_EQ(kai.subgroup, 1);
  EXPECT_EQ(kai.spec.min_members, 5);
}

TEST_F(GroupsTest, The_group_of_Kubernetes_says_who_goes_together) {
  for (const char* all : {"{all: {}}", "PodGroup"}) {
    world.clear();
    have(kNativeApi, "PodGroup", "g",
         fmt::format("spec: {{schedulingPolicy: {{gang: {{minCount: 2}}}}, disruptionMode: {}, "
                     "priority: 9, priorityClassName: high, preemptionPolicy: Never}}",
                     all));
    const Group group = read(kNativePod);
    EXPECT_TRUE(group.spec.evict_whole) << all;
    EXPECT_FALSE(group.spec.preempts);
    EXPECT_EQ(group.spec.priority, 9);
  }
  world.clear();
  have(kNativeApi, "PodGroup", "g",
       "spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {single: {}}}");
  EXPECT_FALSE(read(kNativePod).spec.evict_whole);
}

TEST_F(GroupsTest, Of_two_dialects_the_first_counts_and_the_other_is_told) {
  have(kVolcanoApi, "PodGroup", "g", "spec: {minMember: 3}");
  have(kPluginsApi, "PodGroup", "h", "spec: {minMember: 4}");
  have(kPluginsApi, "PodGroup", "g", "spec: {minMember: 4}");
  have(kNativeApi, "PodGroup", "native", "spec: {schedulingPolicy: {gang: {minCount: 5}}}");
  Group group = read(R"(
metadata: {labels: {scheduling.x-k8s.io/pod-group: h}, annotations: {scheduling.k8s.io/group-name: g}}
)");
  EXPECT_EQ(group.dialect, Dialect::kVolcano);
  EXPECT_EQ(group.spec.min_members, 3);
  EXPECT_THAT(group.notes,
              ElementsAre("the pod names PodGroup of scheduling.volcano.sh g and PodGroup of "
                          "scheduling.x-k8s.io h: the first counts; keep one of them"));
  group = read(R"(
metadata: {labels: {scheduling.x-k8s.io/pod-group: g}, annotations: {scheduling.k8s.io/group-name: g}}
)");
  EXPECT_THAT(group.notes, ElementsAre(HasSubstr("minimum of 3")));
  group = read(R"(
metadata: {annotations: {scheduling.k8s.io/group-name: g}}
spec: {schedulingGroup: {podGroupName: native}}
)");
  EXPECT_EQ(group.dialect, Dialect::kKubernetes);
  EXPECT_EQ(group.spec.min_members, 5);
  EXPECT_EQ(group.notes.size(), 1U);
}

TEST_F(GroupsTest, An_owner_groups_its_pods_only_where_a_minimum_is_asked_for) {
  struct Case {
    const char* api;
    const char* kind;
    const char* spec;
    int64_t pods;
  };
  const Case kCases[] = {
      {"batch/v1", "Job", "{parallelism: 4}", 4},
      {"batch/v1", "Job", "{parallelism: 9, completions: 4, completionMode: Indexed}", 4},
      {"apps/v1", "StatefulSet", "{replicas: 5, podManagementPolicy: Parallel}", 5},
      {"jobset.x-k8s.io/v1alpha2", "JobSet",
       "{replicatedJobs: [{name: a, replicas: 2, template: {spec: {parallelism: 3}}}, {name: b}]}",
       7},
      {"kubeflow.org/v1", "PyTorchJob",
       "{pytorchReplicaSpecs: {Master: {}, Worker: {replicas: 3}}}", 4},
      {"kubeflow.org/v2beta1", "MPIJob", "{mpiReplicaSpecs: {Launcher: {}, Worker: {replicas: 3}}}",
       4},
      {"kubeflow.org/v2beta1", "MPIJob",
       "{launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {}, Worker: "
       "{replicas: 3}}}",
       3},
      {"ray.io/v1", "RayCluster",
       "{workerGroupSpecs: [{replicas: 2, numOfHosts: 2}, {replicas: 1}]}", 6},
      {"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet",
       "{replicas: 3, leaderWorkerTemplate: {size: 4}}", 4},
      {"batch.volcano.sh/v1alpha1", "Job", "{tasks: [{replicas: 2}, {replicas: 3}]}", 5},
  };
  for (const Case& c : kCases) {
    world.clear();
    have(c.api, c.kind, "o", fmt::format("spec: {}", c.spec));
    const std::string owner = owned(c.api, c.kind, "o");
    EXPECT_EQ(read(fmt::format("metadata: {{{}}}", owner)).dialect, Dialect::kAlone) << c.spec;
    const auto asking = [&](const char* least) {
      return read(fmt::format("metadata: {{annotations: {{tessera.dev/min-members: '{}'}}, {}}}",
                              least, owner));
    };
    Group group = asking("2");
    EXPECT_EQ(group.dialect, Dialect::kOwner) << c.spec;
    EXPECT_THAT(group.key, HasSubstr(fmt::format("{}/default/o/uid-o", c.kind)));
    EXPECT_EQ(group.spec.min_members, 2);
    EXPECT_EQ(group.waits, "");
    EXPECT_EQ(asking("all").spec.min_members, c.pods) << c.spec;
    EXPECT_THAT(asking("100").waits, HasSubstr(fmt::format("100 is above the {} pods that {} o "
                                                           "makes",
                                                           c.pods, c.kind)));
    EXPECT_THAT(asking("-3").waits, HasSubstr("is no whole number"));
  }
}

TEST_F(GroupsTest, Pods_that_come_one_after_the_other_are_no_gang) {
  have("apps/v1", "StatefulSet", "o", "spec: {replicas: 5}");
  have("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "o",
       "spec: {startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 4}}");
  for (const auto& [api, kind] : {std::pair("apps/v1", "StatefulSet"),
                                  std::pair("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")}) {
    EXPECT_THAT(read(fmt::format("metadata: {{annotations: {{tessera.dev/min-members: '2'}}, {}}}",
                                 owned(api, kind, "o")))
                    .waits,
                HasSubstr("2 is above the 1 pods that"));
  }
}

TEST_F(GroupsTest, The_topmost_job_is_the_gang_and_the_nearest_owner_that_asks_narrows_it) {
  have("batch/v1", "Job", "s-a-0",
       owned_object("jobset.x-k8s.io/v1alpha2", "JobSet", "s") + "spec: {parallelism: 2}");
  have("jobset.x-k8s.io/v1alpha2", "JobSet", "s", R"(
spec: {replicatedJobs: [{name: a, replicas: 2, template: {spec: {parallelism: 2}}}]}
)");
  const std::string owner = owned("batch/v1", "Job", "s-a-0");
  const std::string pod =
      fmt::format("metadata: {{annotations: {{tessera.dev/min-members: all}}, {}}}", owner);
  EXPECT_EQ(read(pod).key, "JobSet/default/s/uid-s");
  EXPECT_EQ(read(pod).spec.min_members, 4);
  world[0] =
      testing::with(world[0], "metadata: {annotations: {kai.scheduler/batch-min-member: '2'}}");
  const Group narrowed = read(pod);
  EXPECT_EQ(narrowed.key, "Job/default/s-a-0/uid-s-a-0");
  EXPECT_EQ(narrowed.spec.min_members, 2);
  EXPECT_THAT(narrowed.notes, ElementsAre(HasSubstr("keep one of them")));
}

TEST_F(GroupsTest, Roles_have_minima_of_their_own) {
  have("kubeflow.org/v1", "PyTorchJob", "o",
       "spec: {pytorchReplicaSpecs: {Master: {}, Worker: {replicas: 8}}}");
  const auto of_role = [&](const char* role, const char* least) {
    return read(
        fmt::format("metadata: {{labels: {{training.kubeflow.org/replica-type: {}}}, "
                    "annotations: {{tessera.dev/min-members: '{}'}}, {}}}",
                    role, least, owned("kubeflow.org/v1", "PyTorchJob", "o")));
  };
  const Group group = of_role("worker", "master=1,worker=4");
  EXPECT_THAT(group.spec.subgroup_mins, ElementsAre(1, 4, 0));
  EXPECT_EQ(group.subgroup, 1);
  EXPECT_EQ(group.spec.min_members, 5);
  EXPECT_EQ(of_role("x", "master=1,worker=4").subgroup, 2);
  EXPECT_THAT(of_role("worker", "master=1,worker").waits, HasSubstr("is no whole number"));
  EXPECT_EQ(of_role("worker", "master=1,worker=99999999999").subgroup,
            1);  // a bad count leaves the place known
  EXPECT_THAT(of_role("worker", "worker=4000000000").waits, HasSubstr("is no whole number"));
}

TEST_F(GroupsTest, A_LeaderWorkerSet_is_one_gang_per_group_for_workers_too) {
  have("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "l",
       "spec: {leaderWorkerTemplate: {size: 4}}");
  // A worker, whose owners (a StatefulSet, the leader's pod) are not known.
  const Group group = read(R"(
metadata:
  labels: {leaderworkerset.sigs.k8s.io/name: l, leaderworkerset.sigs.k8s.io/group-index: "3"}
  annotations: {tessera.dev/min-members: all}
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: l-3, uid: u, controller: true}]
)");
  EXPECT_EQ(group.key, "LeaderWorkerSet/default/l/uid-l/3");
  EXPECT_EQ(group.spec.min_members, 4);
}

TEST_F(GroupsTest, A_TrainJobs_initializers_run_before_its_gang) {
  have("jobset.x-k8s.io/v1alpha2", "JobSet", "t", R"(
spec:
  replicatedJobs:
  - name: dataset
    template:
      metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
  - name: node
    template:
      metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
      spec: {parallelism: 4}
)");
  have(kPluginsApi, "PodGroup", "g", "spec: {minMember: 5}");
  const auto of_step = [&](const char* step) {
    return read(
        fmt::format("metadata: {{labels: {{scheduling.x-k8s.io/pod-group: g, "
                    "trainer.kubeflow.org/trainjob-ancestor-step: {}}}, {}}}",
                    step, owned("jobset.x-k8s.io/v1alpha2", "JobSet", "t")));
  };
  EXPECT_EQ(of_step("dataset-initializer").dialect, Dialect::kAlone);
  EXPECT_EQ(of_step("trainer").dialect, Dialect::kPlugins);
  EXPECT_EQ(of_step("trainer").spec.min_members, 4);
  world[0] =
      testing::with(world[0], owned_object("trainer.kubeflow.org/v1alpha1", "TrainJob", "t"));
  have("trainer.kubeflow.org/v1alpha1", "TrainJob", "t");
  const auto asking = [&](const char* least) {
    return read(fmt::format("metadata: {{annotations: {{tessera.dev/min-members: '{}'}}, {}}}",
                            least, owned("jobset.x-k8s.io/v1alpha2", "JobSet", "t")));
  };
  EXPECT_EQ(asking("all").key, "TrainJob/default/t/uid-t");
  EXPECT_EQ(asking("all").spec.min_members, 4);
  EXPECT_THAT(asking("5").waits, HasSubstr("above the 4 pods that TrainJob t makes"));
}

TEST_F(GroupsTest, A_PodGroup_asks_for_no_more_than_its_own_job_makes) {
  const std::string owner = owned_object("kubeflow.org/v2beta1", "MPIJob", "m");
  have("kubeflow.org/v2beta1", "MPIJob", "m",
       "spec: {launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {}, "
       "Worker: {replicas: 2}}}");
  have(kVolcanoApi, "PodGroup", "g", owner + "spec: {minMember: 3}");
  have(kVolcanoApi, "PodGroup", "free", "spec: {minMember: 3}");
  const auto in = [&](const char* name) {
    return read(fmt::format("metadata: {{annotations: {{scheduling.k8s.io/group-name: {}}}, {}}}",
                            name, owned("kubeflow.org/v2beta1", "MPIJob", "m")));
  };
  EXPECT_THAT(in("g").waits, HasSubstr("spec.minMember 3 is above the 2 pods that MPIJob m makes"));
  EXPECT_EQ(in("free").waits, "") << "who else makes its pods is not known";
}

TEST_F(GroupsTest, The_queue_is_the_first_that_anyone_names) {
  ns = kube::Object(yaml("metadata: {annotations: {tessera.dev/queue: of-namespace}}"));
  EXPECT_EQ(read("{}").spec.queue, "of-namespace");
  // From the last to the first; each more label wins over those before.
  struct Case {
    const char* key;
    const char* value;
    const char* queue;
  };
  std::string labels = "applicationId: a, queue: yunikorn";
  EXPECT_EQ(read(fmt::format("metadata: {{labels: {{{}}}}}", labels)).spec.queue, "yunikorn");
  for (const Case& c :
       {Case{"kueue.x-k8s.io/queue-name", "lq", "default/lq"},
        Case{"kueue.x-k8s.io/queue-name", "other", "other"},
        Case{"volcano.sh/queue-name", "v", "v"},
        Case{"scheduling.volcano.sh/queue-name", "sv", "sv"}, Case{"kai.scheduler/queue", "k", "k"},
        Case{"tessera.dev/queue", "t", "t"}}) {
    const std::string more = fmt::format("{}, {}: {}", labels, c.key, c.value);
    const Group group = read(fmt::format("metadata: {{labels: {{{}}}}}", more));
    EXPECT_EQ(group.spec.queue, c.queue);
    EXPECT_THAT(group.notes, Contains(HasSubstr("the first counts"))) << c.key;
    if (c.value != std::string_view("lq")) labels = more;
  }
  have(kVolcanoApi, "PodGroup", "g", "spec: {minMember: 1, queue: pg}");
  EXPECT_EQ(read(fmt::format("metadata: {{labels: {{{}}}, annotations: "
                             "{{scheduling.k8s.io/group-name: g}}}}",
                             labels))
                .spec.queue,
            "pg");
  EXPECT_EQ(read("metadata: {labels: {queue: plain}}").spec.queue, "of-namespace")
      << "a label of that name alone is nobody's queue";
  ns = kube::Object(yaml("metadata: {annotations: {scheduling.volcano.sh/queue-name: ns}}"));
  EXPECT_EQ(read("{}").spec.queue, "ns");
  EXPECT_THAT(read("metadata: {labels: {kai.scheduler/queue: k}}").notes, IsEmpty());
}

TEST_F(GroupsTest, An_owners_queue_counts_for_its_pods) {
  have("kubeflow.org/v1", "PyTorchJob", "o", R"(
metadata: {labels: {kueue.x-k8s.io/queue-name: x}}
spec: {runPolicy: {schedulingPolicy: {queue: x, priorityClass: high, minAvailable: 2}, activeDeadlineSeconds: 60},
       pytorchReplicaSpecs: {Worker: {replicas: 3}}}
)");
  const Group group = read(owned_object("kubeflow.org/v1", "PyTorchJob", "o"));
  EXPECT_EQ(group.dialect, Dialect::kOwner);
  EXPECT_EQ(group.spec.min_members, 2);
  EXPECT_EQ(group.spec.queue, "x");
  EXPECT_EQ(group.spec.priority, 1000);
  EXPECT_EQ(group.spec.runtime, base::seconds(60));
  EXPECT_THAT(group.notes, IsEmpty());
}

TEST_F(GroupsTest, Priority_and_preemption_follow_the_dialect) {
  EXPECT_EQ(read("metadata: {labels: {priorityClassName: train}}").spec.priority, 50);
  EXPECT_TRUE(read("metadata: {labels: {priorityClassName: train}}").spec.preemptible);
  EXPECT_EQ(read("metadata: {labels: {priorityClassName: inference}}").spec.priority, 125);
  EXPECT_FALSE(read("metadata: {labels: {priorityClassName: inference}}").spec.preemptible);
  EXPECT_FALSE(
      read("metadata: {labels: {kai.scheduler/preemptibility: non-preemptible}}").spec.preemptible);
  EXPECT_FALSE(read("metadata: {annotations: {volcano.sh/preemptable: 'false'}}").spec.preemptible);
  EXPECT_TRUE(read("metadata: {annotations: {volcano.sh/preemptable: 'false', "
                   "tessera.dev/preemptible: 'true'}}")
                  .spec.preemptible);
  EXPECT_FALSE(read("spec: {preemptionPolicy: Never}").spec.preempts);
  EXPECT_EQ(read("spec: {priority: 99999999999}").spec.priority, 2147483647);
  have(kVolcanoApi, "PodGroup", "g", "spec: {minMember: 1, priorityClassName: gone}");
  const Group group =
      read("{metadata: {annotations: {scheduling.k8s.io/group-name: g}}, spec: {priority: 5}}");
  EXPECT_EQ(group.spec.priority, 5);
  EXPECT_THAT(group.notes, ElementsAre(HasSubstr("priority class gone does not exist")));
}

TEST_F(GroupsTest, The_time_limit_is_the_first_that_makes_sense) {
  have("batch/v1", "Job", "j", "spec: {activeDeadlineSeconds: 120}");
  const std::string owner = owned("batch/v1", "Job", "j");
  struct Case {
    std::string pod;
    int64_t seconds;
  };
  for (const Case& c :
       {Case{fmt::format("{{metadata: {{{}}}, spec: {{activeDeadlineSeconds: 30}}}}", owner), 30},
        Case{fmt::format("{{metadata: {{{}}}, spec: {{activeDeadlineSeconds: -1}}}}", owner), 120},
        Case{"metadata: {labels: {kueue.x-k8s.io/max-exec-time-seconds: '45'}}", 45},
        Case{"metadata: {annotations: {slurmjob.slinky.slurm.net/timelimit: '1-02:03'}}", 93780}}) {
    const Group group = read(c.pod);
    ASSERT_TRUE(group.spec.runtime) << c.pod;
    EXPECT_EQ(*group.spec.runtime, base::seconds(c.seconds)) << c.pod;
  }
  const Group bad = read("metadata: {labels: {kueue.x-k8s.io/max-exec-time-seconds: soon}}");
  EXPECT_FALSE(bad.spec.runtime);
  EXPECT_THAT(bad.notes, ElementsAre(HasSubstr("\"soon\" is no time above 0")));
}

TEST(SlurmTime, Every_way_to_write_one_is_read) {
  struct Case {
    const char* text;
    int64_t seconds;  // 0: none
  };
  for (const Case& c :
       {Case{"30", 1800}, Case{"10:30", 630}, Case{"1:00:00", 3600}, Case{"2-1", 176400},
        Case{"2-1:30", 178200}, Case{"2-1:30:15", 178215}, Case{"0", 0}, Case{"", 0}, Case{"-", 0},
        Case{"1-", 0}, Case{"1:2:3:4", 0}, Case{"UNLIMITED", 0}, Case{"1:-2", 0},
        Case{"99999999999999999999", 0}, Case{"100000000-0", 100LL * 365 * 86400}}) {
    const auto time = slurm_time(c.text);
    EXPECT_EQ(time ? time->ns / 1'000'000'000 : 0, c.seconds) << c.text;
  }
}

TEST_F(GroupsTest, Objects_of_any_shape_are_read_without_harm) {
  const char* kOdd[] = {"null", "[]",     "{}",      "3",
                        "text", "{a: 1}", "[1, {}]", "-9223372036854775808"};
  for (const char* odd : kOdd) {
    world.clear();
    for (const char* api : {kVolcanoApi, kPluginsApi, kNativeApi, "scheduling.run.ai/v2alpha2"}) {
      have(api, "PodGroup", "g",
           fmt::format("spec: {{minMember: {0}, minTaskMember: {{x: {0}}}, subGroupPolicy: {0}, "
                       "subGroups: {0}, queue: {0}, priorityClassName: {0}, schedulingPolicy: {0}, "
                       "disruptionMode: {0}, scheduleTimeoutSeconds: {0}, priority: {0}}}",
                       odd));
    }
    have("ray.io/v1", "RayCluster", "r",
         fmt::format("spec: {{workerGroupSpecs: [{{replicas: {0}, numOfHosts: {0}}}], runPolicy: "
                     "{0}, activeDeadlineSeconds: {0}}}",
                     odd));
    for (const char* pod :
         {kVolcanoPod, kPluginsPod, kNativePod, "metadata: {annotations: {pod-group-name: g}}"}) {
      EXPECT_GE(read(pod).spec.min_members, 1) << odd;
    }
    EXPECT_GE(read(fmt::format("metadata: {{annotations: {{tessera.dev/min-members: all}}, {}}}",
                               owned("ray.io/v1", "RayCluster", "r")))
                  .spec.min_members,
              1);
    EXPECT_GE(
        read(fmt::format("{{metadata: {{annotations: {0}, labels: {0}, ownerReferences: {0}}}, "
                         "spec: {{schedulingGroup: {0}, workloadRef: {0}}}}}",
                         odd))
            .spec.min_members,
        1);
  }
}

TEST_F(GroupsTest, Owners_in_a_circle_come_to_an_end) {
  have("batch/v1", "Job", "a", owned_object("batch/v1", "Job", "b"));
  have("batch/v1", "Job", "b", owned_object("batch/v1", "Job", "a"));
  const Group group =
      read(fmt::format("metadata: {{annotations: {{tessera.dev/min-members: '1'}}, {}}}",
                       owned("batch/v1", "Job", "a")));
  EXPECT_EQ(group.dialect, Dialect::kOwner);
}

}  // namespace
}  // namespace tessera::scheduler
