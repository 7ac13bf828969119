// Planned starts that rest on what jobs without a time limit are expected to take.

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/random.h"
#include "scheduler/queueing/engine_testing.h"
#include "scheduler/queueing/trial.h"

namespace tessera::scheduler::queueing {
namespace {

using testing::Lab;
using testing::queue;

struct World {
  explicit World(int nodes, EngineOptions options = {}) : lab(options) {
    lab.nodes(nodes, 4).queues({queue("q", 0)});
  }
  // Negative: no limit, but an estimate of so many seconds; 0: neither.
  GangId job(int pods, int gpus, int seconds) {
    GangSpec spec;
    spec.name = "j" + std::to_string(++jobs);
    spec.queue = "q";
    spec.created = lab.now;
    spec.min_members = pods;
    spec.preempts = false;
    if (seconds > 0) spec.runtime = base::seconds(seconds);
    if (seconds < 0) spec.estimate = base::seconds(-seconds);
    const GangId id = lab.engine.add_gang(spec);
    for (int p = 0; p < pods; ++p) lab.engine.add_member(id, lab.pod(gpus));
    lab.settle();
    return id;
  }
  const Wait& wait(GangId id) const { return lab.engine.gang(id).wait; }
  base::Time at(int seconds) const { return begin + base::seconds(seconds); }

