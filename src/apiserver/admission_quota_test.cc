// Quotas through the API: cases C21 and C13, races, and random writes against a count made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "apiserver/controllers_fixture.h"
#include "apiserver/quota.h"
#include "base/file.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using ::testing::AllOf;
using ::testing::HasSubstr;

void make_namespace(TestApi& api, std::string_view name) {
  Value ns = TestApi::parse(R"({"apiVersion":"v1","kind":"Namespace","metadata":{}})");
  ns.ref("metadata", "name") = name;
  ASSERT_TRUE(api.create("namespaces", ns));
}

Value quota(std::string_view ns, std::string_view name, std::string_view spec) {
  Value out = TestApi::parse(R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{}})");
  out.ref("metadata", "namespace") = ns;
  out.ref("metadata", "name") = name;
  out.set("spec", TestApi::parse(spec));
  return out;
}

Value pod(std::string_view ns, std::string_view name, std::string_view limits = "{}") {
  Value out = TestApi::pod(name);
  out.ref("metadata", "namespace") = ns;
  out.ref("spec", "containers").ref_at(0).ref("resources", "limits") = TestApi::parse(limits);
  return out;
}

std::string used(TestApi& api, std::string ns, std::string name) {
  const auto found = api.get("resourcequotas", std::move(ns), std::move(name));
  return found ? (*found)["status"]["used"].dump() : found.error().message;
}

constexpr const char* kGpu = R"({"nvidia.com/gpu":1})";

TEST(C21, Only_requests_of_a_gpu_are_limited) {
  TestCluster cluster;
  TestApi& api = cluster.api;
  cluster.node_works = false;
  make_namespace(api, "team-a");
  make_namespace(api, "team-b");
  ASSERT_TRUE(api.create("resourcequotas", quota("team-a", "gpus", R"({"hard":{
      "requests.nvidia.com/gpu":"4","requests.nvidia.com/mig-1g.5gb":"2"}})")));
  ASSERT_TRUE(api.create("resourcequotas", quota("team-b", "no-effect", R"({"hard":{
      "nvidia.com/gpu":"1","limits.nvidia.com/gpu":"1"}})")));
  cluster.run(base::seconds(1));

  EXPECT_TRUE(api.create("pods", pod("team-a", "a", R"({"nvidia.com/gpu":2})")));
  EXPECT_TRUE(api.create("pods", pod("team-a", "b", R"({"nvidia.com/gpu":2})")));
  EXPECT_EQ(used(api, "team-a", "gpus"),
            R"({"requests.nvidia.com/gpu":"4","requests.nvidia.com/mig-1g.5gb":"0"})");

  const auto c = api.create("pods", pod("team-a", "c", kGpu));
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, Code::kForbidden);
  EXPECT_EQ(c.error().message,
            "pods \"c\" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, "
            "used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4");
  EXPECT_EQ(api.get("pods", "team-a", "c").error().code, Code::kNotFound);

  EXPECT_TRUE(api.create("pods", pod("team-a", "d")));
  EXPECT_TRUE(api.create("pods", pod("team-a", "e", R"({"nvidia.com/mig-1g.5gb":2})")));
  const auto f = api.create("pods", pod("team-a", "f", R"({"nvidia.com/mig-1g.5gb":1})"));
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, Code::kForbidden);
  EXPECT_EQ(used(api, "team-a", "gpus"),
            R"({"requests.nvidia.com/gpu":"4","requests.nvidia.com/mig-1g.5gb":"2"})");

  EXPECT_TRUE(api.create("pods", pod("team-b", "g", R"({"nvidia.com/gpu":3})")));
  cluster.run(base::seconds(20));
  EXPECT_EQ(used(api, "team-b", "no-effect"), "null");
}

