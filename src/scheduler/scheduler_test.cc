#include "scheduler/scheduler.h"

#include <gmock/gmock.h>

#include "scheduler/fake_api_testing.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using kube::Verb;
using testing::bound;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::node_object;
using testing::pod_object;
using testing::with;

bool is_bind(const kube::Request& request) {
  return request.subresource == "binding";
}

class SchedulerTest : public ::testing::Test {
 protected:
  void start() {
    scheduler =
        std::make_unique<Scheduler>(api, loop, clock, base::Random(1), Scheduler::Options{});
    scheduler->start();
    settle();
  }
  void settle(base::Duration d = base::millis(10)) { loop.advance(d); }
  void add(const kube::Object& pod) {
    api.put("pods", pod);
    settle();
  }
  void set_phase(const std::string& name, const char* phase) {
    json::Value root = api.pod(name).json();
    root.ref("status", "phase") = phase;
    api.put("pods", kube::Object(root));
    settle();
  }

  base::ManualLoop loop;
  base::LoopClock clock{loop};
  testing::FakeApi api{loop};
  std::unique_ptr<Scheduler> scheduler;
};

TEST_F(SchedulerTest, Binds_with_the_devices_that_it_chose) {
  api.put("nodes", node_object("n"));
  start();
  add(pod_object("p", "{}", 2));
  EXPECT_EQ(api.node_of("p"), "n");
  EXPECT_EQ(api.pod("p").annotation("tessera.dev/gpus"), "0,1");
  EXPECT_EQ(scheduler->stats().bound, 1U);
  EXPECT_EQ(scheduler->stats().assumed, 0U);
  EXPECT_THAT(api.events, ElementsAre("Scheduled p"));
}

TEST_F(SchedulerTest, Leaves_other_schedulers_pods_and_gated_and_deleted_ones_alone) {
  api.put("nodes", node_object("n"));
  start();
  add(pod_object("other", "spec: {schedulerName: default-scheduler}"));
  add(pod_object("gated", "spec: {schedulingGates: [{name: g}]}"));
  add(pod_object("gone", R"(metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"})"));
  settle(base::seconds(60));
  EXPECT_TRUE(api.binds.empty());
  add(pod_object("gated"));
  EXPECT_EQ(api.node_of("gated"), "n") << "the gate is gone";
}

TEST_F(SchedulerTest, Says_why_a_pod_waits_and_places_it_when_room_comes) {
  api.put("nodes", node_object("n", 2));
  start();
  add(pod_object("a", "{}", 2));
  add(pod_object("b", "{}", 1));
  EXPECT_THAT(api.why("b"), HasSubstr("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."));
  EXPECT_EQ(api.scheduled("b")["reason"].as_string(), "Unschedulable");
  EXPECT_THAT(api.events, ::testing::Contains("FailedScheduling b"));
  set_phase("a", "Succeeded");
  EXPECT_EQ(api.node_of("b"), "n");
}

TEST_F(SchedulerTest, A_bad_annotation_is_the_reason_why_the_pod_waits) {
  api.put("nodes", node_object("n"));
  start();
  add(pod_object("p", R"(metadata: {annotations: {gpu-fraction: "two"}})"));
  EXPECT_THAT(api.why("p"), HasSubstr("annotation gpu-fraction"));
  api.put("pods", with(api.pod("p"), R"(metadata: {annotations: {gpu-fraction: "0.5"}})"));
  settle();
  EXPECT_EQ(api.node_of("p"), "n") << "mended";
}

TEST_F(SchedulerTest, A_daemon_goes_to_its_node_even_when_that_is_cordoned) {
  api.put("nodes", node_object("other", 8));
  api.put("nodes", node_object("n", 8, "spec: {unschedulable: true}"));
  start();
  const char* to_node = R"(spec: {affinity: {nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
      {matchFields: [{key: metadata.name, operator: In, values: ["n"]}]}]}}}})";
  add(pod_object("plain", to_node, 1));
  add(with(pod_object("daemon", to_node, 1),
           R"(spec: {tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists,
              effect: NoSchedule}]})"));
  settle();
  EXPECT_EQ(api.node_of("daemon"), "n");
  EXPECT_EQ(api.node_of("plain"), "");
}

TEST_F(SchedulerTest, The_reason_is_written_anew_when_it_changes_but_not_all_the_time) {
  api.put("nodes", node_object("n", 2));
  start();
  add(pod_object("p", "{}", 4));
  const std::string first = api.why("p");
  const std::string since = api.scheduled("p")["lastTransitionTime"].str();
  settle(base::seconds(3));
  api.put("nodes", node_object("n", 2, "spec: {unschedulable: true}"));
  settle(base::seconds(2));
  EXPECT_EQ(api.why("p"), first);
  settle(base::seconds(10));
  EXPECT_THAT(api.why("p"), HasSubstr("unschedulable"));
  EXPECT_EQ(api.scheduled("p")["lastTransitionTime"].as_string(), since) << "it waits since then";
}

