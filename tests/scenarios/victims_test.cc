// Who has to make room, end to end: what victims and preemptors see, who is never taken, and who comes back.

#include <gmock/gmock.h>

#include "gang_lab_testing.h"

namespace tessera::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kClasses = R"(
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 10
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 100
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: polite}
value: 100
preemptionPolicy: Never
)";

class VictimsTest : public ::testing::Test {
 protected:
  VictimsTest() { lab.make(kClasses); }

  std::string workload(std::string_view api, std::string_view kind, std::string_view name,
                       std::string_view spec, std::string_view pod_spec,
                       std::string_view meta = "") {
    return fmt::format(R"(
apiVersion: {0}
kind: {1}
metadata: {{name: {2}}}
spec:
  {3}
  template:
    metadata: {{labels: {{app: {2}}}, {5}}}
    spec:
      priorityClassName: low
      {4}
      containers: [{{name: c, image: "registry.example/c:1", resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]
)",
                       api, kind, name, spec, pod_spec, meta);
  }
  static std::string selecting(std::string_view name, std::string_view more) {
    return fmt::format("selector: {{matchLabels: {{app: {}}}}}\n  {}", name, more);
  }
  void run_four(std::string_view meta = "") {
    lab.make(workload("apps/v1", "ReplicaSet", "low", selecting("low", "replicas: 4"), "", meta));
    lab.advance(base::seconds(20));
    ASSERT_EQ(lab.running("low-"), 4);
  }
  void urgent(int gpus, std::string_view class_name = "urgent") {
    lab.make(pods_yaml("urgent", 1, "", fmt::format("priorityClassName: {},", class_name), gpus));
  }
  std::vector<kube::Object> leaving(std::string_view prefix) {
    std::vector<kube::Object> out;
    for (kube::Object& pod : lab.pods(prefix)) {
      if (pod.deleting()) out.push_back(std::move(pod));
    }
    return out;
  }
  std::string nominated() { return lab.pod("urgent-0").get("status", "nominatedNodeName").str(); }

  GangLab lab{"racks: [{name: r, nodes: [{name: a, model: L4, gpus: 4}]}]"};
};

TEST_F(VictimsTest, Each_controller_makes_its_pods_anew_and_they_run_when_there_is_room) {
  lab.make(workload("batch/v1", "Job", "low-job", "backoffLimit: 0", "restartPolicy: Never"));
  lab.make(workload("apps/v1", "ReplicaSet", "low-rs", selecting("low-rs", "replicas: 1"), ""));
  lab.make(workload("apps/v1", "StatefulSet", "low-sts",
                    selecting("low-sts", "serviceName: s\n  replicas: 1"), ""));
  lab.make(workload("apps/v1", "Deployment", "low-dep", selecting("low-dep", "replicas: 1"), ""));
  lab.advance(base::seconds(30));
  ASSERT_EQ(lab.running("low-"), 4);
  urgent(4);
  lab.advance(base::seconds(60));
  ASSERT_EQ(lab.phase("urgent-0"), "Running");
  EXPECT_EQ(lab.bound("low-"), 0);
  for (const char* name : {"low-job", "low-rs", "low-sts", "low-dep"})
    EXPECT_GE(lab.pods(name).size(), 1U) << name;
  ASSERT_TRUE(lab.remove("Pod", "urgent-0"));
  lab.advance(base::seconds(60));
  for (const char* name : {"low-job", "low-rs", "low-sts", "low-dep"})
    EXPECT_EQ(lab.running(name), 1) << name;
}

TEST_F(VictimsTest, The_preemptor_is_nominated_while_its_victims_end_with_their_grace) {
  run_four("annotations: {tessera.dev/stop-after: 20s}");
  urgent(2);
  lab.advance(base::seconds(1));
  const auto victims = leaving("low-");
  ASSERT_EQ(victims.size(), 2U);
  EXPECT_EQ(nominated(), "a-0");
  EXPECT_THAT(lab.why("urgent-0"),
              HasSubstr("its place is decided and 2 pods that hold it are leaving"));
  for (const kube::Object& victim : victims) {
    EXPECT_EQ(victim.metadata()["deletionGracePeriodSeconds"].as_int(), 30);
    EXPECT_THAT(lab.events("Pod", victim.name()),
                Contains(HasSubstr("Preempted default/urgent-0 of priority 100 takes the place")));
    const json::Value target = GangLab::condition(victim, "DisruptionTarget");
    EXPECT_EQ(target["status"].as_string(), "True") << victim.json().dump();
  }
  lab.advance(base::seconds(15));
  EXPECT_EQ(leaving("low-").size(), 2U) << "they have not ended yet";
  EXPECT_EQ(lab.node_of("urgent-0"), "");
  lab.advance(base::seconds(10));
  EXPECT_EQ(lab.phase("urgent-0"), "Running");
  EXPECT_EQ(nominated(), "") << "it is there";
}

TEST_F(VictimsTest, The_nomination_is_taken_back_when_the_place_falls_away_meanwhile) {
  run_four("annotations: {tessera.dev/stop-after: 20s}");
  urgent(2);
  lab.advance(base::seconds(1));
  ASSERT_EQ(nominated(), "a-0");
  lab.cordon("a-0", true);
  lab.advance(base::seconds(40));
  EXPECT_EQ(lab.node_of("urgent-0"), "") << "no new pods there";
  EXPECT_EQ(nominated(), "") << lab.why("urgent-0");
  lab.cordon("a-0", false);
  lab.advance(base::seconds(20));
  EXPECT_EQ(lab.phase("urgent-0"), "Running");
}

TEST_F(VictimsTest, The_nomination_is_taken_back_when_the_victims_take_too_long) {
  lab.make(workload("apps/v1", "ReplicaSet", "low", selecting("low", "replicas: 4"),
                    "terminationGracePeriodSeconds: 900",
                    "annotations: {tessera.dev/stop-after: 900s}"));
  lab.advance(base::seconds(20));
  urgent(4);
  lab.advance(base::seconds(1));
  ASSERT_EQ(nominated(), "a-0");
  lab.advance(base::seconds(320));
  EXPECT_EQ(leaving("low-").size(), 4U);
  EXPECT_EQ(nominated(), "") << lab.why("urgent-0");
  lab.advance(base::seconds(640));
  EXPECT_EQ(lab.phase("urgent-0"), "Running");
}

TEST_F(VictimsTest, A_disruption_budget_protects_whom_it_covers) {
  lab.make(R"(
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 3, selector: {matchLabels: {app: low}}}
)");
  run_four();
  lab.advance(base::seconds(20));
  urgent(2);
  lab.advance(base::seconds(120));
  EXPECT_EQ(lab.node_of("urgent-0"), "") << "two would have to go, and one may";
  EXPECT_EQ(lab.running("low-"), 4) << "nobody goes for nothing";
  lab.make(pods_yaml("small", 1, "", "priorityClassName: urgent,"));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.phase("small-0"), "Running");
  EXPECT_EQ(lab.running("low-"), 3);
}