TEST(C21, A_deployment_waits_at_the_quota_and_goes_on_when_it_is_raised) {
  TestCluster cluster;
  TestApi& api = cluster.api;
  make_namespace(api, "team-c");
  ASSERT_TRUE(api.create("resourcequotas",
                         quota("team-c", "gpus", R"({"hard":{"requests.nvidia.com/gpu":"4"}})")));
  cluster.run(base::seconds(1));
  Value deployment = TestCluster::deployment("web", 3);
  deployment.ref("metadata", "namespace") = "team-c";
  Value& containers = deployment.ref("spec", "template", "spec").ref("containers");
  containers.ref_at(0).ref("resources", "limits") = TestApi::parse(R"({"nvidia.com/gpu":2})");
  ASSERT_TRUE(api.create("deployments.apps", deployment));
  cluster.run(base::seconds(10));
  EXPECT_EQ(cluster.list("pods", "team-c").size(), 2U);
  bool told = false;
  for (const Value& event : cluster.list("events", "team-c")) {
    told = told || (event["reason"].as_string() == "FailedCreate" &&
                    event["involvedObject"]["kind"].as_string() == "ReplicaSet" &&
                    event["message"].str().find("exceeded quota: gpus") != std::string::npos);
  }
  EXPECT_TRUE(told);
  ASSERT_TRUE(api.patch("resourcequotas", "team-c", "gpus",
                        R"({"spec":{"hard":{"requests.nvidia.com/gpu":"6"}}})"));
  cluster.run(base::seconds(90));
  EXPECT_EQ(cluster.list("pods", "team-c").size(), 3U);
  EXPECT_EQ(used(api, "team-c", "gpus"), R"({"requests.nvidia.com/gpu":"6"})");
}

// Many threads at one quota; waits until all have been answered.
TEST(C21, Ten_pods_at_the_same_instant_get_four_gpus) {
  base::SystemClock clock;
  base::TempDir dir;
  base::LoopThread server("server");
  Api::Options options;
  options.data_dir = dir.path();
  options.clock = &clock;
  options.executor = &server;
  auto api = std::move(*Api::open(std::move(options)));
  std::mutex mutex;
  std::condition_variable changed;
  int answered = 0;
  int accepted = 0;
  const auto create = [&](const std::string& resource, const Value& object) {
    api->call(system_caller("test"),
              TestApi::request(kube::Verb::kCreate, resource, "default", {}, object),
              [&](const ApiReply& reply) {
                const std::lock_guard lock(mutex);
                ++answered;
                if (reply.result) {
                  ++accepted;
                } else {
                  EXPECT_THAT(reply.result.error().message, HasSubstr("exceeded quota: gpus"));
                }
                changed.notify_all();
              });
  };
  const auto wait_for = [&](int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return answered == count; });
  };
  create("resourcequotas", quota("default", "gpus", R"({"hard":{"requests.nvidia.com/gpu":"4"}})"));
  wait_for(1);
  std::vector<std::unique_ptr<base::LoopThread>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<base::LoopThread>("client"));
    clients.back()->post([&, i] { create("pods", pod("default", fmt::format("p{}", i), kGpu)); });
  }
  wait_for(11);
  EXPECT_EQ(accepted, 1 + 4);
  std::string now;
  api->call(system_caller("test"),
            TestApi::request(kube::Verb::kGet, "resourcequotas", "default", "gpus"),
            [&](const ApiReply& reply) { now = (*reply.result)["status"]["used"].dump(); });
  EXPECT_EQ(now, R"({"requests.nvidia.com/gpu":"4"})");
  for (auto& client : clients) client->stop();
  api.reset();
  server.stop();
}

struct Containers {
  const char* name;
  const char* text;  // as in case C13: I ordinary, S sidecar, A app container
  int needs;
};

class C13Quota : public ::testing::TestWithParam<Containers> {};

TEST_P(C13Quota, Used_is_what_the_scheduler_reserves) {
  TestApi api;
  ASSERT_TRUE(api.create("resourcequotas",
                         quota("default", "gpus", R"({"hard":{"requests.nvidia.com/gpu":"9"}})")));
  Value object = TestApi::pod("p");
  object.ref("spec").erase("containers");
  int count = 0;
  for (const char* at = GetParam().text; *at != '\0'; at += at[2] == ' ' ? 3 : 2) {
    Value container = Value::object({{"name", fmt::format("c{}", count++)}, {"image", "x:1"}});
    if (*at == 'S') container.set("restartPolicy", "Always");
    if (at[1] != '0') container.ref("resources", "limits").set("nvidia.com/gpu", at[1] - '0');
    object.ref("spec").ref(*at == 'A' ? "containers" : "initContainers").push_back(container);
  }
  const auto made = api.create("pods", object);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(used(api, "default", "gpus"),
            fmt::format(R"({{"requests.nvidia.com/gpu":"{}"}})", GetParam().needs));
}

