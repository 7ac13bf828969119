#include "scheduler/core/cluster.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "scheduler/core/core_testing.h"
#include "scheduler/core/scheduler.h"
#include "scheduler/core/txn.h"

namespace tessera::scheduler::core {
namespace {

using testing::kGi;
using testing::node_spec;
using testing::pod;
using testing::shared;

TEST(Cluster, CountsWhatIsLeftOfANode) {
  Cluster cluster;
  NodeId node = cluster.add_node(node_spec(cluster, "n", 2));
  PodId whole = cluster.add_pod(shared(pod(4'000, 1)), {node, 1, 1000});
  PodId share = cluster.add_pod(shared(pod(2'000, 1, 300)), {node, 2, 300});
  EXPECT_EQ(cluster.load(node).cpu_free, 90'000);
  EXPECT_EQ(cluster.load(node).memory_free, 510 * kGi);
  EXPECT_EQ(cluster.load(node).gpu_free[0], 0);
  EXPECT_EQ(cluster.load(node).gpu_free[1], 700);
  EXPECT_EQ(cluster.load(node).gpu_free_total, 700);
  EXPECT_EQ(cluster.load(node).gpu_idle, 0U);
  EXPECT_EQ(cluster.load(node).classes, 0b11U);
  cluster.remove_pod(whole);
  cluster.remove_pod(share);
  EXPECT_EQ(cluster.load(node).gpu_free_total, 2000);
  EXPECT_EQ(cluster.load(node).classes, 0U);
  EXPECT_EQ(cluster.load(node).cpu_free, 96'000);
}

TEST(Cluster, ChargesTheLeastUsedDevicesWhereNoneAreNamed) {
  Cluster cluster;
  NodeId node = cluster.add_node(node_spec(cluster, "n", 4));
  cluster.add_pod(shared(pod(0, 1)), {node, 0b1, 1000});
  PodId two = cluster.add_pod(shared(pod(0, 2)), {node, 0, 0});
  EXPECT_EQ(cluster.pod(two).placement.devices, 0b110U);
  cluster.update_devices(two, 0b1100);
  EXPECT_EQ(cluster.load(node).gpu_idle, 0b10U);
}

TEST(Cluster, UnhealthyDevicesHaveNothingFree) {
  Cluster cluster;
  NodeSpec spec = node_spec(cluster, "n", 4);
  NodeId node = cluster.add_node(spec);
  spec.gpus_unhealthy = 0b1010;
  cluster.update_node(node, spec);
  EXPECT_EQ(cluster.load(node).gpu_idle, 0b0101U);
  EXPECT_EQ(cluster.load(node).gpu_free_total, 2000);
}

TEST(Cluster, AmountsOfInt64MaxNeverWrap) {
  Cluster cluster;
  NodeSpec spec = node_spec(cluster, "n");
  ResourceId mig = cluster.names().resource("nvidia.com/mig-1g.10gb");
  spec.extended = {{mig, 7}};
  NodeId node = cluster.add_node(spec);
  PodRequest huge = pod(kAmountMax, kAmountMax);
  huge.shape.memory_bytes = huge.shape.storage_bytes = kAmountMax;
  huge.shape.extended = {{mig, kAmountMax}};
  uint64_t before = cluster.state_hash();
  EXPECT_FALSE(fits(cluster, node, huge.shape));
  std::vector<PodId> pods;
  for (int i = 0; i < 5; ++i) pods.push_back(cluster.add_pod(shared(huge), {node, 0, 0}));
  EXPECT_EQ(cluster.load(node).cpu_free, 0);
  EXPECT_EQ(cluster.load(node).memory_free, 0);
  EXPECT_EQ(cluster.load(node).storage_free, 0);
  EXPECT_EQ(cluster.extended_free(node, mig), 0);
  EXPECT_EQ(cluster.load(node).gpu_free_total, 0);
  for (PodId id : pods) cluster.remove_pod(id);
  EXPECT_EQ(cluster.state_hash(), before);
}

TEST(Cluster, ARequestForInt64MaxGpusWaitsForEver) {
  Cluster cluster;
  cluster.add_node(node_spec(cluster, "n"));
  Scheduler scheduler({});
  Decision decision = scheduler.decide(cluster, pod(0, kAmountMax));
  ASSERT_TRUE(std::holds_alternative<Verdict>(decision));
  EXPECT_EQ(std::get<Verdict>(decision).code, base::Code::kNever);
  EXPECT_EQ(std::get<Verdict>(decision).nearest_missing.front().missing, kAmountMax - 8);
}

TEST(Cluster, ARemovedNodesSlotIsUsedAgainOnceItsPodsAreGone) {
  Cluster cluster;
  NodeId node = cluster.add_node(node_spec(cluster, "a"));
  PodId id = cluster.add_pod(shared(pod(0, 1)), {node, 1, 1000});
  cluster.remove_node(node);
  EXPECT_EQ(cluster.nodes(), 0U);
  EXPECT_NE(cluster.add_node(node_spec(cluster, "b")), node);
  cluster.remove_pod(id);
  EXPECT_EQ(cluster.add_node(node_spec(cluster, "c")), node);
  EXPECT_EQ(cluster.load(node).gpu_free_total, 8000);
}

TEST(Cluster, TheChangeLogNamesEachChangedNodeOnce) {
  Cluster cluster;
  NodeId a = cluster.add_node(node_spec(cluster, "a"));
  NodeId b = cluster.add_node(node_spec(cluster, "b"));
  uint64_t position = cluster.log_position();
  cluster.add_pod(shared(pod(1'000)), {a, 0, 0});
  cluster.add_pod(shared(pod(1'000)), {a, 0, 0});
  NodeSpec spec = cluster.spec(b);
  spec.unschedulable = true;
  cluster.update_node(b, spec);
  cluster.add_pod(shared(pod(1'000)), {b, 0, 0});
  std::vector<std::pair<NodeId, bool>> seen;
  EXPECT_TRUE(cluster.changed_since(
      position, [&](NodeId node, bool rules) { seen.emplace_back(node, rules); }));
  EXPECT_EQ(seen, (std::vector<std::pair<NodeId, bool>>{{a, false}, {b, true}}));
  for (int i = 0; i < 10'000; ++i) cluster.remove_pod(cluster.add_pod(shared(pod(1)), {a, 0, 0}));
  EXPECT_FALSE(cluster.changed_since(position, [](NodeId, bool) {}));
}

TEST(Txn, RollbackRestoresTheClusterExactly) {
  base::Random random(3);
  Cluster cluster;
  for (int n = 0; n < 6; ++n) cluster.add_node(node_spec(cluster, "n" + std::to_string(n), 4));
  std::vector<PodId> settled;
  Scheduler scheduler({});
  auto place_one = [&](auto add) {
    auto request = shared(pod(1'000, 1, random.chance(0.5) ? 1000 : 250));
    if (auto placement = scheduler.place(cluster, *request)) add(request, *placement);
  };
  for (int round = 0; round < 200; ++round) {
    if (round % 2 == 0) {
      place_one([&](auto r, auto p) { settled.push_back(cluster.add_pod(r, p)); });
    }
    uint64_t before = cluster.state_hash();
    Txn txn(cluster);
    std::vector<PodId> pods = settled;
    for (int step = 0; step < 8; ++step) {
      if (random.chance(0.5) && !pods.empty()) {
        size_t victim = random.below(pods.size());
        txn.evict(pods[victim]);
        pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(victim));
      } else {
        place_one([&](auto r, auto p) { pods.push_back(txn.place(r, p)); });
      }
    }
    txn.rollback();
    ASSERT_EQ(cluster.state_hash(), before) << "round " << round;
  }
}

TEST(Txn, RollsBackToAMarkAndKeepsWhatIsCommitted) {
  Cluster cluster;
  NodeId node = cluster.add_node(node_spec(cluster, "n"));
  uint64_t empty = cluster.state_hash();
  {
    Txn txn(cluster);
    txn.place(shared(pod(0, 1)), {node, 0b1, 1000});
    uint64_t one = cluster.state_hash();
    size_t mark = txn.mark();
    txn.place(shared(pod(0, 2)), {node, 0b110, 1000});
    EXPECT_EQ(cluster.load(node).gpu_free_total, 5000);
    txn.rollback_to(mark);
    EXPECT_EQ(cluster.state_hash(), one);
  }
  EXPECT_EQ(cluster.state_hash(), empty) << "what was not committed is undone";
  Txn txn(cluster);
  txn.place(shared(pod(0, 1)), {node, 0b1, 1000});
  txn.commit();
  txn.rollback();
  EXPECT_EQ(cluster.pods(), 1U);
}

}  // namespace
}  // namespace tessera::scheduler::core
