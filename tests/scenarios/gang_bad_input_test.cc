// What makes no sense, sent through the API: a reason and its mend where its owner looks, nothing half placed, and no harm to
// anybody else.

#include <gmock/gmock.h>

#include "gang_lab_testing.h"

namespace tessera::sim {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kFleet = R"(
racks: [{name: r, nodes: [{name: a, model: L4, gpus: 4, count: 2}]}]
)";

class GangBadInput : public ::testing::Test {
 protected:
  GangBadInput() {
    lab.make("{apiVersion: v1, kind: Namespace, metadata: {name: neighbours}}");
    neighbour("old");
    lab.advance(base::seconds(10));
    old_uid = std::string(lab.read(lab.named("v1", "Pod", "neighbour-old-0", "neighbours")).uid());
  }
  // Somebody else's pod runs on, and a new one starts.
  ~GangBadInput() override {
    neighbour("new");
    lab.advance(base::seconds(15));
    const kube::Object old = lab.read(lab.named("v1", "Pod", "neighbour-old-0", "neighbours"));
    EXPECT_EQ(old.uid(), old_uid);
    EXPECT_TRUE(GangLab::is_running(old));
    EXPECT_TRUE(
        GangLab::is_running(lab.read(lab.named("v1", "Pod", "neighbour-new-0", "neighbours"))));
  }
  void neighbour(const std::string& name) {
    lab.make(pods_yaml("neighbour-" + name, 1, "namespace: neighbours,"));
  }
  // Nothing of "g-*" is bound, and the first of them says so.
  void waits_with(const std::string& why) {
    for (int i = 0; i < 20; ++i) {
      lab.advance(base::seconds(1));
      ASSERT_EQ(lab.bound("g-"), 0);
    }
    EXPECT_THAT(lab.why_of("g-"), HasSubstr(why));
  }
  void volcano_group(std::string_view spec, std::string_view name = "g") {
    lab.make(
        fmt::format("{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: "
                    "{{name: {}}}, spec: {}}}",
                    name, spec));
  }
  void plugins_group(std::string_view spec, std::string_view name = "g") {
    lab.make(
        fmt::format("{{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: "
                    "{{name: {}}}, spec: {}}}",
                    name, spec));
  }
  // The definition takes anything, as those of older versions may.
  void take_anything(std::string_view definition, std::string_view version) {
    const auto done = lab.change(
        lab.named("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition, ""),
        fmt::format("{{spec: {{versions: [{{name: {}, served: true, storage: true, subresources: "
                    "{{status: {{}}}}, schema: {{openAPIV3Schema: {{type: object, "
                    "x-kubernetes-preserve-unknown-fields: true}}}}}}]}}}}",
                    version));
    ASSERT_TRUE(done) << done.error().message;
    lab.advance(base::seconds(2));
  }
  void queue(std::string_view name, std::string_view spec) {
    lab.make(fmt::format(
        "{{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {{name: {}}}, spec: {}}}", name,
        spec));
    lab.advance(base::seconds(6));
  }
  json::Value ready(std::string_view queue) {
    return GangLab::condition(lab.read(lab.named("tessera.dev/v1alpha1", "Queue", queue)), "Ready");
  }
  static constexpr const char* kInVolcano = "annotations: {scheduling.k8s.io/group-name: g},";
  static constexpr const char* kInPlugins = "labels: {scheduling.x-k8s.io/pod-group: g},";

  GangLab lab{kFleet};
  std::string old_uid;
};

TEST_F(GangBadInput, A_minimum_above_the_pods_that_exist) {
  plugins_group("{minMember: 5}");
  lab.make(pods_yaml("g", 3, kInPlugins));
  waits_with("5 members must start together and 3 exist");
  EXPECT_EQ(lab.group("scheduling.x-k8s.io", "g").get("status", "phase").as_string(), "Pending");
}

TEST_F(GangBadInput, A_minimum_above_the_pods_that_can_exist) {
  lab.make(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: g, annotations: {tessera.dev/min-members: "9"}}
spec:
  parallelism: 3
  completions: 3
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "registry.example/c:1", resources: {limits: {nvidia.com/gpu: 1}}}]
)");
  waits_with("9 is above the 3 pods that Job g makes at one time: lower it, or let it make more");
}

