// Cases C15, C17, C19 and C23 as their users would meet them: through the API, with controllers, kubelets and time that passes.

#include <gmock/gmock.h>

#include <map>

#include "gang_lab_testing.h"

namespace tessera::sim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --- C15: quota, then priority, then weight ---

constexpr const char* kTwelve =
    "racks: [{name: r, nodes: [{name: a, model: L4, gpus: 4, count: 3}]}]";
constexpr const char* kColours = R"(
apiVersion: tessera.dev/v1alpha1
kind: Queue
metadata: {name: red}
spec: {quota: {gpu: 3}, priority: 200, weight: 1}
---
apiVersion: tessera.dev/v1alpha1
kind: Queue
metadata: {name: blue}
spec: {quota: {gpu: 2}, priority: 100, weight: 3}
---
apiVersion: tessera.dev/v1alpha1
kind: Queue
metadata: {name: green}
spec: {quota: {gpu: 1}, priority: 100, weight: 1}
)";

std::string demand(std::string_view queue, int pods) {
  if (pods == 0) return "";
  return fmt::format(R"(---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: {0}}}
spec:
  replicas: {1}
  selector: {{matchLabels: {{of: {0}}}}}
  template:
    metadata: {{labels: {{of: {0}, tessera.dev/queue: {0}}}}}
    spec:
      containers: [{{name: c, image: "registry.example/c:1", resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]
)",
                     queue, pods);
}

std::vector<int> colours_running(GangLab& lab) {
  return {lab.running("red-"), lab.running("blue-"), lab.running("green-")};
}

std::vector<int> colours_after(int red, int blue, int green) {
  GangLab lab(kTwelve);
  lab.make(kColours);
  lab.make_at_once(demand("red", red) + demand("blue", blue) + demand("green", green));
  lab.advance(base::seconds(120));
  const auto out = colours_running(lab);
  lab.advance(base::seconds(300));
  EXPECT_EQ(colours_running(lab), out) << "it comes to rest";
  return out;
}

TEST(Cases, C15_running_pods_are_quota_then_priority_then_weight) {
  EXPECT_THAT(colours_after(5, 9, 9), ElementsAre(5, 5, 2));
  EXPECT_THAT(colours_after(5, 3, 9), ElementsAre(5, 3, 4));
  EXPECT_THAT(colours_after(20, 9, 9), ElementsAre(9, 2, 1));
  EXPECT_THAT(colours_after(5, 0, 0), ElementsAre(5, 0, 0));
  const auto v3 = colours_after(0, 9, 9);
  EXPECT_TRUE(v3 == (std::vector<int>{0, 9, 3}) || v3 == (std::vector<int>{0, 8, 4}))
      << v3[1] << "/" << v3[2];
}

TEST(Cases, C15_who_comes_late_gets_its_row_back_and_nobody_falls_below_its_quota) {
  GangLab lab(kTwelve);
  lab.make(kColours);
  lab.make_at_once(demand("blue", 9) + demand("green", 9));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.running("blue-") + lab.running("green-"), 12);
  lab.make(demand("red", 5));
  for (int i = 0; i < 600; ++i) {
    lab.advance(base::millis(100));
    ASSERT_GE(lab.running("blue-"), 2);
    ASSERT_GE(lab.running("green-"), 1);
  }
  EXPECT_THAT(colours_running(lab), ElementsAre(5, 5, 2));
  int reclaimed = 0;
  for (const kube::Object& event : lab.list("Event")) {
    const bool for_red =
        event["message"].str().find("takes back its share for default/red-") != std::string::npos;
    reclaimed += event["reason"].as_string() == "Reclaimed" && for_red ? 1 : 0;
  }
  EXPECT_EQ(reclaimed, 5);
}

// --- C17: all or nothing ---

constexpr const char* kFive = R"(
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: five}
spec: {minMember: 5}
---
apiVersion: batch/v1
kind: Job
metadata: {name: five}
spec:
  parallelism: 5
  completions: 5
  template:
    metadata:
      labels: {scheduling.x-k8s.io/pod-group: five}
    spec:
      restartPolicy: Never
      containers:
        - name: w
          image: registry.example/train:1
          resources: {limits: {nvidia.com/gpu: 1}}
)";
constexpr const char* kTwoNodes =
    "racks: [{name: r, nodes: [{name: a, model: L4, gpus: 2, count: 2}]}]";

