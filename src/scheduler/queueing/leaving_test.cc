// What victims that have not gone yet still hold, and places that are no longer what they were when the last of them goes.

#include <gtest/gtest.h>

#include "scheduler/queueing/engine_testing.h"

namespace tessera::scheduler::queueing {
namespace {

using testing::Lab;
using testing::queue;

Plan cycle(Lab& lab) {
  return lab.engine.cycle(lab.now);  // victims stay until they are removed
}

// One node of 8 GPUs, held by one pod that leaves for another of 4.
struct Leaving {
  Leaving() {
    lab.nodes(1, 8).queues({queue("q", 0)});
    low = lab.gang("low", "q", 1, 1, 8);
    lab.cycle();
    lab.pass(base::seconds(10));
    high = lab.gang("high", "q", 1, 1, 4, 10);
    const Plan plan = cycle(lab);
    EXPECT_EQ(plan.evicts.size(), 1U);
    EXPECT_TRUE(plan.binds.empty());
    victim = plan.evicts.at(0).member;
  }
  Lab lab;
  GangId low, high;
  MemberId victim;
};

TEST(Leaving, what_a_victim_leaves_over_is_given_out_only_once_it_has_gone) {
  Leaving at;
  const GangId third = at.lab.gang("third", "q", 1, 1, 4);
  EXPECT_TRUE(cycle(at.lab).binds.empty()) << "8 GPUs are still held";
  EXPECT_FALSE(at.lab.engine.why(third).empty());
  at.lab.engine.remove_member(at.victim, at.lab.now);
  EXPECT_EQ(cycle(at.lab).binds.size(), 2U);
  EXPECT_EQ(at.lab.engine.audit(), "");
}

TEST(Leaving, a_pod_that_shares_nothing_with_a_victim_does_not_wait_for_it) {
  Leaving at;
  at.lab.gang("cpu", "q", 1, 1, 0);
  EXPECT_EQ(cycle(at.lab).binds.size(), 1U);
}

TEST(Leaving, a_place_that_fell_away_meanwhile_is_not_bound) {
  Leaving at;
  const core::NodeId node = at.lab.node_ids[0];
  core::NodeSpec spec = at.lab.engine.cluster().spec(node);
  spec.unschedulable = true;
  at.lab.engine.cluster().update_node(node, spec);
  at.lab.engine.remove_member(at.victim, at.lab.now);
  EXPECT_TRUE(cycle(at.lab).binds.empty()) << "the node is cordoned";
  spec.unschedulable = false;
  at.lab.engine.cluster().update_node(node, spec);
  EXPECT_EQ(cycle(at.lab).binds.size(), 1U);
  EXPECT_EQ(at.lab.engine.audit(), "");
}

TEST(Leaving, a_gang_whose_minimum_grew_meanwhile_starts_with_that_or_not_at_all) {
  Leaving at;
  GangSpec spec = at.lab.engine.gang(at.high).spec;
  spec.min_members = 2;
  at.lab.engine.update_gang(at.high, spec);
  at.lab.engine.remove_member(at.victim, at.lab.now);
  EXPECT_TRUE(cycle(at.lab).binds.empty());
  at.lab.engine.add_member(at.high, at.lab.pod(4));
  EXPECT_EQ(cycle(at.lab).binds.size(), 2U);
}

TEST(Leaving, a_member_that_went_before_its_place_was_given_out_is_forgotten) {
  Leaving at;
  at.lab.engine.remove_member(at.victim, at.lab.now);
  at.lab.engine.remove_member(at.lab.engine.gang(at.high).members.at(0), at.lab.now);
  EXPECT_TRUE(cycle(at.lab).binds.empty());
  EXPECT_EQ(at.lab.engine.audit(), "");
}

TEST(Leaving, a_limit_counts_victims_until_they_have_gone) {
  Lab lab;
  lab.nodes(2, 4).queues({testing::limited(queue("q", 0), 4)});
  lab.gang("low", "q", 1, 1, 4);
  lab.cycle();
  lab.pass(base::seconds(10));
  lab.gang("high", "q", 1, 1, 2, 10);
  const Plan plan = cycle(lab);
  ASSERT_EQ(plan.evicts.size(), 1U);
  lab.gang("small", "q", 1, 1, 1);
  EXPECT_TRUE(cycle(lab).binds.empty()) << "the other node has room, the queue has not";
  lab.engine.remove_member(plan.evicts[0].member, lab.now);
  EXPECT_EQ(cycle(lab).binds.size(), 2U);
  EXPECT_EQ(lab.engine.audit(), "");
}

// Found by the simulated world, --queues --no-faults --seed 1549: all others waited for ever.
TEST(Leaving, nobody_waits_for_the_end_of_a_job_that_outran_its_queues_guess) {
  Lab lab;
  QueueSpec guessed = queue("guessed", 0);
  guessed.runtime_default = base::seconds(100);
  guessed.reclaimable = false;
  lab.nodes(1, 4).queues({guessed});
  lab.gang("runs", "guessed", 1, 1, 2);
  lab.cycle();
  lab.pass(base::seconds(10));
  lab.gang("waits", "guessed", 1, 1, 4);
  const GangId other = lab.gang("other", "guessed", 1, 1, 1);
  lab.cycle();
  EXPECT_EQ(lab.placed(other), 0) << "it would delay a planned start";
  lab.pass(base::seconds(101));
  lab.cycle();
  EXPECT_EQ(lab.placed(other), 1);
}

}  // namespace
}  // namespace tessera::scheduler::queueing