TEST_F(GangBadInput, A_minimum_above_what_the_cluster_has) {
  plugins_group("{minMember: 20}");
  lab.make(pods_yaml("g", 20, kInPlugins));
  waits_with("of its 20 members that must start together have no place");
}

TEST_F(GangBadInput, Minimums_that_are_no_numbers_are_refused) {
  for (const char* spec : {"{minMember: 2147483648}", "{minMember: -1}", "{minMember: many}",
                           "{minMember: 1.5}", "{minMember: {}}"}) {
    for (const char* version : {"scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"}) {
      const auto made =
          lab.try_make(GangLab::documents(fmt::format("{{apiVersion: {}, kind: PodGroup, metadata: "
                                                      "{{generateName: g}}, spec: {}}}",
                                                      version, spec))
                           .at(0));
      if (made) {
        EXPECT_EQ(std::string_view(spec), "{minMember: -1}") << "Volcano's own takes it";
        continue;
      }
      EXPECT_THAT(made.error().message, HasSubstr("spec.minMember")) << spec;
    }
  }
}

TEST_F(GangBadInput, A_minimum_below_nothing) {
  volcano_group("{minMember: -1}");
  lab.make(pods_yaml("g", 2, kInVolcano));
  waits_with("spec.minMember: \"-1\" is no whole number from 0 to 2147483647: give one");
}

TEST_F(GangBadInput, Minimums_that_the_definition_lets_through_make_the_group_wait) {
  take_anything("podgroups.scheduling.x-k8s.io", "v1alpha1");
  int made = 0;
  for (const char* minimum :
       {"2147483648", "-1", "many", "1.5", "{}", "[3]", "99999999999999999999", "true"}) {
    SCOPED_TRACE(minimum);
    const std::string name = fmt::format("g-{}", ++made);
    plugins_group(fmt::format("{{minMember: {}}}", minimum), name);
    lab.make(
        pods_yaml(name, 2, fmt::format("labels: {{scheduling.x-k8s.io/pod-group: {}}},", name)));
    lab.advance(base::seconds(20));
    EXPECT_EQ(lab.bound(name), 0);
    EXPECT_THAT(lab.why_of(name), HasSubstr("is no whole number from 0 to 2147483647: give one"));
    EXPECT_THAT(
        GangLab::condition(lab.group("scheduling.x-k8s.io", name), "Unschedulable")["message"]
            .str(),
        HasSubstr("spec.minMember"));
  }
}

TEST_F(GangBadInput, Role_minimums_without_end_do_not_overflow) {
  volcano_group("{minMember: 1, minTaskMember: {a: 2147483647, b: 2147483647}}");
  lab.make(pods_yaml("g", 2,
                     "annotations: {scheduling.k8s.io/group-name: g, volcano.sh/task-spec: a},"));
  waits_with("2147483647 members must start together and 2 exist");
}

TEST_F(GangBadInput, A_role_that_no_pod_has) {
  volcano_group("{minMember: 2, minTaskMember: {worker: 2}}");
  lab.make(pods_yaml("g", 3, kInVolcano));
  waits_with("must start together");
}

TEST_F(GangBadInput, A_group_that_does_not_exist) {
  lab.make(pods_yaml("g", 2, kInVolcano));
  waits_with(
      "PodGroup g of scheduling.volcano.sh does not exist: create it, or take its name off the "
      "pod");
  volcano_group("{minMember: 2}");
  lab.advance(base::seconds(15));
  EXPECT_EQ(lab.running("g-"), 2);
}