TEST(Cases, C17_A_nothing_is_bound_while_the_node_that_is_needed_is_cordoned) {
  GangLab lab(R"(
racks: [{name: r, nodes: [{name: a, model: L4, gpus: 2, count: 2}, {name: m, model: L4, gpus: 1}]}]
)");
  lab.cordon("m-0", true);
  lab.make(kFive);
  for (int i = 0; i < 60; ++i) {
    lab.advance(base::seconds(1));
    ASSERT_EQ(lab.bound("five-"), 0);
  }
  const auto waiting = lab.pods("five-");
  ASSERT_EQ(waiting.size(), 5U);
  for (const kube::Object& pod : waiting) {
    EXPECT_EQ(pod.get("status", "phase").as_string(), "Pending");
    EXPECT_THAT(lab.why(std::string(pod.name())), HasSubstr("unschedulable"));
  }
  const kube::Object group = lab.group("scheduling.x-k8s.io", "five");
  EXPECT_EQ(group.get("status", "phase").as_string(), "Scheduling");
  const json::Value said = GangLab::condition(group, "Unschedulable");
  EXPECT_EQ(said["status"].as_string(), "True") << group.json().dump();
  EXPECT_THAT(said["message"].str(), HasSubstr("unschedulable"));
  lab.cordon("m-0", false);
  lab.advance(base::seconds(30));
  EXPECT_EQ(lab.running("five-"), 5);
  EXPECT_EQ(GangLab::condition(lab.group("scheduling.x-k8s.io", "five"), "Unschedulable")["status"]
                .as_string(),
            "False");
}

// Two gangs of three with room for one, `later` apart.
void race(int round) {
  GangLab lab(kTwoNodes);
  const bool volcano = round % 2 == 1;
  const char* api_group =
      volcano ? "scheduling.volcano.sh/v1beta1" : "scheduling.x-k8s.io/v1alpha1";
  std::map<std::string, std::string> pods;
  for (const char* name : {"x", "yy"}) {
    lab.make(fmt::format(
        "{{apiVersion: {}, kind: PodGroup, metadata: {{name: {}}}, spec: {{minMember: 3}}}}",
        api_group, name));
    const std::string meta =
        volcano ? fmt::format("annotations: {{scheduling.k8s.io/group-name: {}}},", name)
                : fmt::format("labels: {{scheduling.x-k8s.io/pod-group: {}}},", name);
    pods[name] = pods_yaml(name, 3, meta);
  }
  // At the same moment, in every order and with the scheduler awake in between.
  const auto x = GangLab::documents(pods["x"]);
  const auto y = GangLab::documents(pods["yy"]);
  for (size_t i = 0; i < 3; ++i) {
    const bool swapped = ((round >> i) & 1) != 0;
    lab.make_at_once((swapped ? y : x)[i].dump());
    if (round % 5 > 2) lab.loop().run_ready();
    lab.make_at_once((swapped ? x : y)[i].dump());
    if (round % 7 > 3) lab.loop().step();
  }
  for (int i = 0; i < 60; ++i) {
    lab.advance(base::seconds(i < 10 ? 1 : 10));
    const int bound_x = lab.bound("x-");
    const int bound_y = lab.bound("yy-");
    ASSERT_TRUE(bound_x == 0 || bound_y == 0) << bound_x << "+" << bound_y << " round " << round;
  }
  EXPECT_EQ(lab.running("x-") + lab.running("yy-"), 3) << "round " << round;
  EXPECT_TRUE(lab.running("x-") == 3 || lab.running("yy-") == 3) << "round " << round;
}

TEST(Cases, C17_B_of_two_gangs_with_room_for_one_exactly_one_runs_fifty_times) {
  for (int round = 0; round < 50; ++round) race(round);
}

