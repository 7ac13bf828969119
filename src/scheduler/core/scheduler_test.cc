#include "scheduler/core/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "scheduler/core/core_testing.h"
#include "scheduler/core/search.h"

namespace tessera::scheduler::core {
namespace {

using testing::node_spec;
using testing::pod;
using testing::shared;

TypicalMix some_mix(Cluster& cluster) {
  ArrivalCounts counts;
  auto add = [&](Shape shape, int times) {
    for (int i = 0; i < times; ++i) counts.add(shape);
  };
  add(pod(4'000, 1, 250).shape, 30);
  add(pod(8'000, 1, 470).shape, 20);
  add(pod(12'000, 1).shape, 40);
  add(pod(48'000, 4).shape, 5);
  add(pod(2'000).shape, 10);
  Shape special = pod(6'000, 1).shape;
  special.models = {cluster.names().model("A100")};
  add(special, 12);
  return counts.mix();
}

// Random nodes, pods, cordons, removals; at each step the cached and the uncached scheduler must choose alike.
class Oracle : public ::testing::TestWithParam<Policy> {
 protected:
  NodeSpec random_node() {
    NodeSpec spec = node_spec(cluster_, "n" + std::to_string(++named_), 0);
    constexpr int kGpus[] = {0, 1, 2, 4, 8, 16};
    spec.gpus = kGpus[random_.below(6)];
    spec.cpu_milli = static_cast<int64_t>(8'000 * (1 + random_.below(16)));
    if (random_.chance(0.3)) spec.model = cluster_.names().model("A100");
    if (random_.chance(0.2)) {
      spec.taints = {{cluster_.names().string("t"),
                      {},
                      random_.chance(0.5) ? Effect::kNoSchedule : Effect::kPreferNoSchedule}};
    }
    return spec;
  }

  PodRequest random_pod() {
    constexpr int32_t kMilli[] = {100, 250, 470, 500, 810};
    PodRequest request = pod(static_cast<int64_t>(1'000 * random_.below(12)));
    switch (random_.below(6)) {
      case 0:
        break;
      case 1:
      case 2:
        request = pod(request.shape.cpu_milli, 1, kMilli[random_.below(5)]);
        break;
      case 3:
        request = pod(request.shape.cpu_milli, 1);
        break;
      case 4:
        request = pod(request.shape.cpu_milli, int64_t{2} << random_.below(3));
        break;
      case 5:
        request = pod(request.shape.cpu_milli, 2, 500);
        request.shape.gpu.memory_mib = random_.chance(0.5) ? 30'000 : 0;
        break;
    }
    if (random_.chance(0.2)) request.shape.models = {cluster_.names().model("A100")};
    if (random_.chance(0.3))
      request.shape.tolerations = {{cluster_.names().string("t"), true, {}, Effect::kAny}};
    return request;
  }

  void change_nodes() {
    if (nodes_.size() < 3 || random_.chance(0.4)) {
      nodes_.push_back(cluster_.add_node(random_node()));
      return;
    }
    size_t at = random_.below(nodes_.size());
    if (random_.chance(0.3)) {
      cluster_.remove_node(nodes_[at]);
      nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    }
    NodeSpec spec = cluster_.spec(nodes_[at]);
    spec.unschedulable = !spec.unschedulable;
    if (random_.chance(0.3)) spec.gpus_unhealthy = static_cast<uint32_t>(random_.below(256));
    cluster_.update_node(nodes_[at], spec);
  }

  base::Random random_{11};
  Cluster cluster_;
  std::vector<NodeId> nodes_;
  std::vector<PodId> pods_;
  int named_ = 0;
};

TEST_P(Oracle, CachedAndUncachedChooseAlike) {
  TypicalMix mix = some_mix(cluster_);
  Scheduler cached({.policy = GetParam(), .mix = mix, .seed = 5});
  Scheduler plain({.policy = GetParam(), .mix = mix, .seed = 5, .cached = false});
  int placed = 0;
  for (int step = 0; step < 3'000; ++step) {
    if (step < 20 || random_.chance(0.05)) change_nodes();
    if (!pods_.empty() && random_.chance(0.3)) {
      size_t at = random_.below(pods_.size());
      cluster_.remove_pod(pods_[at]);
      pods_.erase(pods_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    PodRequest request = random_pod();
    auto one = cached.place(cluster_, request);
    auto two = plain.place(cluster_, request);
    ASSERT_EQ(one, two) << "step " << step;
    if (!one) continue;
    ++placed;
    ASSERT_EQ(__builtin_popcount(one->devices), request.shape.gpu.count);
    pods_.push_back(cluster_.add_pod(shared(request), *one));
    for (int16_t free : cluster_.load(one->node).gpu_free) ASSERT_GE(free, 0);
  }
  EXPECT_GT(placed, 500);
}

INSTANTIATE_TEST_SUITE_P(AllPolicies, Oracle, ::testing::ValuesIn(all_policies()),
                         [](const auto& p) { return std::string(name_of(p.param)); });

TEST(FragMeter, AgreesWithTheDefinition) {
  base::Random random(2);
  Cluster cluster;
  FragMeter meter(some_mix(cluster));
  constexpr int kFree[] = {0, 100, 190, 250, 469, 470, 999, 1000};
  for (int i = 0; i < 5'000; ++i) {
    NodeLoad node;
    node.gpus = static_cast<uint8_t>(random.below(kGpusPerNodeMax + 1));
    node.cpu_free = static_cast<int64_t>(random.below(60'000));
    node.model = ModelId(static_cast<int32_t>(random.below(3)));
    for (size_t g = 0; g < node.gpus; ++g) {
      node.gpu_free[g] = static_cast<int16_t>(kFree[random.below(8)]);
      node.gpu_state += gpu_state_of(node.gpu_free[g]);
    }
    ASSERT_EQ(meter.of(node),
              meter.compute(node.model, node.cpu_free, std::span(node.gpu_free.data(), node.gpus)));
  }
}

// The smallest saving counts: the integer steps must give what the formula gives.
TEST(Scorer, FgdPointsAreTheQuantisedSigmoid) {
  ArrivalCounts counts;
  counts.add(pod(0, 1, 500).shape);
  Scorer scorer(Policy::kFgd, counts.mix());
  Cluster cluster;
  NodeId node = cluster.add_node(node_spec(cluster, "n", 1));
  // 1000 idle, all usable by a 500-milli pod. Taking 600 leaves 400 that no typical pod can use: dF = -0.4 GPU.
  EXPECT_EQ(scorer.score(cluster.load(node), node, pod(0, 1, 600).shape),
            static_cast<int32_t>(100.0 / (1.0 + std::exp(0.4))));
  EXPECT_EQ(scorer.score(cluster.load(node), node, pod(0, 1, 500).shape), 50);
}

TEST(Scorer, FgdFillsTheHoleThatNobodyElseCanUse) {
  Cluster cluster;
  NodeId node = cluster.add_node(node_spec(cluster, "n", 2));
  cluster.add_pod(shared(pod(0, 1, 810)), {node, 0b10, 810});
  Scheduler scheduler({.policy = Policy::kFgd, .mix = some_mix(cluster)});
  EXPECT_EQ(scheduler.place(cluster, pod(0, 1, 190))->devices, 0b10U);
}

TEST(Scorer, PoliciesScoreAsPublished) {
  Cluster cluster;
  NodeSpec spec = node_spec(cluster, "n", 8);
  spec.cpu_milli = 64'000;
  NodeId idle = cluster.add_node(spec);
  NodeId used = cluster.add_node(spec);
  cluster.add_pod(shared(pod(0, 1, 500)), {used, 0b1, 500});
  auto score = [&](Policy policy, NodeId node, const PodRequest& request) {
    return Scorer(policy, {}).score(cluster.load(node), node, request.shape);
  };
  // 100 (1 - (0.5 * 0.125 + 1 * 0.125) / 2)
  EXPECT_EQ(score(Policy::kDotProd, idle, pod(16'000, 1)), 90);
  // 100 (1 - (48/128 + 7/8) / 2)
  EXPECT_EQ(score(Policy::kBestFit, idle, pod(16'000, 1)), 37);
  EXPECT_EQ(score(Policy::kGpuPacking, idle, pod(0, 1)), 25);
  EXPECT_EQ(score(Policy::kGpuPacking, used, pod(0, 2)), 48);
  EXPECT_EQ(score(Policy::kGpuPacking, used, pod(0, 1, 500)), 95);
  EXPECT_EQ(score(Policy::kGpuPacking, used, pod(0)), 0);
  EXPECT_EQ(score(Policy::kGpuClustering, idle, pod(0, 1)), 25);
  EXPECT_EQ(score(Policy::kGpuClustering, used, pod(0, 1, 300)), 76);
  EXPECT_EQ(score(Policy::kGpuClustering, used, pod(0, 1)), 1);
  EXPECT_EQ(score(Policy::kGpuClustering, used, pod(0)), 0);
}

TEST(Scorer, SharesGoToTheFullestDeviceThatFits) {
  Cluster cluster;
  NodeId node = cluster.add_node(node_spec(cluster, "n", 4));
  cluster.add_pod(shared(pod(0, 1, 300)), {node, 0b0010, 300});
  cluster.add_pod(shared(pod(0, 1, 600)), {node, 0b0100, 600});
  EXPECT_EQ(tightest_fit(cluster.load(node), 1, 400), 0b0100U);
  EXPECT_EQ(tightest_fit(cluster.load(node), 1, 500), 0b0010U);
  EXPECT_EQ(tightest_fit(cluster.load(node), 2, 500), 0b0011U);
  EXPECT_EQ(lowest_idle(cluster.load(node), 2), 0b1001U);
}

TEST(Policy, NamesAreReadBackAndUnknownOnesListTheRest) {
  for (Policy policy : all_policies()) EXPECT_EQ(*parse_policy(name_of(policy)), policy);
  EXPECT_EQ(
      parse_policy("FGD").error().message,
      "unknown policy \"FGD\": choose from random, dotprod, clustering, packing, bestfit, fgd");
}

TEST(ArrivalCounts, TheMixCoversNinetyFivePercentInStableOrder) {
  ArrivalCounts counts;
  for (int i = 0; i < 90; ++i) counts.add(pod(1'000, 1).shape);
  for (int i = 0; i < 5; ++i) counts.add(pod(2'000, 1).shape);
  for (int i = 0; i < 5; ++i) counts.add(pod(3'000, 1).shape);
  TypicalMix mix = counts.mix();
  ASSERT_EQ(mix.pods.size(), 2U);
  EXPECT_EQ(mix.weight_total, 95);
  EXPECT_EQ(mix.pods[1].cpu_milli, 3'000) << "the larger tuple comes first among equals";
  counts.decay();
  EXPECT_EQ(counts.arrivals(), 49);
}

TEST(Scheduler, LearnsTheMixFromArrivals) {
  Cluster cluster;
  cluster.add_node(node_spec(cluster, "n"));
  Scheduler scheduler({.policy = Policy::kFgd});
  EXPECT_EQ(scheduler.meter().weight_total(), 1);
  for (int i = 0; i < 64; ++i) scheduler.observe(pod(1'000, 1, 250).shape);
  EXPECT_EQ(scheduler.meter().typical().pods.front().gpu_milli, 250);
  EXPECT_TRUE(scheduler.place(cluster, pod(1'000, 1, 250)));
}

TEST(Search, CountsAsUpperBoundDoes) {
  base::Random random(4);
  for (size_t size = 0; size < 40; ++size) {
    std::vector<int64_t> values;
    for (size_t i = 0; i < size; ++i) values.push_back(static_cast<int64_t>(random.below(30)));
    std::sort(values.begin(), values.end());
    for (int64_t x = -1; x < 32; ++x) {
      auto above = std::upper_bound(values.begin(), values.end(), x);
      ASSERT_EQ(count_not_above(values, x), static_cast<size_t>(above - values.begin()));
    }
  }
}

TEST(ShapeCache, StaysWithinItsBytes) {
  Cluster cluster;
  for (int n = 0; n < 100; ++n) cluster.add_node(node_spec(cluster, "n" + std::to_string(n)));
  Scorer scorer(Policy::kBestFit, {});
  ShapeCache cache(20'000);
  for (int64_t cpu = 1; cpu < 200; ++cpu) {
    EXPECT_EQ(cache.get(cluster, pod(cpu).shape, scorer).tree.feasible(), 100);
  }
  EXPECT_LT(cache.size(), 15U);
}

}  // namespace
}  // namespace tessera::scheduler::core