TEST_F(GangBadInput, A_group_of_another_namespace_is_not_joined) {
  plugins_group("{minMember: 3}");
  lab.make("{apiVersion: v1, kind: Namespace, metadata: {name: thieves}}");
  lab.make(pods_yaml("g", 2, kInPlugins));
  lab.make(pods_yaml("thief", 1, std::string("namespace: thieves, ") + kInPlugins));
  waits_with("3 members must start together and 2 exist");
  const kube::Object thief = lab.read(lab.named("v1", "Pod", "thief-0", "thieves"));
  EXPECT_FALSE(GangLab::is_bound(thief));
  EXPECT_THAT(GangLab::condition(thief, "PodScheduled")["message"].str(),
              HasSubstr("PodGroup g of scheduling.x-k8s.io does not exist"));
}

TEST_F(GangBadInput, A_group_that_is_deleted_while_its_pods_run_takes_nothing_from_them) {
  plugins_group("{minMember: 2}");
  lab.make(pods_yaml("g", 2, kInPlugins));
  lab.advance(base::seconds(15));
  ASSERT_EQ(lab.running("g-"), 2);
  ASSERT_TRUE(lab.erase(lab.named("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g")));
  lab.make(pods_yaml("g-more", 1, kInPlugins));
  lab.advance(base::seconds(300));
  EXPECT_EQ(lab.running("g-"), 2);
  EXPECT_THAT(lab.why_of("g-more"), HasSubstr("does not exist"));
  plugins_group("{minMember: 2}");
  lab.advance(base::seconds(30));
  EXPECT_EQ(lab.running("g-"), 3);
}

TEST_F(GangBadInput, A_minimum_that_is_raised_above_what_runs_evicts_nobody) {
  plugins_group("{minMember: 2}");
  lab.make(pods_yaml("g", 3, kInPlugins));
  lab.advance(base::seconds(15));
  ASSERT_EQ(lab.running("g-"), 3);
  ASSERT_TRUE(lab.change(lab.named("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g"),
                         "{spec: {minMember: 100}}"));
  lab.advance(base::seconds(300));
  EXPECT_EQ(lab.running("g-"), 3);
}

TEST_F(GangBadInput, Two_dialects_that_disagree_on_a_pod) {
  volcano_group("{minMember: 2}");
  plugins_group("{minMember: 3}");
  lab.make(pods_yaml("g", 2,
                     "labels: {scheduling.x-k8s.io/pod-group: g}, annotations: "
                     "{scheduling.k8s.io/group-name: g},"));
  lab.advance(base::seconds(20));
  EXPECT_EQ(lab.running("g-"), 2) << "Volcano's words come first";
  EXPECT_THAT(
      lab.events("PodGroup", "g"),
      Contains(HasSubstr("GroupNote PodGroup of scheduling.volcano.sh g says a minimum of 2, "
                         "PodGroup of scheduling.x-k8s.io says 3: the first counts; make "
                         "them agree")));
}

TEST_F(GangBadInput, A_pod_in_two_groups) {
  volcano_group("{minMember: 2}");
  plugins_group("{minMember: 2}", "other");
  lab.make(pods_yaml("g", 2,
                     "labels: {scheduling.x-k8s.io/pod-group: other}, annotations: "
                     "{scheduling.k8s.io/group-name: g},"));
  lab.advance(base::seconds(120));
  EXPECT_EQ(lab.running("g-"), 2);
  const auto events = lab.events("PodGroup", "g");
  EXPECT_THAT(events, Contains(HasSubstr("the pod names PodGroup of scheduling.volcano.sh g and "
                                         "PodGroup of scheduling.x-k8s.io other: the first "
                                         "counts; keep one of them")));
  EXPECT_EQ(events.size(), 1U) << "once";
}

TEST_F(GangBadInput, Pods_of_a_group_that_disagree_on_their_queue) {
  queue("left", "{}");
  queue("right", "{}");
  plugins_group("{minMember: 2}");
  lab.make(pods_yaml("g-first", 1,
                     "labels: {scheduling.x-k8s.io/pod-group: g, tessera.dev/queue: left},"));
  lab.make(pods_yaml("g-second", 1,
                     "labels: {scheduling.x-k8s.io/pod-group: g, tessera.dev/queue: right},"));
  lab.advance(base::seconds(20));
  EXPECT_EQ(lab.running("g-"), 2);
  EXPECT_THAT(lab.events("PodGroup", "g"),
              Contains(HasSubstr("the queue of pod g-first-0 is left, that of pod g-second-0 is "
                                 "right: the first counts; make them agree")));
}

