// A wall clock that jumps: the API answers on, its times stay readable, and its revisions go up.
#include <gtest/gtest.h>

#include "apiserver/controllers_fixture.h"
#include "base/file.h"

namespace tessera::apiserver {
namespace {

using json::Value;

class JumpingClock : public base::Clock {
 public:
  base::Time now() const override { return wall; }
  base::Duration monotonic() const override { return passed; }
  base::Time wall{1'767'225'600'000'000'000};
  base::Duration passed;
};

struct Bench {
  JumpingClock clock;
  base::ManualLoop loop;
  std::unique_ptr<Api> api;

  explicit Bench(const std::string& dir = {}) {
    Api::Options options;
    options.data_dir = dir;
    options.clock = &clock;
    options.executor = &loop;
    api = std::move(*Api::open(std::move(options)));
  }
  ~Bench() {
    api.reset();
    loop.run_ready();
  }
  base::Result<Value> call(kube::Request request) {
    std::optional<ApiReply> out;
    api->call(system_caller("test"), std::move(request),
              [&](ApiReply reply) { out = std::move(reply); });
    loop.run_ready();
    return out ? std::move(out->result)
               : base::Result<Value>(base::error(base::Code::kInternal, "no answer"));
  }
};

class ClockJumps : public ::testing::TestWithParam<int64_t> {};

TEST_P(ClockJumps, Are_survived_and_leave_readable_times) {
  Bench bench;
  const uint64_t before = bench.api->revision();
  bench.clock.wall = base::Time{GetParam()};
  const auto made =
      bench.call(TestApi::request(kube::Verb::kCreate, "pods", "default", {}, TestApi::pod("p")));
  ASSERT_TRUE(made) << made.error().message;
  const Value& created = (*made)["metadata"]["creationTimestamp"];
  EXPECT_TRUE(base::parse_rfc3339(created.as_string())) << created.dump();
  Value binding = Value::object({{"apiVersion", "v1"}, {"kind", "Binding"}});
  binding.ref("target") = Value::object({{"kind", "Node"}, {"name", "n1"}});
  auto bind = TestApi::request(kube::Verb::kCreate, "pods", "default", "p", binding);
  bind.subresource = "binding";
  ASSERT_TRUE(bench.call(std::move(bind)));
  const auto gone = bench.call(TestApi::request(kube::Verb::kDelete, "pods", "default", "p"));
  ASSERT_TRUE(gone) << gone.error().message;
  const Value& deleted = (*gone)["metadata"]["deletionTimestamp"];
  EXPECT_TRUE(base::parse_rfc3339(deleted.as_string())) << deleted.dump();
  EXPECT_GT(bench.api->revision(), before);
}

INSTANTIATE_TEST_SUITE_P(Moments, ClockJumps,
                         ::testing::Values(int64_t{0}, int64_t{-1'000'000'000}, INT64_MIN / 2,
                                           int64_t{1'000'000'000'000'000'000}, INT64_MAX / 2,
                                           int64_t{9'000'000'000'000'000'000}));

TEST(ClockJumpsBack, The_store_goes_on_counting_over_a_restart) {
  const base::TempDir dir;
  uint64_t revision = 0;
  {
    Bench bench(dir.path());
    ASSERT_TRUE(bench.call(TestApi::request(kube::Verb::kCreate, "configmaps", "default", {},
                                            TestApi::config_map("a", "1"))));
    revision = bench.api->revision();
  }
  Bench bench(dir.path());
  bench.clock.wall = bench.clock.wall - base::seconds(100 * 86400);
  EXPECT_GE(bench.api->revision(), revision);
  ASSERT_TRUE(bench.call(TestApi::request(kube::Verb::kCreate, "configmaps", "default", {},
                                          TestApi::config_map("b", "1"))));
  EXPECT_GT(bench.api->revision(), revision);
}

// A node that renews its lease stays, whatever the clock shows in between.
TEST(ClockJumpsBack, Pods_on_a_living_node_stay) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.api.create("deployments.apps", TestCluster::deployment("web", 2)));
  const auto renew = [&] {
    Value lease = TestApi::parse(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
        "metadata":{"name":"n1","namespace":"kube-node-lease"},"spec":{}})");
    lease.ref("spec", "renewTime") = base::to_rfc3339_micro(cluster.api.clock().now());
    ASSERT_TRUE(cluster.api.update("leases.coordination.k8s.io", lease));
  };
  cluster.check = renew;
  cluster.run(base::seconds(20));
  std::string before;
  for (const Value& pod : cluster.list("pods")) before += pod["metadata"]["name"].str() + " ";
  cluster.api.clock().advance(base::seconds(-86400));
  cluster.run(base::seconds(30));
  std::string after;
  for (const Value& pod : cluster.list("pods")) after += pod["metadata"]["name"].str() + " ";
  EXPECT_EQ(after, before);
  EXPECT_TRUE(cluster.get("nodes", "n1", "")["spec"]["taints"].empty());
}

}  // namespace
}  // namespace tessera::apiserver