INSTANTIATE_TEST_SUITE_P(
    Pods, C13Quota,
    ::testing::Values(Containers{"p1", "I4 A1 A1", 4}, Containers{"p2", "I1 I2 A1", 2},
                      Containers{"p3", "S1 A2", 3}, Containers{"p4", "I1 S1 I2 A1", 3},
                      Containers{"p5", "I2 S1 A1", 2}, Containers{"p6", "A1 A1", 2},
                      Containers{"p7", "S1 S1 I1 A0", 3}, Containers{"p8", "I3 A0", 3}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Quotas, A_dry_run_is_judged_and_uses_nothing) {
  TestApi api;
  ASSERT_TRUE(api.create("resourcequotas", quota("default", "q", R"({"hard":{"pods":"1"}})")));
  EXPECT_TRUE(api.create("pods", pod("default", "a"), {{"dryRun", "All"}}));
  EXPECT_TRUE(api.create("pods", pod("default", "a")));
  EXPECT_EQ(api.create("pods", pod("default", "b"), {{"dryRun", "All"}}).error().code,
            Code::kForbidden);
}

TEST(Quotas, What_a_finished_or_deleted_pod_held_is_free_at_once) {
  TestApi api;
  ASSERT_TRUE(api.create("resourcequotas", quota("default", "q", R"({"hard":{"pods":"1"}})")));
  ASSERT_TRUE(api.create("pods", pod("default", "a")));
  ASSERT_TRUE(api.patch("pods", "default", "a", R"({"status":{"phase":"Succeeded"}})",
                        kube::PatchType::kMerge, "status"));
  ASSERT_TRUE(api.create("pods", pod("default", "b")));
  ASSERT_TRUE(api.remove("pods", "default", "b"));
  EXPECT_TRUE(api.create("pods", pod("default", "c")));
  EXPECT_EQ(api.create("pods", pod("default", "d")).error().code, Code::kForbidden);
}

TEST(Quotas, A_taken_name_is_a_conflict_of_names_and_costs_nothing) {
  TestApi api;
  ASSERT_TRUE(api.create("resourcequotas", quota("default", "q", R"({"hard":{"pods":"2"}})")));
  ASSERT_TRUE(api.create("pods", pod("default", "a")));
  EXPECT_EQ(api.create("pods", pod("default", "a")).error().code, Code::kAlreadyExists);
  EXPECT_EQ(used(api, "default", "q"), R"({"pods":"1"})");
}

TEST(Quotas, Compute_must_be_named_where_it_is_limited) {
  TestApi api;
  ASSERT_TRUE(
      api.create("resourcequotas", quota("default", "q", R"({"hard":{"limits.cpu":"2"}})")));
  EXPECT_EQ(api.create("pods", pod("default", "a")).error().message,
            "pods \"a\" is forbidden: failed quota: q: must specify limits.cpu for: c0");
  EXPECT_TRUE(api.create("pods", pod("default", "a", R"({"cpu":"1500m"})")));
  EXPECT_THAT(api.create("pods", pod("default", "b", R"({"cpu":1})")).error().message,
              HasSubstr("requested: limits.cpu=1, used: limits.cpu=1500m, limited: limits.cpu=2"));
}

TEST(Quotas, Objects_are_counted_by_both_their_names) {
  TestApi api;
  ASSERT_TRUE(
      api.create("resourcequotas", quota("default", "q", R"({"hard":{"configmaps":"1"}})")));
  ASSERT_TRUE(
      api.create("resourcequotas", quota("default", "r", R"({"hard":{"count/jobs.batch":"0"}})")));
  EXPECT_TRUE(api.create("configmaps", TestApi::config_map("a", "1")));
  EXPECT_THAT(api.create("configmaps", TestApi::config_map("b", "1")).error().message,
              AllOf(HasSubstr("configmaps \"b\" is forbidden"), HasSubstr("configmaps=1")));
  EXPECT_THAT(api.create("jobs.batch", TestCluster::job("j", 1, 1)).error().message,
              HasSubstr("requested: count/jobs.batch=1, used: count/jobs.batch=0"));
}

TEST(Quotas, A_service_that_becomes_a_node_port_is_judged_again) {
  TestApi api;
  ASSERT_TRUE(api.create("resourcequotas",
                         quota("default", "q", R"({"hard":{"services.nodeports":"0"}})")));
  const Value service = TestApi::parse(R"({"apiVersion":"v1","kind":"Service","metadata":
      {"name":"s","namespace":"default"},"spec":{"ports":[{"port":80}]}})");
  ASSERT_TRUE(api.create("services", service));
  EXPECT_THAT(
      api.patch("services", "default", "s", R"({"spec":{"type":"NodePort"}})").error().message,
      HasSubstr("exceeded quota: q"));
}

