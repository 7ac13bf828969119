// Evictions under budgets, the status of budgets, and both at once.
#include "apiserver/eviction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/controllers_fixture.h"
#include "apiserver/controllers_pdb.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using controller::plan_budget;
using json::Value;
using kube::Object;
using ::testing::HasSubstr;

constexpr const char* kRefusal =
    "Cannot evict pod as it would violate the pod's disruption budget.";

Value budget(std::string_view spec) {
  Value out = TestApi::parse(R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":
      {"name":"b","namespace":"default"}})");
  out.set("spec", TestApi::parse(spec));
  return out;
}

base::Result<Value> evict(TestApi& api, const std::string& name, std::string_view options = "{}") {
  Value body = TestApi::parse(R"({"apiVersion":"policy/v1","kind":"Eviction"})");
  body.ref("metadata", "name") = name;
  body.set("deleteOptions", TestApi::parse(options));
  auto request = TestApi::request(kube::Verb::kCreate, "pods", "default", name, body);
  request.subresource = "eviction";
  return api.reply(std::move(request)).result;
}

// Bound, running, and ready or not.
void make_pod(TestApi& api, const std::string& name, bool ready, std::string_view app = "web") {
  ASSERT_TRUE(api.create("pods", TestApi::pod(name, fmt::format(R"({{"app":"{}"}})", app))));
  ASSERT_TRUE(api.bind("default", name, "n1"));
  const std::string status = fmt::format(
      R"({{"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"{}"}}]}}}})",
      ready ? "True" : "False");
  ASSERT_TRUE(api.patch("pods", "default", name, status, kube::PatchType::kStrategic, "status"));
}

void set_budget_status(TestApi& api, std::string_view status) {
  Value patch;
  patch.set("status", TestApi::parse(status));
  ASSERT_TRUE(api.patch("poddisruptionbudgets.policy", "default", "b", patch.dump(),
                        kube::PatchType::kMerge, "status"));
}

Value budget_status(TestApi& api) {
  return (*api.get("poddisruptionbudgets.policy", "default", "b"))["status"];
}

constexpr const char* kSpec = R"({"minAvailable":1,"selector":{"matchLabels":{"app":"web"}}})";

TEST(Evictions, Without_a_budget_mark_and_delete_the_pod) {
  TestApi api;
  make_pod(api, "p", true);
  const auto done = evict(api, "p");
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ((*done)["status"].as_string(), "Success");
  const auto pod = api.get("pods", "default", "p");
  ASSERT_TRUE(pod);
  EXPECT_TRUE((*pod)["metadata"].contains("deletionTimestamp"));
  const Value& condition =
      (*pod)["status"]["conditions"].at((*pod)["status"]["conditions"].size() - 1);
  EXPECT_EQ(condition["type"].as_string(), "DisruptionTarget");
  EXPECT_EQ(condition["reason"].as_string(), "EvictionByEvictionAPI");
}

TEST(Evictions, Are_refused_with_429_where_the_budget_is_spent) {
  TestApi api;
  make_pod(api, "p", true);
  ASSERT_TRUE(api.create("poddisruptionbudgets.policy", budget(kSpec)));
  const auto early = evict(api, "p");
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kTooManyRequests);
  EXPECT_EQ(early.error().message, kRefusal);
  EXPECT_EQ(early.error().causes.at(0).message,
            "The disruption budget b is still being processed by the server.");
  set_budget_status(api, R"({"observedGeneration":1,"currentHealthy":1,"desiredHealthy":1,
      "expectedPods":1,"disruptionsAllowed":0})");
  const auto refused = evict(api, "p");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooManyRequests);
  EXPECT_EQ(refused.error().message, kRefusal);
  EXPECT_EQ(refused.error().causes.at(0).reason, "DisruptionBudget");
  EXPECT_EQ(refused.error().causes.at(0).message,
            "The disruption budget b needs 1 healthy pods and has 1 currently");
  EXPECT_FALSE((*api.get("pods", "default", "p"))["metadata"].contains("deletionTimestamp"));
}