TEST_F(GangBadInput, A_group_that_says_nothing_of_its_pods_priority) {
  lab.make(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}");
  lab.make(
      "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g}, "
      "spec: {schedulingPolicy: {gang: {minCount: 2}}}}");
  lab.make(pods_yaml("g", 2, "", "priorityClassName: high, schedulingGroup: {podGroupName: g},"));
  lab.advance(base::seconds(15));
  EXPECT_EQ(lab.running("g-"), 2);
  EXPECT_THAT(lab.events("PodGroup", "g"),
              Contains(HasSubstr("the priority of the PodGroup is 0, that of its pods 7")));
}

TEST_F(GangBadInput, Junk_in_annotations_and_labels) {
  struct Case {
    const char* meta;
    const char* why;
  };
  int made = 0;
  for (const Case& c :
       {Case{"annotations: {kueue.x-k8s.io/pod-group-total-count: many}, labels: "
             "{kueue.x-k8s.io/pod-group-name: k1},",
             "\"many\" is no whole number"},
        Case{"labels: {kueue.x-k8s.io/pod-group-name: k2},", "pod-group-total-count is missing"},
        Case{"annotations: {kueue.x-k8s.io/pod-group-total-count: '-3'}, labels: "
             "{kueue.x-k8s.io/pod-group-name: k3},",
             "\"-3\" is no whole number"},
        Case{"annotations: {tessera.dev/queue: '*'},", "queue \"*\" does not exist"},
        Case{"annotations: {tessera.dev/queue: '  '},", "does not exist"},
        Case{"annotations: {tessera.dev/queue: \"a\\nb\\u0000c\"},", "does not exist"},
        Case{"annotations: {tessera.dev/gpu-milli: half},", "half"}}) {
    SCOPED_TRACE(c.meta);
    const std::string name = fmt::format("g-{}", ++made);
    const auto documents = GangLab::documents(pods_yaml(name, 1, c.meta));
    const auto reply = lab.try_make(documents.at(0));
    ASSERT_TRUE(reply) << reply.error().message;
    lab.advance(base::seconds(10));
    EXPECT_EQ(lab.bound(name), 0);
    EXPECT_THAT(lab.why_of(name), HasSubstr(c.why));
  }
}

TEST_F(GangBadInput, A_minimum_of_junk_on_an_owner) {
  int made = 0;
  for (const char* junk :
       {"many", "-1", "1e9", "master=1,worker", "=", ",", "worker=2147483648", "\\u0000"}) {
    SCOPED_TRACE(junk);
    const std::string name = fmt::format("g-{}", ++made);
    lab.make(fmt::format(R"(
apiVersion: batch/v1
kind: Job
metadata: {{name: {0}, annotations: {{tessera.dev/min-members: "{1}"}}}}
spec:
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: c, image: "registry.example/c:1", resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]
)",
                         name, junk));
    lab.advance(base::seconds(10));
    EXPECT_EQ(lab.bound(name), 0);
    EXPECT_THAT(lab.why_of(name), HasSubstr("tessera.dev/min-members"));
  }
}

TEST_F(GangBadInput, Empty_names_are_no_groups) {
  lab.make(
      pods_yaml("g", 1,
                "labels: {scheduling.x-k8s.io/pod-group: '', kueue.x-k8s.io/pod-group-name: '', "
                "tessera.dev/queue: ''}, annotations: {scheduling.k8s.io/group-name: '', "
                "pod-group-name: ''},"));
  lab.advance(base::seconds(15));
  EXPECT_EQ(lab.running("g-"), 1);
}