TEST_F(VictimsTest, Who_never_preempts_waits) {
  run_four();
  urgent(2, "polite");
  lab.advance(base::seconds(120));
  EXPECT_EQ(lab.node_of("urgent-0"), "");
  EXPECT_EQ(nominated(), "");
  EXPECT_TRUE(leaving("low-").empty());
  EXPECT_EQ(lab.running("low-"), 4);
}

TEST_F(VictimsTest, Pods_of_daemons_and_those_that_the_cluster_needs_are_never_taken) {
  lab.make(workload("apps/v1", "DaemonSet", "low-daemon", selecting("low-daemon", ""), ""));
  lab.make(pods_yaml("system", 1, "", "priorityClassName: system-cluster-critical,"));
  lab.make(pods_yaml("low", 2, "", "priorityClassName: low,"));
  lab.advance(base::seconds(20));
  ASSERT_EQ(lab.running("low-"), 3);
  ASSERT_EQ(lab.running("system-"), 1);
  lab.make(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: top}, value: "
      "1000000000}");
  urgent(3, "top");
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.node_of("urgent-0"), "") << "two can be had at most";
  EXPECT_EQ(lab.running("low-") + lab.running("system-"), 4);
  lab.make(pods_yaml("small", 1, "", "priorityClassName: top,", 2));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.phase("small-0"), "Running");
  EXPECT_EQ(lab.running("low-daemon"), 1);
  EXPECT_EQ(lab.running("system-"), 1);
}

TEST_F(VictimsTest, A_preemptor_that_goes_away_leaves_its_place_to_those_who_had_it) {
  run_four("annotations: {tessera.dev/stop-after: 20s}");
  urgent(2);
  lab.advance(base::seconds(1));
  ASSERT_EQ(leaving("low-").size(), 2U);
  ASSERT_TRUE(lab.remove("Pod", "urgent-0"));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.running("low-"), 4);
}