TEST(Evictions, Take_one_disruption_each_and_note_the_pod) {
  TestApi api;
  for (const char* name : {"p", "q", "r"}) make_pod(api, name, true);
  ASSERT_TRUE(api.create("poddisruptionbudgets.policy", budget(kSpec)));
  set_budget_status(api, R"({"observedGeneration":1,"currentHealthy":3,"desiredHealthy":1,
      "expectedPods":3,"disruptionsAllowed":2})");
  EXPECT_TRUE(evict(api, "p", R"({"dryRun":["All"]})"));
  EXPECT_EQ(budget_status(api)["disruptionsAllowed"].as_int(), 2);
  EXPECT_TRUE(evict(api, "p"));
  EXPECT_TRUE(evict(api, "q"));
  EXPECT_EQ(evict(api, "r").error().code, Code::kTooManyRequests);
  EXPECT_TRUE(evict(api, "p")) << "it goes already";
  const Value status = budget_status(api);
  EXPECT_EQ(status["disruptionsAllowed"].as_int(), 0);
  EXPECT_EQ(status["disruptedPods"].size(), 2U);
  EXPECT_EQ(status["conditions"].at(0)["reason"].as_string(), "InsufficientPods");
}

TEST(Evictions, Of_pods_that_are_not_healthy_follow_the_policy) {
  TestApi api;
  make_pod(api, "p", false);
  ASSERT_TRUE(api.create("poddisruptionbudgets.policy", budget(kSpec)));
  set_budget_status(api, R"({"observedGeneration":1,"currentHealthy":0,"desiredHealthy":1,
      "expectedPods":1,"disruptionsAllowed":0})");
  EXPECT_EQ(evict(api, "p").error().code, Code::kTooManyRequests);
  ASSERT_TRUE(api.patch("poddisruptionbudgets.policy", "default", "b",
                        R"({"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}})"));
  EXPECT_TRUE(evict(api, "p"));
  EXPECT_FALSE(budget_status(api).contains("disruptedPods"));
}

TEST(Evictions, Of_pods_that_have_not_begun_need_no_budget) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("p", R"({"app":"web"})")));
  ASSERT_TRUE(api.create("poddisruptionbudgets.policy", budget(kSpec)));
  EXPECT_TRUE(evict(api, "p"));
  EXPECT_EQ(api.get("pods", "default", "p").error().code, Code::kNotFound);
}

TEST(Evictions, Two_budgets_on_one_pod_are_an_error) {
  TestApi api;
  make_pod(api, "p", true);
  ASSERT_TRUE(api.create("poddisruptionbudgets.policy", budget(kSpec)));
  Value other = budget(kSpec);
  other.ref("metadata", "name") = "c";
  ASSERT_TRUE(api.create("poddisruptionbudgets.policy", other));
  EXPECT_THAT(evict(api, "p").error().message,
              HasSubstr("This pod has more than one PodDisruptionBudget"));
}

TEST(Evictions, Keep_preconditions_and_names) {
  TestApi api;
  make_pod(api, "p", true);
  EXPECT_EQ(evict(api, "p", R"({"preconditions":{"uid":"x"}})").error().code, Code::kConflict);
  Value body =
      TestApi::parse(R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"other"}})");
  auto request = TestApi::request(kube::Verb::kCreate, "pods", "default", "p", body);
  request.subresource = "eviction";
  EXPECT_EQ(api.reply(std::move(request)).result.error().message,
            "name in URL does not match name in Eviction object");
}

// Plans of the controller.

struct Plan {
  const char* name;
  const char* spec;
  int ready;
  int pods;
  int replicas;
  const char* expected;  // "desired/expected/allowed"
};

class BudgetPlans : public ::testing::TestWithParam<Plan> {};

Object owned_pod(int index, bool ready) {
  Value pod = TestApi::pod(fmt::format("p{}", index), R"({"app":"web"})");
  pod.ref("metadata", "ownerReferences")
      .push_back(Value::object({{"uid", "u"}, {"controller", true}, {"kind", "ReplicaSet"}}));
  pod.ref("status", "conditions")
      .push_back(Value::object({{"type", "Ready"}, {"status", ready ? "True" : "False"}}));
  return Object(pod);
}