  Lab lab;
  base::Time begin = lab.now;
  int jobs = 0;
};

TEST(Estimates, a_start_behind_a_job_without_a_limit_is_planned_and_marked) {
  World world(1);
  world.job(1, 4, -100);
  const GangId waits = world.job(1, 4, 50);
  ASSERT_TRUE(world.wait(waits).planned_start);
  EXPECT_EQ(*world.wait(waits).planned_start, world.at(100));
  EXPECT_TRUE(world.wait(waits).estimated);
}

TEST(Estimates, one_by_limits_alone_is_not_marked_and_wins_where_it_is_no_later) {
  World world(2);
  world.job(1, 4, 90);
  world.job(1, 4, -100);
  const GangId waits = world.job(1, 4, 50);
  EXPECT_EQ(*world.wait(waits).planned_start, world.at(90));
  EXPECT_FALSE(world.wait(waits).estimated);
}

TEST(Estimates, who_runs_over_is_expected_to_take_twice_as_long) {
  World world(1);
  world.job(1, 4, -100);
  const GangId waits = world.job(1, 4, 50);
  world.lab.pass(base::seconds(100));
  world.lab.settle();
  EXPECT_EQ(*world.wait(waits).planned_start, world.at(200));
  world.lab.pass(base::seconds(350));
  world.lab.settle();
  EXPECT_EQ(*world.wait(waits).planned_start, world.at(800));
  world.lab.pass(base::seconds(400));
  world.lab.settle();
  EXPECT_FALSE(world.wait(waits).planned_start) << "nothing is known of it any more";
  Gang gang;
  gang.spec.estimate = base::Duration{INT64_MAX / 2};
  EXPECT_FALSE(estimate_of(world.lab.engine, gang, base::Duration{INT64_MAX - 1}));
}

TEST(Estimates, a_limit_counts_and_not_an_estimate_beside_it) {
  World world(1);
  GangSpec spec;
  spec.name = "both";
  spec.queue = "q";
  spec.runtime = base::seconds(500);
  spec.estimate = base::seconds(10);
  world.lab.engine.add_member(world.lab.engine.add_gang(spec), world.lab.pod(4));
  world.lab.settle();
  const GangId waits = world.job(1, 4, 50);
  EXPECT_EQ(*world.wait(waits).planned_start, world.at(500));
  EXPECT_FALSE(world.wait(waits).estimated);
}

// Let past a gang with a planned start only where that one could start even if this ran on for ever.
TEST(Estimates, an_estimate_lets_nobody_past_a_planned_start) {
  World world(1);
  world.job(1, 2, 100);
  const GangId big = world.job(1, 4, 50);
  ASSERT_EQ(*world.wait(big).planned_start, world.at(100));
  const GangId guessed = world.job(1, 2, -20);
  EXPECT_EQ(world.lab.placed(guessed), 0);
  EXPECT_EQ(world.wait(guessed).reason, WaitReason::kReserved);
  const GangId limited = world.job(1, 2, 100);
  EXPECT_EQ(world.lab.placed(limited), 1);
}

TEST(Estimates, they_can_be_switched_off) {
  EngineOptions options;
  options.estimates = false;
  World world(1, options);
  world.job(1, 4, -100);
  const GangId waits = world.job(1, 4, 50);
  EXPECT_FALSE(world.wait(waits).planned_start);
}

// What is planned by limits alone is kept whatever estimates say and however wrong they are.
TEST(EstimatesProperty, a_start_planned_by_limits_is_kept) {
  const char* text = std::getenv("TESSERA_QUEUE_SEEDS");
  const uint64_t seeds = text ? std::strtoull(text, nullptr, 10) : 100;
  int promises = 0;
  int guesses = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    base::Random random(seed);
    auto below = [&](int n) { return static_cast<int>(random.below(static_cast<uint64_t>(n))); };
    World world(3);
    std::vector<std::pair<GangId, base::Time>> ends;  // jobs that end by themselves
    auto submit = [&](int gpus) {
      const bool limited = below(4) != 0;
      const int seconds = 20 + below(600);
      const GangId id = world.job(1, gpus, limited ? seconds : -seconds);
      // With a limit: at it or before; without: at any time, or never.
      const int length = limited ? 1 + below(seconds) : below(3) == 0 ? 1'000'000 : 1 + below(900);
      ends.emplace_back(id, base::Time{base::seconds(length).ns});
    };
    for (int i = 0; i < 8; ++i) submit(1 + below(4));
    world.lab.pass(base::seconds(1));
    const GangId big = world.job(2, 3, 100);
    std::optional<base::Time> promised;
    for (int step = 0; step < 600 && world.lab.placed(big) == 0; ++step) {
      if (below(3) == 0) submit(1 + below(2));
      std::erase_if(ends, [&](const auto& job) {
        const Gang& gang = world.lab.engine.gang(job.first);
        if (gang.placed == 0) return false;
        const Member& member = world.lab.engine.member(gang.members[0]);
        if (world.lab.now - member.started < base::Duration{job.second.ns}) return false;
        world.lab.engine.remove_gang(job.first, world.lab.now);
        return true;
      });
      world.lab.settle();
      ASSERT_EQ(world.lab.engine.audit(), "");
      if (world.lab.placed(big) != 0) break;
      guesses += world.wait(big).estimated ? 1 : 0;
      Engine sure = world.lab.engine;
      EngineOptions options = sure.options();
      options.estimates = false;
      sure.set_options(options);
      sure.cycle(world.lab.now);
      const Wait& wait = sure.gang(big).wait;
      if (promised) {
        ASSERT_TRUE(wait.planned_start) << "seed " << seed << " step " << step;
        ASSERT_LE(wait.planned_start->ns, promised->ns) << "seed " << seed << " step " << step;
      }
      if (wait.planned_start) {
        promised = wait.planned_start;
        ++promises;
        ASSERT_TRUE(world.wait(big).planned_start);
        ASSERT_LE(*world.wait(big).planned_start, *promised) << "seed " << seed;
      }
      world.lab.pass(base::seconds(5));
    }
    if (promised) {
      ASSERT_EQ(world.lab.placed(big), 2) << "seed " << seed;
      ASSERT_LE(world.lab.now.ns, promised->ns + base::seconds(5).ns) << "seed " << seed;
    }
  }
  EXPECT_GT(promises, 0);
  EXPECT_GT(guesses, 0);
}

}  // namespace
}  // namespace tessera::scheduler::queueing
