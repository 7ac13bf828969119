#include "scheduler/core/filter.h"

#include <gtest/gtest.h>

#include <functional>

#include "scheduler/core/core_testing.h"
#include "scheduler/core/scheduler.h"

namespace tessera::scheduler::core {
namespace {

using testing::kGi;
using testing::label;
using testing::node_spec;
using testing::pod;
using testing::shared;

struct Case {
  std::string name;
  std::function<void(Cluster&, NodeSpec&, PodRequest&)> arrange;
  std::string want;  // the verdict's message; empty: the pod is placed
};

Expression expression(Cluster& c, std::string_view key, Op op,
                      std::vector<std::string_view> values = {}, int64_t bound = 0) {
  Expression e{c.names().string(key), op, {}, bound};
  for (auto value : values) e.values.push_back(c.names().string(value));
  return e;
}

Case affinity(std::string name, Op op, std::vector<std::string_view> values, int64_t bound,
              bool fits) {
  return {
      std::move(name),
      [=](Cluster& c, NodeSpec& node, PodRequest& p) {
        node.labels = {label(c, "rack", "7")};
        p.shape.required = {{{expression(c, "rack", op, values, bound)}, {}}};
      },
      fits ? "" : "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"fits", [](auto&, auto&, auto&) {}, ""},
      {"cordoned", [](auto&, auto& n, auto&) { n.unschedulable = true; },
       "0/1 nodes are available: 1 node(s) were unschedulable."},
      {"not_ready", [](auto&, auto& n, auto&) { n.ready = false; },
       "0/1 nodes are available: 1 node(s) were not ready."},
      {"tainted",
       [](Cluster& c, auto& n, auto&) {
         n.taints = {{c.names().string("team"), c.names().string("a"), Effect::kNoSchedule}};
       },
       "0/1 nodes are available: 1 node(s) had untolerated taint {team: a}."},
      {"taint_tolerated_by_value",
       [](Cluster& c, auto& n, auto& p) {
         n.taints = {{c.names().string("team"), c.names().string("a"), Effect::kNoSchedule}};
         p.shape.tolerations = {
             {c.names().string("team"), false, c.names().string("a"), Effect::kAny}};
       },
       ""},
      {"taint_tolerated_by_exists",
       [](Cluster& c, auto& n, auto& p) {
         n.taints = {{c.names().string("team"), c.names().string("a"), Effect::kNoExecute}};
         p.shape.tolerations = {{{}, true, {}, Effect::kNoExecute}};
       },
       ""},
      {"taint_of_another_effect",
       [](Cluster& c, auto& n, auto& p) {
         n.taints = {{c.names().string("team"), c.names().string("a"), Effect::kNoExecute}};
         p.shape.tolerations = {{c.names().string("team"), true, {}, Effect::kNoSchedule}};
       },
       "0/1 nodes are available: 1 node(s) had untolerated taint {team: a}."},
      {"preferred_taint_only_costs_points",
       [](Cluster& c, auto& n, auto&) {
         n.taints = {{c.names().string("old"), {}, Effect::kPreferNoSchedule}};
       },
       ""},
      {"node_selector",
       [](Cluster& c, auto&, auto& p) { p.shape.node_selector = {label(c, "zone", "b")}; },
       "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
      affinity("in", Op::kIn, {"6", "7"}, 0, true),
      affinity("not_in_list", Op::kIn, {"6"}, 0, false),
      affinity("not_in", Op::kNotIn, {"7"}, 0, false),
      affinity("exists", Op::kExists, {}, 0, true),
      affinity("does_not_exist", Op::kDoesNotExist, {}, 0, false),
      affinity("greater", Op::kGt, {}, 6, true),
      affinity("not_greater", Op::kGt, {}, 7, false),
      affinity("less", Op::kLt, {}, 8, true),
      {"match_fields_name",
       [](Cluster& c, auto&, auto& p) {
         p.shape.required = {{{}, {expression(c, "metadata.name", Op::kIn, {"other"})}}};
       },
       "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
      {"empty_term_selects_nothing",
       [](Cluster&, auto&, auto& p) { p.shape.required = {NodeTerm()}; },
       "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
      {"gpu_model", [](Cluster& c, auto&, auto& p) { p.shape.models = {c.names().model("A100")}; },
       "0/1 nodes are available: 1 node(s) didn't have an allowed GPU model."},
      {"pods", [](auto&, auto& n, auto&) { n.pods_max = 0; },
       "0/1 nodes are available: 1 Too many pods."},
      {"cpu", [](auto&, auto&, auto& p) { p.shape.cpu_milli = 96'001; },
       "0/1 nodes are available: 1 Insufficient cpu."},
      {"memory_to_the_byte", [](auto&, auto&, auto& p) { p.shape.memory_bytes = 512 * kGi + 1; },
       "0/1 nodes are available: 1 Insufficient memory."},
      {"storage", [](auto&, auto&, auto& p) { p.shape.storage_bytes = 1001 * kGi; },
       "0/1 nodes are available: 1 Insufficient ephemeral-storage."},
      {"extended_absent",
       [](Cluster& c, auto&, auto& p) {
         p.shape.extended = {{c.names().resource("nvidia.com/mig-1g.10gb"), 1}};
       },
       "0/1 nodes are available: 1 Insufficient nvidia.com/mig-1g.10gb."},
      {"extended_of_zero",
       [](Cluster& c, auto&, auto& p) {
         p.shape.extended = {{c.names().resource("nvidia.com/mig-1g.10gb"), 0}};
       },
       ""},
      {"gpus",
       [](Cluster& c, auto&, auto& p) {
         p.shape.gpu.count = 9;
         p.shape.gpu.resource = c.names().resource("nvidia.com/gpu");
       },
       "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."},
      {"other_vendor",
       [](Cluster& c, auto&, auto& p) {
         p.shape.gpu.count = 1;
         p.shape.gpu.resource = c.names().resource("amd.com/gpu");
       },
       "0/1 nodes are available: 1 Insufficient amd.com/gpu."},
      {"unhealthy",
       [](auto&, auto& n, auto& p) {
         n.gpus_unhealthy = 0xff;
         p.shape.gpu.count = 1;
       },
       "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."},
      {"share_of_each_of_nine",
       [](auto&, auto&, auto& p) {
         p.shape.gpu.count = 9;
         p.shape.gpu.milli = 100;
       },
       "0/1 nodes are available: 1 Insufficient tessera.dev/gpu-milli."},
      {"memory_share",
       [](auto&, auto&, auto& p) {
         p.shape.gpu.count = 1;
         p.shape.gpu.memory_mib = 81'920;
       },
       ""},
      {"memory_share_larger_than_a_device",
       [](auto&, auto&, auto& p) {
         p.shape.gpu.count = 1;
         p.shape.gpu.memory_mib = 81'921;
       },
       "0/1 nodes are available: 1 Insufficient tessera.dev/gpu-milli."},
      {"all_that_is_short_is_named",
       [](auto&, auto&, auto& p) {
         p.shape.cpu_milli = 100'000;
         p.shape.gpu.count = 9;
       },
       "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu."},
  };
  return all;
}

class Filter : public ::testing::TestWithParam<Case> {};

TEST_P(Filter, GivesItsReason) {
  Cluster cluster;
  NodeSpec node = node_spec(cluster, "n");
  PodRequest request = pod(1'000);
  GetParam().arrange(cluster, node, request);
  ASSERT_TRUE(check(request).has_value());
  cluster.add_node(node);
  Scheduler scheduler({});
  Decision decision = scheduler.decide(cluster, request);
  if (GetParam().want.empty()) {
    EXPECT_TRUE(std::holds_alternative<Placement>(decision));
  } else {
    ASSERT_TRUE(std::holds_alternative<Verdict>(decision));
    EXPECT_EQ(std::get<Verdict>(decision).message(cluster.names()), GetParam().want);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Filter, ::testing::ValuesIn(cases()),
                         [](const auto& case_) { return case_.param.name; });

TEST(Filter, A_pod_that_tolerates_the_cordon_goes_to_a_cordoned_node) {
  Cluster cluster;
  NodeSpec spec = node_spec(cluster, "n");
  spec.unschedulable = true;
  const NodeId node = cluster.add_node(spec);
  PodRequest request = pod(1'000, 0);
  EXPECT_EQ(check_rules(cluster, node, request.shape).reason, Reason::kUnschedulable);
  request.shape.tolerates_cordon = true;
  EXPECT_EQ(check_rules(cluster, node, request.shape).reason, Finding().reason);
}

TEST(Verdict, CountsNodesByReasonAndNamesTheNearest) {
  Cluster cluster;
  for (int i = 0; i < 3; ++i) {
    NodeSpec spec = node_spec(cluster, "full-" + std::to_string(i));
    cluster.add_pod(shared(pod(0, 8 - i)), {cluster.add_node(spec), 0, 0});
  }
  NodeSpec closed = node_spec(cluster, "closed");
  closed.unschedulable = true;
  cluster.add_node(closed);
  PodRequest request = pod(1'000, 4);
  request.shape.gpu.resource = cluster.names().resource("nvidia.com/gpu");
  Verdict verdict = explain(cluster, request);
  EXPECT_EQ(verdict.code, base::Code::kBusy);
  EXPECT_EQ(
      verdict.message(cluster.names()),
      "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient nvidia.com/gpu.");
  EXPECT_EQ(verdict.nearest_text(cluster), "nearest: full-2, short of 2 nvidia.com/gpu");
}

TEST(Verdict, SaysNeverOnlyWhereAnEmptyClusterWouldNotDo) {
  Cluster cluster;
  NodeId node = cluster.add_node(node_spec(cluster, "n"));
  cluster.add_pod(shared(pod(0, 8)), {node, 0, 0});
  EXPECT_EQ(explain(cluster, pod(0, 8)).code, base::Code::kBusy);
  EXPECT_EQ(explain(cluster, pod(0, 9)).code, base::Code::kNever);
  EXPECT_EQ(Verdict().message(cluster.names()), "no nodes available to schedule pods");
}

TEST(Preference, WeighsAffinityAndAvoidsPreferNoSchedule) {
  Cluster cluster;
  NodeSpec tainted = node_spec(cluster, "tainted");
  tainted.taints = {{cluster.names().string("old"), {}, Effect::kPreferNoSchedule}};
  cluster.add_node(tainted);
  cluster.add_node(node_spec(cluster, "plain"));
  NodeSpec liked = node_spec(cluster, "liked");
  liked.labels = {label(cluster, "disk", "ssd")};
  NodeId third = cluster.add_node(liked);
  Scheduler scheduler({});
  EXPECT_EQ(scheduler.place(cluster, pod(1'000))->node, NodeId(1));
  PodRequest request = pod(1'000);
  request.shape.preferred = {{50, {{expression(cluster, "disk", Op::kIn, {"ssd"})}, {}}}};
  EXPECT_EQ(scheduler.place(cluster, request)->node, third);
}

TEST(Request, ImpossibleValuesAreRefused) {
  PodRequest request = pod(-1);
  EXPECT_FALSE(check(request).has_value());
  request = pod(0, 1, 1001);
  EXPECT_FALSE(check(request).has_value());
  request = pod(0, kAmountMax);
  EXPECT_TRUE(check(request).has_value());
  request.shape.extended = {{ResourceId(1), 1}, {ResourceId(1), 1}};
  EXPECT_FALSE(check(request).has_value());
}

}  // namespace
}  // namespace tessera::scheduler::core