TEST_F(VictimsTest, Two_preemptors_at_once_take_what_both_need) {
  run_four();
  lab.make_at_once(pods_yaml("urgent", 2, "", "priorityClassName: urgent,"));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.running("urgent-"), 2);
  EXPECT_EQ(lab.running("low-"), 2);
  int preempted = 0;
  for (const kube::Object& event : lab.list("Event"))
    preempted += event["reason"].as_string() == "Preempted" ? 1 : 0;
  EXPECT_EQ(preempted, 2);
}

TEST_F(VictimsTest, A_gang_takes_what_all_of_it_needs) {
  run_four();
  lab.make(R"(
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: urgent}
spec: {priorityClassName: urgent, schedulingPolicy: {gang: {minCount: 3}}}
)");
  lab.make(pods_yaml("urgent", 3, "",
                     "priorityClassName: urgent, schedulingGroup: {podGroupName: urgent},"));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.running("urgent-"), 3);
  EXPECT_EQ(lab.running("low-"), 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(lab.remove("Pod", fmt::format("urgent-{}", i)));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.running("low-"), 4);
}

TEST_F(VictimsTest, Nobody_goes_for_a_gang_that_cannot_start_anyway) {
  run_four();
  for (const auto& [name, min] : {std::pair{"urgent-few", 3}, std::pair{"urgent-many", 5}}) {
    lab.make(
        fmt::format("{{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: "
                    "{{name: {}}}, spec: {{minMember: {}}}}}",
                    name, min));
    const int pods = min == 3 ? 2 : 5;
    lab.make(pods_yaml(name, pods,
                       fmt::format("labels: {{scheduling.x-k8s.io/pod-group: {}}},", name),
                       "priorityClassName: urgent,"));
  }
  lab.advance(base::seconds(300));
  EXPECT_EQ(lab.running("low-"), 4);
  EXPECT_EQ(lab.bound("urgent-"), 0);
}

TEST_F(VictimsTest, A_group_of_Kubernetes_that_is_disrupted_whole_goes_whole) {
  lab.make(R"(
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: low}
spec: {priorityClassName: low, disruptionMode: {all: {}}, schedulingPolicy: {gang: {minCount: 2}}}
)");
  lab.make(pods_yaml("low", 4, "annotations: {tessera.dev/stop-after: 10s},",
                     "priorityClassName: low, schedulingGroup: {podGroupName: low},"));
  lab.advance(base::seconds(20));
  ASSERT_EQ(lab.running("low-"), 4);
  urgent(1);
  lab.advance(base::seconds(2));
  EXPECT_EQ(GangLab::condition(lab.group("scheduling.k8s.io", "low"), "DisruptionTarget")["status"]
                .as_string(),
            "True");
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.phase("urgent-0"), "Running");
  EXPECT_EQ(lab.bound("low-"), 0) << "not one of them is left alone";
}

TEST_F(VictimsTest, Three_classes_come_to_rest) {
  run_four();
  lab.make(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: middle}, value: "
      "50}");
  lab.make(workload("apps/v1", "ReplicaSet", "middle", selecting("middle", "replicas: 3"), ""));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.running("low-"), 4) << "it is of the same class";
  lab.make(R"(
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: better}
spec:
  replicas: 3
  selector: {matchLabels: {app: better}}
  template:
    metadata: {labels: {app: better}}
    spec:
      priorityClassName: middle
      containers: [{name: c, image: "registry.example/c:1", resources: {limits: {nvidia.com/gpu: 1}}}]
)");
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.running("better-"), 3);
  urgent(2);
  lab.advance(base::seconds(120));
  EXPECT_EQ(lab.phase("urgent-0"), "Running");
  EXPECT_EQ(lab.running("better-"), 2);
  EXPECT_EQ(lab.running("low-") + lab.running("middle-"), 0);
  const size_t events = lab.list("Event").size();
  lab.advance(base::seconds(600));
  int preempted = 0;
  for (const kube::Object& event : lab.list("Event"))
    preempted += event["reason"].as_string() == "Preempted" ? 1 : 0;
  EXPECT_EQ(preempted, 3 + 1 + 1) << events;
}

TEST_F(VictimsTest, Equals_do_not_take_from_each_other) {
  run_four();
  lab.make(pods_yaml("same", 2, "", "priorityClassName: low,"));
  lab.advance(base::seconds(300));
  EXPECT_EQ(lab.running("low-"), 4);
  EXPECT_EQ(lab.bound("same-"), 0);
}

TEST_F(VictimsTest, A_pod_that_says_it_may_not_be_preempted_stays) {
  run_four("annotations: {tessera.dev/preemptible: 'false'}");
  urgent(1);
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.node_of("urgent-0"), "");
  EXPECT_EQ(lab.running("low-"), 4);
}

}  // namespace
}  // namespace tessera::sim