TEST(Cases, C17_C_with_a_cordon_in_the_middle_all_are_bound_or_none) {
  int none = 0;
  int all = 0;
  for (int steps = 0; steps < 60; ++steps) {
    GangLab lab(kTwoNodes);
    lab.make(
        "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: z}, "
        "spec: {minMember: 4}}");
    lab.make_at_once(pods_yaml("z", 4, "labels: {scheduling.x-k8s.io/pod-group: z},"));
    // So many turns of the loop after the pods were asked for the node is cordoned.
    for (int i = 0; i < steps; ++i) lab.loop().step();
    kube::Request cordon = lab.request_to(kube::Verb::kPatch, lab.named("v1", "Node", "a-1", ""));
    cordon.ns.clear();
    cordon.patch_type = kube::PatchType::kMerge;
    cordon.body = GangLab::documents("{spec: {unschedulable: true}}").at(0);
    lab.client().call(std::move(cordon), [](const kube::Reply& reply) { EXPECT_TRUE(reply); });
    lab.advance(base::seconds(60));
    const int bound = lab.bound("z-");
    ASSERT_TRUE(bound == 0 || bound == 4) << bound << " bound, cordon after " << steps << " steps";
    (bound == 0 ? none : all) += 1;
    lab.cordon("a-1", false);
    lab.advance(base::seconds(30));
    EXPECT_EQ(lab.running("z-"), 4);
  }
  EXPECT_GT(none, 0);
  EXPECT_GT(all, 0);
}

// --- C19: the queue's limit counts for the whole gang ---

constexpr const char* kSixteen =
    "racks: [{name: r, nodes: [{name: a, model: L4, gpus: 8, count: 2}]}]";

class C19 {
 public:
  explicit C19(bool strict) : lab(kSixteen) {
    lab.make(fmt::format(R"(
apiVersion: tessera.dev/v1alpha1
kind: Queue
metadata: {{name: team}}
spec: {{limit: {{gpu: 4}}, strictFifo: {}}}
)",
                         strict));
  }
  void gang(const std::string& name, int pods, int min, std::string_view run_for = "") {
    lab.make(
        fmt::format("{{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: "
                    "{{name: {}, labels: {{tessera.dev/queue: team}}}}, spec: {{minMember: {}}}}}",
                    name, min));
    lab.make(pods_yaml(name, pods,
                       meta(fmt::format("scheduling.x-k8s.io/pod-group: {}", name), run_for)));
    pass(base::seconds(20));
  }
  void pod(const std::string& name, std::string_view run_for = "") {
    lab.make(pods_yaml(name, 1, meta("tessera.dev/queue: team", run_for)));
    pass(base::seconds(20));
  }
  void pass(base::Duration time) {
    for (base::Duration at{}; at < time; at = at + base::seconds(1)) {
      lab.advance(base::seconds(1));
      ASSERT_LE(use(), 4);
    }
  }
  int use() { return lab.bound(""); }

  GangLab lab;

 private:
  static std::string meta(std::string_view labels, std::string_view run_for) {
    return run_for.empty()
               ? fmt::format("labels: {{{}}},", labels)
               : fmt::format("labels: {{{}}}, annotations: {{tessera.dev/run-for: {}}},", labels,
                             run_for);
  }
};

TEST(Cases, C19_a_gang_enters_its_queue_as_a_whole) {
  C19 it(false);
  it.gang("g1", 3, 3, "300s");
  it.gang("g2", 3, 3);
  EXPECT_EQ(it.lab.running("g1-"), 3);
  EXPECT_EQ(it.lab.bound("g2-"), 0);
  EXPECT_EQ(it.use(), 3);
  EXPECT_THAT(it.lab.why_of("g2-"), HasSubstr("queue \"team\" has 1 left of its limit of 4"));
  it.pod("s1", "60s");
  EXPECT_EQ(it.lab.running("s1-"), 1);
  EXPECT_EQ(it.use(), 4);
  EXPECT_EQ(it.lab.bound("g2-"), 0);
  it.pass(base::seconds(60));
  ASSERT_EQ(it.lab.phase("s1-0"), "Succeeded");
  it.gang("g3", 6, 2);
  EXPECT_EQ(it.use(), 3);
  EXPECT_EQ(it.lab.bound("g2-") + it.lab.bound("g3-"), 0);
  it.pass(base::seconds(240));
  EXPECT_EQ(it.lab.phase("g1-0"), "Succeeded");
  EXPECT_EQ(it.lab.running("g2-"), 3);
  EXPECT_EQ(it.lab.bound("g3-"), 0);
  EXPECT_THAT(it.lab.why_of("g3-"), HasSubstr("queue \"team\" has 1 left of its limit of 4"));
}

TEST(Cases, C19_a_strict_queue_lets_nobody_pass) {
  C19 it(true);
  it.gang("g1", 3, 3);
  it.gang("g2", 3, 3);
  it.pod("s1");
  EXPECT_EQ(it.lab.running("g1-"), 3);
  EXPECT_EQ(it.lab.bound("g2-"), 0);
  EXPECT_EQ(it.lab.bound("s1-"), 0);
  EXPECT_THAT(it.lab.why_of("s1-"), HasSubstr("first in, first out"));
}

