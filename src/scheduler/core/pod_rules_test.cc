#include "scheduler/core/pod_rules.h"

#include <gtest/gtest.h>

#include "scheduler/core/core_testing.h"
#include "scheduler/core/scheduler.h"
#include "scheduler/core/txn.h"

namespace tessera::scheduler::core {
namespace {

using testing::label;
using testing::node_spec;
using testing::pod;
using testing::shared;

// Four nodes in two zones: a-0, a-1, b-0, b-1.
class PodRulesTest : public ::testing::Test {
 protected:
  PodRulesTest() {
    for (std::string zone : {"a", "b"}) {
      for (int i = 0; i < 2; ++i) {
        NodeSpec spec = node_spec(cluster_, zone + "-" + std::to_string(i));
        spec.labels = {label(cluster_, "host", zone + std::to_string(i)),
                       label(cluster_, "zone", zone)};
        std::sort(spec.labels.begin(), spec.labels.end());
        cluster_.add_node(spec);
      }
    }
  }

  PodRequest web() {
    PodRequest request = pod(1'000);
    request.pod_namespace = cluster_.names().string("team");
    request.labels = {label(cluster_, "app", "web")};
    return request;
  }
  PodTerm term(std::string_view key) {
    Expression app{cluster_.names().string("app"), Op::kIn, {cluster_.names().string("web")}, 0};
    return {{cluster_.names().string("team")}, {app}, cluster_.names().string(key)};
  }
  // Places as many as go, at most six, and returns the slots in order.
  std::vector<int32_t> place(const PodRequest& request) {
    std::vector<int32_t> nodes;
    while (nodes.size() < 6) {
      auto placement = scheduler_.place(cluster_, request);
      if (!placement) break;
      cluster_.add_pod(shared(request), *placement);
      nodes.push_back(placement->node.value);
    }
    return nodes;
  }

  Cluster cluster_;
  Scheduler scheduler_{SchedulerOptions{}};
};

TEST_F(PodRulesTest, AntiAffinityKeepsPodsOfOneKindApart) {
  PodRequest request = web();
  request.anti_affinity = {term("zone")};
  EXPECT_EQ(place(request), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(explain(cluster_, request).message(cluster_.names()),
            "0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules.");
}

TEST_F(PodRulesTest, APlacedPodsAntiAffinityHoldsForThoseWithout) {
  PodRequest loner = web();
  loner.anti_affinity = {term("zone")};
  cluster_.add_pod(shared(loner), {NodeId(0), 0, 0});
  EXPECT_EQ(scheduler_.place(cluster_, web())->node, NodeId(2));
  PodRequest other = web();
  other.pod_namespace = cluster_.names().string("elsewhere");
  EXPECT_EQ(scheduler_.place(cluster_, other)->node, NodeId(0));
}

TEST_F(PodRulesTest, AffinityFollowsAndTheFirstOfItsKindGoesAnywhere) {
  PodRequest request = web();
  request.affinity = {term("zone")};
  cluster_.add_pod(shared(web()), {NodeId(3), 0, 0});
  EXPECT_EQ(scheduler_.place(cluster_, request)->node, NodeId(2));
  Cluster& cluster = cluster_;
  PodRequest stranger = web();
  stranger.labels = {label(cluster, "app", "db")};
  stranger.affinity = {term("zone")};
  stranger.affinity[0].selector[0].values = {cluster.names().string("cache")};
  EXPECT_FALSE(scheduler_.place(cluster, stranger));
  stranger.affinity[0].selector[0].values = {cluster.names().string("db")};
  EXPECT_EQ(scheduler_.place(cluster, stranger)->node, NodeId(0));
}

TEST_F(PodRulesTest, SpreadKeepsDomainsWithinTheSkew) {
  PodRequest request = web();
  request.spread = {{term("zone"), 1, true}};
  EXPECT_EQ(place(request), (std::vector<int32_t>{0, 2, 0, 2, 0, 2}));
}

TEST_F(PodRulesTest, SpreadCountsOnlyDomainsThePodMayUse) {
  PodRequest request = web();
  request.spread = {{term("zone"), 1, true}};
  request.shape.node_selector = {label(cluster_, "zone", "a")};
  EXPECT_EQ(place(request), (std::vector<int32_t>{0, 0, 0, 0, 0, 0}));
}

TEST_F(PodRulesTest, WantedSpreadChoosesTheEmptierDomain) {
  PodRequest request = web();
  request.spread = {{term("host"), 1, false}};
  EXPECT_EQ(place(request), (std::vector<int32_t>{0, 1, 2, 3, 0, 1}));
}

TEST_F(PodRulesTest, ANodeWithoutTheKeyIsNoDomain) {
  NodeSpec spec = node_spec(cluster_, "bare");
  NodeId bare = cluster_.add_node(spec);
  PodRequest request = web();
  request.spread = {{term("zone"), 1, true}};
  PodRules rules(cluster_, request);
  EXPECT_EQ(rules.check(bare), Reason::kSpreadLabel);
}

TEST_F(PodRulesTest, CountsFollowPodsRelabelledNodesAndRollback) {
  PodRequest request = web();
  request.anti_affinity = {term("zone")};
  PodTerm zone = term("zone");
  {
    Txn txn(cluster_);
    txn.place(shared(request), {NodeId(0), 0, 0});
    EXPECT_EQ(cluster_.term_counts(zone)->selected_total, 1);
  }
  EXPECT_EQ(cluster_.term_counts(zone)->selected_total, 0);
  EXPECT_FALSE(cluster_.pod_terms().any_owned());
  PodId id = cluster_.add_pod(shared(request), {NodeId(0), 0, 0});
  NodeSpec moved = cluster_.spec(NodeId(0));
  moved.labels = cluster_.spec(NodeId(2)).labels;
  cluster_.update_node(NodeId(0), moved);
  EXPECT_EQ(cluster_.term_counts(zone)->in(cluster_.names().string("b")).selected, 1);
  EXPECT_EQ(scheduler_.place(cluster_, web())->node, NodeId(1));
  cluster_.remove_pod(id);
  EXPECT_TRUE(cluster_.term_counts(zone)->domains.empty());
}

TEST_F(PodRulesTest, ManyTermsDoNotPushOutThoseInUse) {
  PodRequest loner = web();
  loner.anti_affinity = {term("zone")};
  cluster_.add_pod(shared(loner), {NodeId(0), 0, 0});
  for (int i = 0; i < 600; ++i) {
    PodTerm other = term("zone");
    other.selector[0].values = {cluster_.names().string("app-" + std::to_string(i))};
    (void)cluster_.term_counts(other);
  }
  EXPECT_LE(cluster_.pod_terms().size(), 257U);
  EXPECT_EQ(scheduler_.place(cluster_, web())->node, NodeId(2));
}

}  // namespace
}  // namespace tessera::scheduler::core