TEST_F(GangBadInput, A_group_that_does_not_say_how_many) {
  volcano_group("{}");
  lab.make(pods_yaml("g", 2, kInVolcano));
  lab.advance(base::seconds(15));
  EXPECT_EQ(lab.running("g-"), 2);
  EXPECT_THAT(lab.events("PodGroup", "g"),
              Contains(HasSubstr("spec.minMember is missing: 1 is taken; give it")));
}

TEST_F(GangBadInput, A_queue_that_does_not_exist) {
  plugins_group("{minMember: 2}");
  lab.make(
      pods_yaml("g", 2, "labels: {scheduling.x-k8s.io/pod-group: g, tessera.dev/queue: none},"));
  waits_with("queue \"none\" does not exist: create it, or name another");
  queue("none", "{}");
  lab.advance(base::seconds(15));
  EXPECT_EQ(lab.running("g-"), 2);
}

TEST_F(GangBadInput, A_loop_of_queues_is_closed_and_says_so) {
  queue("one", "{parent: two}");
  queue("two", "{parent: three}");
  queue("three", "{parent: one}");
  queue("own", "{parent: own}");
  lab.make(pods_yaml("g", 1, "labels: {tessera.dev/queue: one},"));
  waits_with("its parents form a loop");
  for (const char* name : {"one", "two", "three", "own"}) {
    EXPECT_EQ(ready(name)["status"].as_string(), "False") << name;
    EXPECT_THAT(ready(name)["message"].str(), HasSubstr("give one of them another parent"));
    EXPECT_THAT(lab.events("Queue", name),
                Contains(HasSubstr("QueueClosed its parents form a loop")));
  }
  ASSERT_TRUE(
      lab.change(lab.named("tessera.dev/v1alpha1", "Queue", "three"), "{spec: {parent: null}}"));
  lab.advance(base::seconds(15));
  EXPECT_EQ(lab.running("g-"), 1);
  EXPECT_EQ(ready("two")["status"].as_string(), "True");
}

TEST_F(GangBadInput, A_parent_that_does_not_exist) {
  queue("child", "{parent: nobody}");
  lab.make(pods_yaml("g", 1, "labels: {tessera.dev/queue: child},"));
  waits_with("its parent \"nobody\" does not exist: create it, or leave parent out");
  EXPECT_EQ(ready("child")["status"].as_string(), "False");
}

TEST_F(GangBadInput, Weights_and_amounts_that_make_no_sense) {
  for (const char* spec : {"{weight: -1}", "{weight: 1000001}", "{weight: heavy}",
                           "{quota: {gpu: -1}}", "{limit: {gpu: lots}}"}) {
    const auto made =
        lab.try_make(GangLab::documents(fmt::format("{{apiVersion: tessera.dev/v1alpha1, kind: "
                                                    "Queue, metadata: {{name: x}}, spec: {}}}",
                                                    spec))
                         .at(0));
    ASSERT_FALSE(made) << spec;
  }
  take_anything("queues.tessera.dev", "v1alpha1");
  int made = 0;
  for (const char* spec :
       {"{weight: -1}", "{weight: 9223372036854775807}", "{weight: heavy}", "{quota: {gpu: -1}}",
        "{limit: {gpu: lots}}", "{quota: {gpu: 4}, limit: {gpu: 2}}", "{quota: [1]}",
        "{minRuntime: soon}", "{defaultRuntime: 0s}", "{reservations: -1}", "{closed: maybe}",
        "{priority: high}"}) {
    SCOPED_TRACE(spec);
    const std::string name = fmt::format("bad-{}", ++made);
    queue(name, spec);
    lab.make(pods_yaml("g-" + name, 1, fmt::format("labels: {{tessera.dev/queue: {}}},", name)));
    lab.advance(base::seconds(10));
    EXPECT_EQ(lab.bound("g-" + name), 0);
    EXPECT_THAT(lab.why_of("g-" + name), HasSubstr(fmt::format("queue \"{}\" is closed: ", name)));
    EXPECT_EQ(ready(name)["status"].as_string(), "False");
  }
}