TEST(Quotas, The_controller_shows_the_limits_and_lets_go_of_what_was_deleted) {
  TestCluster cluster;
  TestApi& api = cluster.api;
  cluster.node_works = false;
  ASSERT_TRUE(api.create("pods", pod("default", "a", kGpu)));
  ASSERT_TRUE(api.create("resourcequotas", quota("default", "q", R"({"hard":
      {"requests.nvidia.com/gpu":"4","pods":"5","limits.nvidia.com/gpu":"1"}})")));
  cluster.run(base::seconds(1));
  EXPECT_EQ(used(api, "default", "q"), R"({"pods":"1","requests.nvidia.com/gpu":"1"})");
  EXPECT_EQ(cluster.get("resourcequotas", "q")["status"]["hard"].dump(),
            R"({"limits.nvidia.com/gpu":"1","pods":"5","requests.nvidia.com/gpu":"4"})");
  ASSERT_TRUE(api.remove("pods", "default", "a"));
  cluster.run(base::seconds(1));
  EXPECT_EQ(used(api, "default", "q"), R"({"pods":"0","requests.nvidia.com/gpu":"0"})");
}

// Random creates, ends, deletes and changes of limits, with the controllers on a bad network: at no time do pods use more
// than what was allowed when they came, and at rest the status is the count made by hand.
class QuotaProperty : public ::testing::TestWithParam<uint64_t> {};

TEST_P(QuotaProperty, Never_exceeded_and_exact_at_rest) {
  TestCluster cluster(GetParam(), 0.05);
  TestApi& api = cluster.api;
  cluster.node_works = false;
  base::Random random(GetParam());
  int64_t hard = 4;
  ASSERT_TRUE(api.create("resourcequotas",
                         quota("default", "q", R"({"hard":{"requests.nvidia.com/gpu":"4"}})")));
  const auto in_use = [&] {
    int64_t sum = 0;
    for (const Value& each : cluster.list("pods")) {
      const Value& asks = each["spec"]["containers"].at(0)["resources"]["limits"]["nvidia.com/gpu"];
      const bool counts = each["status"]["phase"].as_string() == "Pending";
      if (counts && asks.is_string()) sum += std::stoll(asks.str());
    }
    return sum;
  };
  for (int step = 0; step < 150; ++step) {
    const std::string name = fmt::format("p{}", random.below(12));
    switch (random.below(6)) {
      case 0:
      case 1:
      case 2: {
        const int64_t before = in_use();
        const auto asks = static_cast<int64_t>(random.below(3));
        const bool fresh = !api.get("pods", "default", name);
        const bool made = !!api.create(
            "pods", pod("default", name, fmt::format(R"({{"nvidia.com/gpu":{}}})", asks)));
        EXPECT_TRUE(!fresh || made == (asks == 0 || before + asks <= hard)) << "step " << step;
        break;
      }
      case 3:
        (void)api.remove("pods", "default", name);
        break;
      case 4:
        (void)api.patch("pods", "default", name, R"({"status":{"phase":"Failed"}})",
                        kube::PatchType::kMerge, "status");
        break;
      default:
        hard = 2 + static_cast<int64_t>(random.below(5));
        EXPECT_TRUE(api.patch(
            "resourcequotas", "default", "q",
            fmt::format(R"({{"spec":{{"hard":{{"requests.nvidia.com/gpu":"{}"}}}}}})", hard)));
    }
    cluster.run(base::millis(static_cast<int64_t>(random.below(300))), base::millis(50));
  }
  cluster.flaky.faults = 0;
  cluster.run(base::seconds(90), base::seconds(1));
  EXPECT_EQ(used(api, "default", "q"),
            fmt::format(R"({{"requests.nvidia.com/gpu":"{}"}})", in_use()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, QuotaProperty, ::testing::Range<uint64_t>(1, 9));

}  // namespace
}  // namespace tessera::apiserver
