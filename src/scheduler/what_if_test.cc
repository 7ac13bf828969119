#include "scheduler/what_if.h"

#include <gmock/gmock.h>

#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using kube::Object;
using testing::bound;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::node_object;
using testing::pod_object;
using testing::yaml;

constexpr base::Time kNow{1'767'225'600'000'000'000};

class WhatIfTest : public ::testing::Test {
 protected:
  WhatIfTest() { options.now = snapshot.taken = kNow; }

  void manifest(std::string_view text) { changes.manifests.push_back(yaml(text)); }
  // A pod for `gpus` GPUs that tessera places.
  void new_pod(std::string_view name, int gpus, int priority = 0) {
    manifest(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}, spec: {{schedulerName: tessera, "
        "priority: {}, containers: [{{name: a, resources: {{limits: {{nvidia.com/gpu: "
        "{}}}}}}}]}}}}",
        name, priority, gpus));
  }
  // A running pod of a ReplicaSet, so that another comes when it goes.
  void runs(std::string_view name, std::string_view node, int gpus, std::string_view devices) {
    snapshot.add(bound(pod_object(name,
                                  "metadata: {ownerReferences: [{apiVersion: apps/v1, kind: "
                                  "ReplicaSet, name: rs, uid: rs, controller: true}]}",
                                  gpus),
                       node, devices));
  }
  WhatIfAnswer ask() {
    auto answer = what_if(snapshot, changes, options);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : WhatIfAnswer();
  }
  std::string refusal() {
    const auto answer = what_if(snapshot, changes, options);
    EXPECT_FALSE(answer);
    return answer ? "" : answer.error().message;
  }

  Snapshot snapshot;
  Changes changes;
  WhatIfOptions options;
};

TEST_F(WhatIfTest, A_job_that_finds_room_is_told_where_and_on_which_devices) {
  snapshot.add(node_object("a", 4));
  runs("old", "a", 2, "0,1");
  new_pod("p", 2);
  const WhatIfAnswer answer = ask();
  ASSERT_EQ(answer.jobs.size(), 1U);
  EXPECT_THAT(answer.jobs[0].placed, ElementsAre(PlannedPod{"default/p", "a", "2,3"}));
  EXPECT_THAT(answer.evictions, IsEmpty());
  EXPECT_EQ(to_text(answer), "Pod default/p would start now\n  default/p on a, GPU 2,3\n");
}

TEST_F(WhatIfTest, A_job_that_finds_none_is_told_why) {
  snapshot.add(node_object("a", 4));
  new_pod("p", 8);
  const WhatIfAnswer answer = ask();
  ASSERT_EQ(answer.jobs.size(), 1U);
  EXPECT_THAT(answer.jobs[0].waiting, ElementsAre("default/p"));
  ASSERT_EQ(answer.jobs[0].verdicts.size(), 1U);
  EXPECT_TRUE(answer.jobs[0].verdicts[0].never);
  EXPECT_THAT(to_text(answer), HasSubstr("Pod default/p would not start now\n"));
  EXPECT_FALSE(to_json(answer).get("jobs").at(0)["starts"].as_bool());
}

TEST_F(WhatIfTest, Whom_it_evicts_is_told_with_the_reason_and_what_becomes_of_them) {
  snapshot.add(node_object("a", 4));
  runs("low", "a", 4, "0,1,2,3");
  new_pod("urgent", 2, 100);
  const WhatIfAnswer answer = ask();
  EXPECT_EQ(answer.jobs[0].placed.size(), 1U);
  ASSERT_EQ(answer.evictions.size(), 1U);
  EXPECT_EQ(answer.evictions[0].pod, "default/low");
  EXPECT_EQ(answer.evictions[0].reason, "Preempted");
  EXPECT_THAT(answer.evictions[0].why, HasSubstr("default/urgent of priority 100"));
  EXPECT_TRUE(answer.evictions[0].comes_back);
  ASSERT_EQ(answer.wait.size(), 1U);
  EXPECT_EQ(answer.wait[0].pod, "default/low");
  EXPECT_EQ(answer.wait[0].node, "a");
  EXPECT_THAT(answer.wait[0].why, HasSubstr("Insufficient nvidia.com/gpu"));
}

TEST_F(WhatIfTest, Where_evictions_are_off_nobody_leaves) {
  snapshot.add(node_object("a", 4));
  runs("low", "a", 4, "0,1,2,3");
  new_pod("urgent", 2, 100);
  options.evictions = false;
  const WhatIfAnswer answer = ask();
  EXPECT_THAT(answer.evictions, IsEmpty());
  EXPECT_THAT(answer.jobs[0].waiting, ElementsAre("default/urgent"));
}