TEST_F(SchedulerTest, A_reason_that_the_api_did_not_take_is_written_again) {
  api.put("nodes", node_object("n", 0));
  start();
  int refusals = 2;
  api.refuse = [&](const kube::Request& r) -> std::optional<Code> {
    if (r.subresource != "status" || refusals-- <= 0) return std::nullopt;
    return Code::kUnavailable;
  };
  add(pod_object("p", "{}", 1));
  EXPECT_EQ(api.why("p"), "");
  settle(base::seconds(40));
  EXPECT_THAT(api.why("p"), HasSubstr("Insufficient nvidia.com/gpu"));
}

TEST_F(SchedulerTest, A_bind_whose_answer_is_lost_has_happened_once) {
  api.put("nodes", node_object("a", 1));
  api.put("nodes", node_object("b", 1));
  start();
  int losses = 1;
  api.lose = [&](const kube::Request& r) { return is_bind(r) && losses-- > 0; };
  add(pod_object("p", "{}", 1));
  settle(base::seconds(60));
  EXPECT_EQ(api.binds.size(), 1U);
  add(pod_object("q", "{}", 1));
  EXPECT_NE(api.node_of("p"), api.node_of("q"));
  EXPECT_EQ(scheduler->stats().assumed, 0U);
}

TEST_F(SchedulerTest, A_bind_that_was_refused_frees_its_place_and_is_tried_again) {
  api.put("nodes", node_object("a", 1));
  start();
  int refusals = 3;
  api.refuse = [&](const kube::Request& r) -> std::optional<Code> {
    if (!is_bind(r) || refusals-- <= 0) return std::nullopt;
    return Code::kConflict;
  };
  add(pod_object("p", "{}", 1));
  EXPECT_EQ(api.node_of("p"), "");
  EXPECT_EQ(scheduler->stats().assumed, 0U);
  settle(base::seconds(30));
  EXPECT_EQ(api.node_of("p"), "a");
  EXPECT_EQ(scheduler->stats().bind_errors, 3U);
}

// Others may have been evicted for it (world --queues --seed 307).
TEST_F(SchedulerTest, A_bind_that_did_not_arrive_is_sent_again_to_its_place) {
  api.put("nodes", node_object("a", 1));
  start();
  int refusals = 2;
  api.refuse = [&](const kube::Request& r) -> std::optional<Code> {
    if (!is_bind(r) || refusals-- <= 0) return std::nullopt;
    return Code::kUnavailable;
  };
  add(pod_object("p", "{}", 1));
  add(pod_object("q", "{}", 1));
  EXPECT_EQ(scheduler->stats().assumed, 1U);
  settle(base::seconds(30));
  EXPECT_EQ(scheduler->stats().bind_errors, 2U);
  ASSERT_FALSE(api.binds.empty());
  EXPECT_EQ(api.binds.front(), "p>a");
}

TEST_F(SchedulerTest, A_place_in_doubt_is_given_to_nobody_until_the_api_answers) {
  api.put("nodes", node_object("a", 1));
  start();
  bool down = true;
  api.refuse = [&](const kube::Request& r) -> std::optional<Code> {
    if (down && (is_bind(r) || r.verb == Verb::kGet)) return Code::kUnavailable;
    return std::nullopt;
  };
  add(pod_object("p", "{}", 1));
  add(pod_object("q", "{}", 1));
  settle(base::seconds(5));
  EXPECT_EQ(scheduler->stats().assumed, 1U);
  EXPECT_TRUE(api.binds.empty());
  down = false;
  settle(base::seconds(60));
  EXPECT_EQ(api.binds.size(), 1U);
}

TEST_F(SchedulerTest, A_pod_deleted_while_its_bind_is_under_way_leaves_nothing_behind) {
  api.put("nodes", node_object("a", 1));
  start();
  api.latency = base::seconds(5);
  api.refuse = [](const kube::Request& r) -> std::optional<Code> {
    return is_bind(r) ? std::optional(Code::kNotFound) : std::nullopt;
  };
  api.put("pods", pod_object("p", "{}", 1));
  settle();
  EXPECT_EQ(scheduler->stats().assumed, 1U);
  api.erase("pods", "default/p");
  settle(base::seconds(30));
  EXPECT_EQ(scheduler->stats().assumed, 0U);
  api.refuse = nullptr;
  api.latency = {};
  add(pod_object("q", "{}", 1));
  EXPECT_EQ(api.node_of("q"), "a");
}