TEST_F(GangBadInput, Amounts_without_end_do_not_overflow) {
  queue("huge",
        "{quota: {gpu: 9000000000000000000, memory: 8Ei, cpu: 9000000000000000000}, weight: "
        "1000000}");
  queue("huger", "{quota: {gpu: 9000000000000000000}, weight: 1000000}");
  lab.make(pods_yaml("g", 2, "labels: {tessera.dev/queue: huge},"));
  lab.make(pods_yaml("h", 2, "labels: {tessera.dev/queue: huger},"));
  lab.advance(base::seconds(20));
  EXPECT_EQ(lab.running("g-"), 2);
  EXPECT_EQ(lab.running("h-"), 2);
}

TEST_F(GangBadInput, A_queue_that_is_deleted_while_its_jobs_run_takes_nothing_from_them) {
  queue("brief", "{quota: {gpu: 2}, limit: {gpu: 3}}");
  lab.make(pods_yaml("g", 2, "labels: {tessera.dev/queue: brief},"));
  lab.advance(base::seconds(15));
  ASSERT_EQ(lab.running("g-"), 2);
  ASSERT_TRUE(lab.erase(lab.named("tessera.dev/v1alpha1", "Queue", "brief")));
  lab.make(pods_yaml("g-more", 2, "labels: {tessera.dev/queue: brief},"));
  lab.advance(base::seconds(120));
  EXPECT_EQ(lab.running("g-"), 2);
  EXPECT_THAT(lab.why_of("g-more"), HasSubstr("queue \"brief\" does not exist"));
  queue("brief", "{quota: {gpu: 2}, limit: {gpu: 3}}");
  lab.advance(base::seconds(15));
  EXPECT_EQ(lab.running("g-"), 3) << "what ran all the time counts";
}

TEST_F(GangBadInput, A_queue_of_everything_cannot_be_made_and_foreign_pods_stay_nobodys) {
  const auto made = lab.try_make(
      GangLab::documents(
          "{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {name: '*'}, spec: {}}")
          .at(0));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("metadata.name"));
}

TEST_F(GangBadInput, Two_queues_of_one_name_in_two_dialects) {
  queue("both", "{limit: {gpu: 1}}");
  lab.make(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: both}, "
      "spec: {weight: 1, capability: {nvidia.com/gpu: 4}}}");
  lab.make(pods_yaml("g", 3, "labels: {tessera.dev/queue: both},"));
  lab.advance(base::seconds(20));
  EXPECT_EQ(lab.running("g-"), 1) << "ours counts";
}

TEST_F(GangBadInput, A_group_that_changes_its_queue_while_it_runs_stays) {
  queue("left", "{limit: {gpu: 4}}");
  queue("right", "{limit: {gpu: 1}}");
  volcano_group("{minMember: 2, queue: left}");
  lab.make(pods_yaml("g", 2, kInVolcano));
  lab.advance(base::seconds(15));
  ASSERT_EQ(lab.running("g-"), 2);
  ASSERT_TRUE(lab.change(lab.named("scheduling.volcano.sh/v1beta1", "PodGroup", "g"),
                         "{spec: {queue: right}}"));
  lab.advance(base::seconds(120));
  EXPECT_EQ(lab.running("g-"), 2);
}

TEST(GangBadInputMany, Ten_thousand_pods_in_one_gang_start_together_or_not_at_all) {
  GangLab lab("racks: [{name: r, nodes: [{name: a, count: 100, pods: 100, cpu: 1000}]}]");
  lab.cordon("a-7", true);
  lab.make(
      "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: "
      "{minMember: 10000}}");
  lab.make_at_once(pods_yaml("g", 10'000, "labels: {scheduling.x-k8s.io/pod-group: g},", "", 0));
  lab.advance(base::seconds(60));
  EXPECT_EQ(lab.bound("g-"), 0);
  EXPECT_THAT(lab.why_of("g-"),
              HasSubstr("100 of its 10000 members that must start together have no place"));
  lab.cordon("a-7", false);
  lab.advance(base::seconds(120));
  EXPECT_EQ(lab.running("g-"), 10'000);
}

}  // namespace
}  // namespace tessera::sim