TEST_F(WhatIfTest, A_gang_starts_as_a_whole_or_not_at_all) {
  snapshot.add(node_object("a", 4));
  manifest(R"(
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 3}
)");
  for (const char* name : {"g-0", "g-1", "g-2"}) {
    new_pod(name, 2);
    changes.manifests.back().ref("metadata", "labels").set("scheduling.x-k8s.io/pod-group", "g");
  }
  WhatIfAnswer answer = ask();
  ASSERT_EQ(answer.jobs.size(), 1U);
  EXPECT_EQ(answer.jobs[0].title, "PodGroup default/g");
  EXPECT_THAT(answer.jobs[0].placed, IsEmpty());
  EXPECT_EQ(answer.jobs[0].waiting.size(), 3U);
  changes.add_nodes.push_back(parse_add_nodes("1:a").value());
  answer = ask();
  EXPECT_EQ(answer.jobs[0].placed.size(), 3U);
}

TEST_F(WhatIfTest, What_is_being_deleted_counts_as_gone) {
  snapshot.add(node_object("a", 4));
  snapshot.add(bound(pod_object("ends", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", 4),
                     "a", "0,1,2,3"));
  new_pod("p", 4);
  EXPECT_EQ(ask().jobs[0].placed.size(), 1U);
}

TEST_F(WhatIfTest, More_nodes_let_others_start) {
  snapshot.add(node_object("a", 4, "spec: {unschedulable: true}"));
  snapshot.add(pod_object("waits", "{}", 4));
  changes.add_nodes.push_back(parse_add_nodes("2").value());
  WhatIfAnswer answer = ask();
  ASSERT_EQ(answer.start.size(), 1U);
  EXPECT_EQ(answer.start[0].pod, "default/waits");
  EXPECT_EQ(answer.start[0].node.substr(0, 6), "a-new-");
  changes.add_nodes = {parse_add_nodes("1:model=H100,gpus=8").value()};
  answer = ask();
  EXPECT_EQ(answer.start.size(), 1U);
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("no node has 8 H100")));
}

TEST_F(WhatIfTest, A_drained_node_is_emptied_and_its_pods_go_where_there_is_room) {
  snapshot.add(node_object("a", 4));
  snapshot.add(node_object("b", 4));
  runs("p", "a", 2, "0,1");
  runs("q", "a", 4, "");
  changes.drain = {"a"};
  const WhatIfAnswer answer = ask();
  ASSERT_EQ(answer.evictions.size(), 2U);
  EXPECT_EQ(answer.evictions[0].reason, "Asked");
  EXPECT_EQ(answer.evictions[0].then, "b");
  ASSERT_EQ(answer.wait.size(), 1U);
  EXPECT_EQ(answer.wait[0].pod, "default/q");
}

TEST_F(WhatIfTest, Who_has_to_leave_by_name_makes_room_for_others) {
  snapshot.add(node_object("a", 4));
  snapshot.add(bound(pod_object("bare", "{}", 4), "a", "0,1,2,3"));
  snapshot.add(pod_object("waits", "{}", 4));
  changes.evict = {"bare"};
  const WhatIfAnswer answer = ask();
  ASSERT_EQ(answer.evictions.size(), 1U);
  EXPECT_FALSE(answer.evictions[0].comes_back);
  ASSERT_EQ(answer.start.size(), 1U);
  EXPECT_EQ(answer.start[0].pod, "default/waits");
  EXPECT_THAT(to_text(answer), HasSubstr("(Asked: --evict bare); nothing makes it anew"));
}

TEST_F(WhatIfTest, A_larger_quota_takes_back_what_others_have_borrowed) {
  snapshot.add(node_object("a", 4));
  for (const char* name : {"one", "two"}) {
    snapshot.add(Object(yaml(fmt::format(
        "{{apiVersion: tessera.dev/v1alpha1, kind: Queue, metadata: {{name: {}}}, spec: {{quota: "
        "{{gpu: 0}}}}}}",
        name))));
  }
  for (int i = 0; i < 4; ++i)
    snapshot.add(bound(pod_object(fmt::format("borrows-{}", i),
                                  "metadata: {annotations: {tessera.dev/queue: two}}", 1),
                       "a", std::to_string(i)));
  for (const char* name : {"first", "second", "third"})
    snapshot.add(pod_object(name, "metadata: {annotations: {tessera.dev/queue: one}}", 1));
  changes.quotas.push_back(parse_set_amounts("one=gpu:3,cpu:8").value());
  const WhatIfAnswer answer = ask();
  // Two it gets back without the change, as half is its share.
  EXPECT_EQ(answer.start.size(), 1U);
  ASSERT_EQ(answer.evictions.size(), 1U);
  EXPECT_EQ(answer.evictions[0].reason, "Reclaimed");
}