TEST_F(SchedulerTest, A_node_that_goes_while_a_bind_to_it_is_under_way_ends_nothing) {
  api.put("nodes", node_object("a", 1));
  start();
  api.latency = base::seconds(2);
  api.put("pods", pod_object("p", "{}", 1));
  settle();
  api.erase("nodes", "a");
  settle(base::seconds(10));
  EXPECT_THAT(api.events, ElementsAre("Scheduled p"));
  add(pod_object("q", "{}", 1));
  settle(base::seconds(20));
  EXPECT_EQ(api.why("q"), "no nodes available to schedule pods");
}

TEST_F(SchedulerTest, A_pod_replaced_under_the_same_name_is_another_pod) {
  api.put("nodes", node_object("a", 1));
  start();
  add(pod_object("p", "{}", 1));
  EXPECT_EQ(api.node_of("p"), "a");
  // Deleted and made anew while the watch was away: one event.
  add(pod_object("p", "metadata: {uid: other}", 1));
  EXPECT_EQ(api.node_of("p"), "a");
  EXPECT_EQ(api.binds.size(), 2U);
}

TEST_F(SchedulerTest, Higher_priority_goes_first) {
  api.put("nodes", node_object("n", 1));
  start();
  add(pod_object("first", "{}", 1));
  add(pod_object("low", "{}", 1));
  add(pod_object("high", "spec: {priority: 10}", 1));
  set_phase("first", "Succeeded");
  EXPECT_EQ(api.node_of("high"), "n");
  EXPECT_EQ(api.node_of("low"), "");
}

TEST_F(SchedulerTest, Nothing_goes_to_a_cordoned_or_sick_or_unready_node) {
  api.put("nodes", node_object("cordoned", 8, "spec: {unschedulable: true}"));
  api.put("nodes",
          node_object("away", 8, R"(status: {conditions: [{type: Ready, status: Unknown}]})"));
  api.put("nodes",
          node_object("sick", 1, R"(metadata: {annotations: {tessera.dev/unhealthy-gpus: "0"}})"));
  start();
  add(pod_object("p", "{}", 1));
  EXPECT_TRUE(api.binds.empty());
  EXPECT_THAT(api.why("p"), HasSubstr("1 node(s) were unschedulable"));
  api.put("nodes", node_object("cordoned", 8));
  settle();
  EXPECT_EQ(api.node_of("p"), "cordoned");
}

TEST_F(SchedulerTest, C13_a_reservation_keeps_its_size_for_the_life_of_the_pod) {
  api.put("nodes", node_object("n", 4));
  start();
  add(pod_object("p1", R"(
spec:
  initContainers: [{name: i, resources: {limits: {nvidia.com/gpu: 4}}}]
  containers:
    - {name: a, resources: {limits: {nvidia.com/gpu: 1}}}
    - {name: b, resources: {limits: {nvidia.com/gpu: 1}}}
)"));
  add(pod_object("x", "{}", 1));
  set_phase("p1", "Running");  // the init container has ended
  settle(base::seconds(600));
  EXPECT_EQ(api.node_of("x"), "");
  EXPECT_THAT(api.why("x"), HasSubstr("Insufficient nvidia.com/gpu"));
  api.put("pods", with(api.pod("p1"), R"(metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"})"));
  settle(base::seconds(60));
  EXPECT_EQ(api.node_of("x"), "") << "a terminating pod still holds its GPUs";
  set_phase("p1", "Succeeded");
  EXPECT_EQ(api.node_of("x"), "n");
}

TEST_F(SchedulerTest, C39_more_than_there_can_be_waits_for_ever_and_takes_nothing) {
  api.put("nodes", node_object("n", 8));
  start();
  for (const char* huge : {"3Ki", "9223372036854775807", "9223372036854775808", "1e30"}) {
    add(pod_object(fmt::format("p{}", huge),
                   fmt::format("spec: {{containers: [{{name: c, resources: {{limits: "
                               "{{nvidia.com/gpu: \"{}\"}}}}}}]}}",
                               huge)));
    EXPECT_THAT(api.why(fmt::format("p{}", huge)), HasSubstr("Insufficient nvidia.com/gpu"));
  }
  settle(base::seconds(600));
  EXPECT_TRUE(api.binds.empty());
  add(pod_object("q", "{}", 8));
  EXPECT_EQ(api.node_of("q"), "n");
}

TEST_F(SchedulerTest, After_a_restart_nothing_is_given_out_twice) {
  api.put("nodes", node_object("n", 8));
  api.put("pods", bound(pod_object("old", "{}", 6), "n", "0,1,2,3,4,5"));
  api.put("pods", pod_object("new", "{}", 4));
  start();
  EXPECT_EQ(api.node_of("new"), "");
  add(pod_object("small", "{}", 2));
  EXPECT_EQ(api.pod("small").annotation("tessera.dev/gpus"), "6,7");
}

}  // namespace
}  // namespace tessera::scheduler