TEST_P(BudgetPlans, Follow_the_spec) {
  const Plan& row = GetParam();
  std::vector<Object> pods;
  for (int i = 0; i < row.pods; ++i) pods.push_back(owned_pod(i, i < row.ready));
  const auto plan = plan_budget(
      Object(budget(row.spec)), pods,
      [&](const Value&, std::string_view) -> base::Result<controller::OwnerScale> {
        return controller::OwnerScale{"u", row.replicas};
      },
      base::Time{});
  EXPECT_EQ(
      fmt::format("{}/{}/{}", plan.status["desiredHealthy"].as_int(),
                  plan.status["expectedPods"].as_int(), plan.status["disruptionsAllowed"].as_int()),
      row.expected);
  EXPECT_EQ(plan.status["currentHealthy"].as_int(), row.ready);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, BudgetPlans,
    ::testing::Values(Plan{"min_number", R"({"minAvailable":2})", 3, 4, 5, "2/4/1"},
                      Plan{"min_share", R"({"minAvailable":"50%"})", 3, 4, 5, "3/5/0"},
                      Plan{"max_number", R"({"maxUnavailable":1})", 4, 4, 4, "3/4/1"},
                      Plan{"max_share", R"({"maxUnavailable":"30%"})", 4, 4, 4, "2/4/2"},
                      Plan{"max_over", R"({"maxUnavailable":9})", 1, 1, 1, "0/1/1"},
                      Plan{"none_ready", R"({"maxUnavailable":1})", 0, 4, 4, "3/4/0"},
                      Plan{"no_pods", R"({"minAvailable":0})", 0, 0, 0, "0/0/0"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(BudgetPlans, A_noted_pod_is_not_counted_until_the_note_is_old) {
  Value noted = budget(R"({"minAvailable":1})");
  noted.ref("status", "disruptedPods", "p0") = "2026-01-01T00:00:00Z";
  const std::vector<Object> pods = {owned_pod(0, true), owned_pod(1, true)};
  const base::Time then{1'767'225'600'000'000'000};
  const auto early = plan_budget(Object(noted), pods, {}, then + base::seconds(60));
  EXPECT_EQ(early.status["currentHealthy"].as_int(), 1);
  EXPECT_EQ(early.status["disruptedPods"].size(), 1U);
  EXPECT_EQ(early.look_again, base::seconds(60));
  const auto late = plan_budget(Object(noted), pods, {}, then + base::seconds(121));
  EXPECT_EQ(late.status["currentHealthy"].as_int(), 2);
  EXPECT_FALSE(late.status.contains("disruptedPods"));
}

TEST(BudgetPlans, An_owner_without_scale_allows_nothing) {
  const auto plan = plan_budget(
      Object(budget(R"({"maxUnavailable":1})")), {owned_pod(0, true)},
      [](const Value&, std::string_view) -> base::Result<controller::OwnerScale> {
        return base::error(Code::kNotFound, "jobs.batch does not implement the scale subresource");
      },
      base::Time{});
  EXPECT_EQ(plan.status["disruptionsAllowed"].as_int(-1), 0);
  EXPECT_EQ(plan.status["conditions"].at(0)["reason"].as_string(), "SyncFailed");
}

// Whoever evicts as fast as it can never takes more than the budget allows, and gets through in the end.
TEST(Evictions, A_drained_deployment_keeps_what_its_budget_demands) {
  TestCluster cluster;
  TestApi& api = cluster.api;
  ASSERT_TRUE(api.create("poddisruptionbudgets.policy", budget(R"({"minAvailable":3,
      "selector":{"matchLabels":{"app":"web"}}})")));
  ASSERT_TRUE(api.create("deployments.apps", TestCluster::deployment("web", 4)));
  cluster.run(base::seconds(20));
  const Value before = budget_status(api);
  ASSERT_EQ(before["disruptionsAllowed"].as_int(), 1) << before.dump();
  std::set<std::string> old;
  for (const Value& pod : cluster.list("pods")) old.insert(pod["metadata"]["name"].str());
  cluster.check = [&] {
    for (const std::string& name : old) (void)evict(api, name);
    int ready = 0;
    for (const Value& pod : cluster.list("pods")) {
      ready += pod_is_ready(pod) && !pod["metadata"].contains("deletionTimestamp");
    }
    EXPECT_GE(ready, 3);
  };
  cluster.run(base::seconds(60));
  for (const Value& pod : cluster.list("pods")) {
    EXPECT_FALSE(old.contains(pod["metadata"]["name"].str()));
  }
}

}  // namespace
}  // namespace tessera::apiserver
