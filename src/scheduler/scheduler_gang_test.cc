// Gangs, queues and evictions through the driver: what is sent to the API, in which order, and what is said about it.

#include <gmock/gmock.h>

#include "json/parse.h"
#include "scheduler/fake_api_testing.h"
#include "scheduler/scheduler.h"
#include "scheduler/verdict.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::node_object;
using testing::pod_object;
using testing::with;
using testing::yaml;

class SchedulerGangTest : public ::testing::Test {
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
  void group(int min) {
    api.put("podgroups", kube::Object(yaml(fmt::format(R"(
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {{name: g, namespace: default}}
spec: {{schedulingPolicy: {{gang: {{minCount: {}}}}}}}
)",
                                                       min))));
    settle();
  }
  void member(const std::string& name, int gpus, std::string_view more = "{}") {
    add(with(pod_object(name, "spec: {schedulingGroup: {podGroupName: g}}", gpus), more));
  }
  void gone(const std::string& name) {
    api.erase("pods", "default/" + name);
    settle();
  }
  json::Value condition(const std::string& type) {
    const kube::Object group = api.object("podgroups", "default/g");
    for (const json::Value& one : group.get("status", "conditions").items()) {
      if (one["type"].as_string() == type) return one;
    }
    return {};
  }

  base::ManualLoop loop;
  base::LoopClock clock{loop};
  testing::FakeApi api{loop};
  std::unique_ptr<Scheduler> scheduler;
};

TEST_F(SchedulerGangTest, A_gang_is_bound_when_all_of_it_has_a_place_and_its_group_says_so) {
  api.put("nodes", node_object("n", 4));
  group(3);
  start();
  member("a", 1);
  member("b", 1);
  settle(base::seconds(2));
  EXPECT_TRUE(api.binds.empty());
  EXPECT_THAT(api.why("a"), HasSubstr("3 members must start together and 2 exist"))
      << "another number of members is told within a second";
  EXPECT_EQ(condition("PodGroupInitiallyScheduled")["status"].as_string(), "False");
  member("c", 1);
  settle(base::seconds(3));
  EXPECT_EQ(api.binds.size(), 3U);
  EXPECT_EQ(condition("PodGroupInitiallyScheduled")["status"].as_string(), "True");
}

TEST_F(SchedulerGangTest, One_waiting_pod_of_a_gang_holds_its_verdict) {
  api.put("nodes", node_object("n", 2));
  group(2);
  start();
  member("a", 2);
  member("b", 2);
  settle(base::seconds(30));
  auto parsed = json::parse(api.pod("a").annotation("tessera.dev/verdict"));
  ASSERT_TRUE(parsed) << api.pod("a").json().dump();
  const auto verdict = parse_verdict(*parsed);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->job, "default/g");
  EXPECT_EQ(verdict->reason, "NoCapacity");
  EXPECT_EQ(verdict->sentence, api.why("a"));
  EXPECT_EQ(api.pod("b").annotation("tessera.dev/verdict"), "");
  EXPECT_EQ(api.why("b"), api.why("a"));
}

TEST_F(SchedulerGangTest, Victims_are_evicted_through_the_api_and_are_told_for_whom) {
  api.put("nodes", node_object("n", 2));
  start();
  add(pod_object("low", "{}", 2));
  settle(base::seconds(10));
  add(pod_object("high", "spec: {priority: 10}", 2));
  settle(base::seconds(1));
  EXPECT_THAT(api.evictions, ElementsAre("low"));
  EXPECT_THAT(api.events, Contains("Preempted low"));
  EXPECT_EQ(api.node_of("high"), "") << "the place is not free yet";
  gone("low");
  EXPECT_EQ(api.node_of("high"), "n");
  EXPECT_EQ(api.evictions.size(), 1U);
}

TEST_F(SchedulerGangTest, Whoever_a_budget_covers_is_asked_first_and_a_no_saves_the_others) {
  api.put("nodes", node_object("n", 2));
  api.put("poddisruptionbudgets", kube::Object(yaml(R"(
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b, namespace: default}
spec: {selector: {matchLabels: {app: x}}}
status: {disruptionsAllowed: 1}
)")));
  start();
  add(pod_object("free", "{}", 1));
  add(pod_object("covered", "metadata: {labels: {app: x}}", 1));
  settle(base::seconds(10));
  ASSERT_EQ(api.binds.size(), 2U);
  int asked = 0;
  api.refuse = [&](const kube::Request& r) -> std::optional<Code> {
    if (r.subresource != "eviction" || r.name != "covered") return std::nullopt;
    ++asked;
    return Code::kTooManyRequests;
  };
  add(pod_object("high", "spec: {priority: 10}", 2));
  settle(base::seconds(60));
  EXPECT_EQ(asked, 4);
  EXPECT_THAT(api.evictions, IsEmpty()) << "the other would have gone for nothing";
  EXPECT_EQ(api.node_of("high"), "");
  EXPECT_THAT(api.why("high"), HasSubstr("Insufficient"));
  settle(base::seconds(600));
  EXPECT_GT(asked, 4) << "later it is asked again";
}

TEST_F(SchedulerGangTest, A_lost_answer_to_an_eviction_evicts_once) {
  api.put("nodes", node_object("n", 2));
  start();
  add(pod_object("low", "{}", 2));
  settle(base::seconds(10));
  int losses = 2;
  api.lose = [&](const kube::Request& r) { return r.subresource == "eviction" && losses-- > 0; };
  add(pod_object("high", "spec: {priority: 10}", 2));
  settle(base::seconds(1));
  gone("low");
  add(pod_object("low", "metadata: {uid: again}", 2));  // its controller made it anew
  settle(base::seconds(60));
  EXPECT_EQ(api.node_of("high"), "n");
  EXPECT_EQ(api.node_of("low"), "");
  EXPECT_FALSE(api.pod("low").deleting());
}

TEST_F(SchedulerGangTest, A_job_is_allowed_its_loss_before_its_pods_are_evicted) {
  api.put("nodes", node_object("n", 4));
  api.put("jobs", kube::Object(yaml(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: default, uid: ju}
spec: {parallelism: 2, backoffLimit: 0}
)")));
  start();
  const char* of_job = R"(metadata: {ownerReferences: [
      {apiVersion: batch/v1, kind: Job, name: j, uid: ju, controller: true}]})";
  add(pod_object("a", of_job, 2));
  add(pod_object("b", of_job, 2));
  settle(base::seconds(10));
  int64_t limit_when_evicted = -1;
  api.refuse = [&](const kube::Request& r) -> std::optional<Code> {
    if (r.subresource == "eviction" && limit_when_evicted < 0)
      limit_when_evicted = api.object("jobs", "default/j").get("spec", "backoffLimit").as_int();
    return std::nullopt;
  };
  add(pod_object("high", "spec: {priority: 10}", 4));
  settle(base::seconds(1));
  EXPECT_EQ(api.evictions.size(), 2U);
  EXPECT_EQ(limit_when_evicted, 2);
}