TEST(Cases, C19_a_gang_above_the_limit_waits_for_ever_with_that_reason_and_blocks_nobody) {
  C19 it(false);
  it.gang("five", 5, 5);
  it.pod("s1");
  it.pass(base::seconds(600));
  EXPECT_EQ(it.lab.bound("five-"), 0);
  EXPECT_THAT(it.lab.why_of("five-"),
              HasSubstr("queue \"team\" has a limit of 4: it can never start there"));
  EXPECT_EQ(it.lab.running("s1-"), 1);
}

// --- C23: as few victims as needed, never half a gang ---

constexpr const char* kBulk = R"(
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
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: bulk}
spec: {minMember: 4}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: bulk}
spec:
  replicas: 8
  selector: {matchLabels: {app: bulk}}
  template:
    metadata: {labels: {app: bulk, scheduling.x-k8s.io/pod-group: bulk}, annotations: {tessera.dev/stop-after: 5s}}
    spec:
      priorityClassName: low
      containers: [{name: c, image: "registry.example/c:1", resources: {limits: {nvidia.com/gpu: 1}}}]
)";

// Who runs, by UID.
std::map<std::string, std::string> uids_running(GangLab& lab, std::string_view prefix) {
  std::map<std::string, std::string> out;
  for (const kube::Object& pod : lab.pods(prefix)) {
    if (GangLab::is_running(pod)) out[std::string(pod.uid())] = pod.name();
  }
  return out;
}

// Who goes at this moment; each must have its grace and an event that names `preemptor`.
std::set<std::string> uids_leaving(GangLab& lab, std::string_view prefix,
                                   const std::string& preemptor) {
  std::set<std::string> out;
  for (const kube::Object& pod : lab.pods(prefix)) {
    if (!pod.deleting()) continue;
    out.insert(std::string(pod.uid()));
    EXPECT_EQ(pod.metadata()["deletionGracePeriodSeconds"].as_int(), 30);
    EXPECT_THAT(lab.events("Pod", pod.name()), Contains(HasSubstr("default/" + preemptor)));
  }
  return out;
}

TEST(Cases, C23_as_few_victims_as_needed_and_never_half_a_gang) {
  GangLab lab("racks: [{name: r, nodes: [{name: a, model: L4, gpus: 8}]}]");
  lab.make(kBulk);
  lab.advance(base::seconds(20));
  const auto first = uids_running(lab, "bulk-");
  ASSERT_EQ(first.size(), 8U);

  lab.make(pods_yaml("u1", 1, "", "priorityClassName: urgent,", 2));
  lab.advance(base::seconds(2));
  const auto gone_first = uids_leaving(lab, "bulk-", "u1");
  EXPECT_EQ(gone_first.size(), 2U);
  lab.advance(base::seconds(30));
  const auto second = uids_running(lab, "bulk-");
  EXPECT_EQ(second.size(), 6U);
  for (const auto& [uid, name] : second) EXPECT_TRUE(first.contains(uid)) << name;
  EXPECT_EQ(lab.phase("u1-0"), "Running");
  const std::string u1 = std::string(lab.pod("u1-0").uid());

  lab.make(pods_yaml("u2", 1, "", "priorityClassName: urgent,", 4));
  lab.advance(base::seconds(2));
  const auto gone_second = uids_leaving(lab, "bulk-", "u2");
  EXPECT_EQ(gone_second.size(), 6U);
  for (const std::string& uid : gone_second) EXPECT_FALSE(gone_first.contains(uid)) << "twice";
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.phase("u2-0"), "Running");
  EXPECT_EQ(lab.pod("u1-0").uid(), u1) << "it is of the same class";
  EXPECT_EQ(lab.phase("u1-0"), "Running");
  EXPECT_EQ(lab.bound("bulk-"), 0) << "two free GPUs are no use to it";
  EXPECT_EQ(lab.pods("bulk-").size(), 8U);

  ASSERT_TRUE(lab.remove("Pod", "u1-0"));
  ASSERT_TRUE(lab.remove("Pod", "u2-0"));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.running("bulk-"), 8);
}

}  // namespace
}  // namespace tessera::sim