TEST_F(WhatIfTest, A_job_that_is_there_already_is_planned_anew) {
  snapshot.add(node_object("a", 4));
  snapshot.add(bound(pod_object("p", "{}", 4), "a", "0,1,2,3"));
  new_pod("p", 2);
  const WhatIfAnswer answer = ask();
  EXPECT_EQ(answer.jobs[0].placed.size(), 1U);
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("Pod default/p is there already")));
}

TEST_F(WhatIfTest, Pods_of_other_schedulers_are_told_so) {
  snapshot.add(node_object("a", 4));
  manifest("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {schedulerName: other}}");
  const WhatIfAnswer answer = ask();
  EXPECT_THAT(answer.notes,
              ElementsAre(HasSubstr("schedulerName \"other\" is not one that tessera")));
  EXPECT_THAT(answer.jobs[0].problems, ElementsAre(HasSubstr("schedulerName")));
}

TEST_F(WhatIfTest, A_pod_that_names_no_scheduler_is_planned_and_told_so) {
  snapshot.add(node_object("a", 4));
  manifest("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {}}");
  const WhatIfAnswer answer = ask();
  EXPECT_EQ(answer.jobs[0].placed.size(), 1U);
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("Pod default/p names no schedulerName")));
}

TEST_F(WhatIfTest, The_same_question_has_the_same_answer) {
  for (const char* name : {"a", "b", "c"}) snapshot.add(node_object(name, 8));
  for (int i = 0; i < 9; ++i) snapshot.add(pod_object(fmt::format("w{}", i), "{}", 1 + i % 5));
  new_pod("p", 6, 5);
  EXPECT_EQ(to_json(ask()).dump(), to_json(ask()).dump());
}

TEST_F(WhatIfTest, Nothing_changed_is_told_so) {
  snapshot.add(node_object("a", 4));
  changes.quotas.push_back(parse_set_amounts("default=gpu:8").value());
  EXPECT_EQ(to_text(ask()), "nothing would be different\n");
}

TEST_F(WhatIfTest, What_is_not_there_is_refused_with_the_mend) {
  changes.drain = {"x"};
  EXPECT_THAT(refusal(), HasSubstr("--drain: there is no node \"x\""));
  changes = {};
  changes.evict = {"ml/x"};
  EXPECT_THAT(refusal(), HasSubstr("namespace \"ml\" has no pod with a place"));
  changes = {};
  changes.quotas = {parse_set_amounts("x=gpu:1").value()};
  EXPECT_THAT(refusal(), HasSubstr("there is no queue \"x\": there are default"));
  changes.quotas = {parse_set_amounts("default=gpu:lots").value()};
  EXPECT_THAT(refusal(), HasSubstr("\"lots\" is no amount"));
  changes = {};
  changes.add_nodes = {parse_add_nodes("1").value()};
  EXPECT_THAT(refusal(), HasSubstr("there is no node to be like"));
  changes.add_nodes = {parse_add_nodes("1:x").value()};
  EXPECT_THAT(refusal(), HasSubstr("there is no node \"x\" to be like"));
  changes = {};
  manifest("{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}");
  EXPECT_THAT(refusal(), HasSubstr("Thing default/a: what pods a Thing"));
}

TEST(WhatIfChanges, Text_that_says_nothing_is_refused) {
  for (const char* text : {"", "x", "0", "-1", "99999", "1:", "1:gpus=8",
                           "1:model=", "1:model=H200,gpus=0", "1:model=H200,cpus=3"})
    EXPECT_FALSE(parse_add_nodes(text)) << text;
  for (const char* text : {"", "q", "q=", "=gpu:1", "q=gpu", "q=gpu:", "q=:1", "q=gpu:1,"})
    EXPECT_FALSE(parse_set_amounts(text)) << text;
  EXPECT_EQ(parse_add_nodes("3:model=H200,gpus=4")->gpus, 4);
  EXPECT_EQ(parse_set_amounts("q=gpu/H100:2")->amounts[0].first, "gpu/H100");
}

}  // namespace
}  // namespace tessera::scheduler