TEST_F(SchedulerGangTest, A_group_says_how_many_run_though_that_decides_nothing) {
  api.put("customresourcedefinitions", kube::Object(yaml(R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.volcano.sh}
spec: {group: scheduling.volcano.sh, names: {plural: podgroups, kind: PodGroup}, scope: Namespaced,
       versions: [{name: v1beta1, served: true, storage: true}]}
status: {conditions: [{type: Established, status: "True"}]}
)")));
  api.put("nodes", node_object("n", 4));
  api.put("podgroups", kube::Object(yaml(R"(
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: v, namespace: default}
spec: {minMember: 1}
)")));
  start();
  settle(base::seconds(2));
  const auto phase = [&] {
    return api.object("podgroups", "default/v").get("status", "phase").str();
  };
  EXPECT_EQ(phase(), "Inqueue") << "its controller waits for that before it makes the pods";
  add(pod_object("p", "metadata: {annotations: {scheduling.k8s.io/group-name: v}}", 1));
  ASSERT_EQ(api.node_of("p"), "n");
  settle(base::seconds(2));
  api.put("pods", with(api.pod("p"), "status: {phase: Running}"));
  settle(base::seconds(2));
  EXPECT_EQ(phase(), "Running");
  api.put("pods", with(api.pod("p"), "status: {phase: Succeeded}"));
  settle(base::seconds(2));
  EXPECT_EQ(phase(), "Completed");
}

TEST_F(SchedulerGangTest, A_claim_lapses_when_the_victim_never_goes) {
  api.put("nodes", node_object("n", 2));
  start();
  add(pod_object("low", "{}", 2));
  settle(base::seconds(10));
  add(pod_object("high", "spec: {priority: 10}", 2));
  settle(base::seconds(1));
  ASSERT_EQ(api.evictions.size(), 1U);
  settle(base::seconds(320));
  EXPECT_EQ(api.node_of("high"), "") << "low is still there";
  gone("low");
  EXPECT_EQ(api.node_of("high"), "n");
}

TEST_F(SchedulerGangTest, A_wall_clock_that_jumps_changes_no_decision) {
  api.put("nodes", node_object("n", 4));
  group(2);
  start();
  member("a", 2);
  member("b", 2);
  settle(base::seconds(10));
  ASSERT_EQ(api.binds.size(), 2U);
  gone("a");  // broken: there is a minute to mend it
  clock.jump = base::seconds(3600 * 24 * 365);
  add(pod_object("other", "{}", 1));
  settle(base::seconds(30));
  EXPECT_THAT(api.evictions, IsEmpty());
  clock.jump = base::seconds(-3600 * 24 * 365);
  settle(base::seconds(40));
  EXPECT_THAT(api.evictions, ElementsAre("b"));
}

TEST_F(SchedulerGangTest, After_a_restart_between_two_binds_the_gang_is_completed) {
  api.put("nodes", node_object("n", 4));
  group(3);
  start();
  int binds = 0;
  api.refuse = [&](const kube::Request& r) -> std::optional<Code> {
    if (r.subresource == "binding" && ++binds > 1) return Code::kUnavailable;
    return std::nullopt;
  };
  for (const char* name : {"a", "b", "c"})
    api.put("pods", with(pod_object(name, "spec: {schedulingGroup: {podGroupName: g}}", 1), "{}"));
  settle();
  ASSERT_EQ(api.binds.size(), 1U);
  scheduler.reset();
  settle(base::seconds(1));
  api.refuse = nullptr;
  api.put("pods", pod_object("rival", "spec: {priority: 50}", 2));
  start();
  settle(base::seconds(5));
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(api.node_of(name), "n") << name;
  EXPECT_EQ(api.node_of("rival"), "") << "what was lost comes first";
}

}  // namespace
}  // namespace tessera::scheduler
