#include "scheduler/queueing/fair_tree.h"

#include <gtest/gtest.h>

#include <cmath>

#include "scheduler/queueing/usage.h"

namespace tessera::scheduler::queueing {
namespace {

// The lab of slurmctld 22.05.8: research 60 {vision 50 {alice 10, bob 10}}, prod 40 {carol 1, root 1}, and the user root.
TEST(FairTree, agrees_with_a_real_slurmctld) {
  std::vector<FairNode> nodes = {{-1, 60, 138, false}, {0, 50, 138, false}, {1, 10, 118, true},
                                 {1, 10, 20, true},    {-1, 40, 19, false}, {4, 1, 19, true},
                                 {4, 1, 0, true},      {-1, 1, 0, true}};
  auto ranks = fair_tree(nodes);
  EXPECT_NEAR(ranks[0].shares_norm, .594059, 1e-6);
  EXPECT_NEAR(ranks[4].shares_norm, .396040, 1e-6);
  // The lab printed usage to the second, so its parts are known to about a thousandth.
  EXPECT_NEAR(ranks[0].usage_norm, .875699, 5e-3);
  EXPECT_NEAR(ranks[4].level, 3.186134, .1);
  EXPECT_NEAR(ranks[0].level, .678383, 5e-3);
  EXPECT_DOUBLE_EQ(ranks[1].level, 1.0);
  EXPECT_NEAR(ranks[2].level, .587553, 5e-3);
  EXPECT_NEAR(ranks[3].level, 3.355402, .1);
  EXPECT_DOUBLE_EQ(ranks[5].level, .5);
  EXPECT_DOUBLE_EQ(ranks[7].rank, 1.0);
  EXPECT_DOUBLE_EQ(ranks[6].rank, .8);
  EXPECT_DOUBLE_EQ(ranks[5].rank, .6);
  EXPECT_DOUBLE_EQ(ranks[3].rank, .4);
  EXPECT_DOUBLE_EQ(ranks[2].rank, .2);
}

TEST(FairTree, equal_users_tie_and_equal_accounts_are_merged) {
  std::vector<FairNode> nodes = {{-1, 1, 10, false}, {-1, 1, 10, false}, {0, 1, 4, true},
                                 {0, 1, 6, true},    {1, 1, 2, true},    {1, 1, 8, true}};
  auto ranks = fair_tree(nodes);
  EXPECT_DOUBLE_EQ(ranks[4].rank, 1.0);  // level 2.5, then 1.25, 0.83, 0.625
  EXPECT_DOUBLE_EQ(ranks[2].rank, .75);
  EXPECT_DOUBLE_EQ(ranks[3].rank, .5);
  EXPECT_DOUBLE_EQ(ranks[5].rank, .25);
  auto tied = fair_tree({{-1, 1, 5, true}, {-1, 1, 5, true}});
  EXPECT_DOUBLE_EQ(tied[0].rank, 1.0);
  EXPECT_DOUBLE_EQ(tied[1].rank, 1.0);
}

TEST(FairTree, nobody_and_no_shares_divide_by_nothing) {
  EXPECT_TRUE(fair_tree({}).empty());
  auto ranks = fair_tree({{-1, 0, 0, true}, {-1, 0, 3, true}});
  EXPECT_DOUBLE_EQ(ranks[0].level, 0);
  EXPECT_TRUE(std::isfinite(ranks[1].rank));
}

TEST(DecayedUsage, halves_every_half_life_and_does_not_depend_on_how_often_it_is_asked) {
  const base::Duration half = base::seconds(3600);
  DecayedUsage once;
  DecayedUsage often;
  for (DecayedUsage* usage : {&once, &often}) {
    usage->advance({0}, half);
    usage->set_rate(8);
  }
  once.advance({base::seconds(7200).ns}, half);
  for (int i = 1; i <= 7200; i += 7) often.advance({base::seconds(i).ns}, half);
  often.advance({base::seconds(7200).ns}, half);
  EXPECT_NEAR(once.sum(), often.sum(), once.sum() * 1e-9);
  once.set_rate(0);
  double before = once.sum();
  once.advance({base::seconds(10'800).ns}, half);
  EXPECT_NEAR(once.sum(), before / 2, 1e-6);
}

TEST(DecayedUsage, a_clock_that_jumps_back_counts_nothing_twice) {
  DecayedUsage usage;
  usage.advance({base::seconds(100).ns}, base::seconds(60));
  usage.set_rate(1);
  usage.advance({base::seconds(110).ns}, base::seconds(60));
  double sum = usage.sum();
  usage.advance({base::seconds(50).ns}, base::seconds(60));
  EXPECT_DOUBLE_EQ(usage.sum(), sum);
  EXPECT_FALSE(half_life_problem({0}).empty());
  EXPECT_TRUE(half_life_problem(base::seconds(1)).empty());
}

}  // namespace
}  // namespace tessera::scheduler::queueing
