// The whole stack by seed. TESSERA_WORLD_SEEDS sets how many seeds run (default 40, and 200 with queues);
// TESSERA_WORLD_SEED the first.

#include "sim/world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace tessera::sim {
namespace {

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Outcome {
  WorldReport report;
  std::string log;
};

std::string again(uint64_t seed, bool queues) {
  return fmt::format("\n  run it again: tessera world --seed {}{} --log world.log", seed,
                     queues ? " --queues" : "");
}

Outcome run(uint64_t seed, bool faults = true, bool queues = false) {
  Outcome out;
  WorldOptions options;
  options.seed = seed;
  options.faults = faults;
  options.queues = queues;
  options.log = [&out](const std::string& line) { out.log += line + "\n"; };
  auto report = run_world(std::move(options));
  EXPECT_TRUE(report) << (report ? "" : report.error().message) << again(seed, queues);
  if (report) out.report = *report;
  return out;
}

void expect_same_twice(uint64_t seed, bool queues) {
  const Outcome first = run(seed, true, queues);
  const Outcome second = run(seed, true, queues);
  EXPECT_GT(first.log.size(), 100'000U);
  EXPECT_EQ(first.report.log_digest, second.report.log_digest);
  ASSERT_TRUE(first.log == second.log)
      << "seed " << seed << " differs at byte "
      << std::mismatch(first.log.begin(), first.log.end(), second.log.begin(), second.log.end())
                 .first -
             first.log.begin();
}

TEST(World, The_same_seed_is_the_same_run_byte_for_byte) {
  for (const uint64_t seed : {1, 2, 3}) expect_same_twice(seed, false);
  for (const uint64_t seed : {4, 5}) expect_same_twice(seed, true);
}

TEST(World, Other_seeds_are_other_runs) {
  EXPECT_NE(run(1).report.log_digest, run(2).report.log_digest);
}

TEST(World, Without_faults_everything_ends_well_too) {
  const Outcome calm = run(7, false);
  EXPECT_EQ(calm.report.faults, 0U);
  EXPECT_GT(calm.report.pods_finished, 0U);
}

// All that the seeds from `first` on saw, together.
WorldReport run_seeds(uint64_t count, bool queues) {
  WorldReport all;
  const uint64_t first = number("TESSERA_WORLD_SEED", 1);
  count = number("TESSERA_WORLD_SEEDS", count);
  int failed = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    WorldOptions options;
    options.seed = seed;
    options.queues = queues;
    auto report = run_world(std::move(options));
    if (!report) {
      ADD_FAILURE() << report.error().message << again(seed, queues);
      if (++failed >= 10) break;
      continue;
    }
    all.pods_bound += report->pods_bound;
    all.faults += report->faults;
    all.evictions += report->evictions;
    all.gangs_started += report->gangs_started;
    all.restarts += report->restarts;
  }
  EXPECT_GT(all.pods_bound, count) << "the workload reached the nodes";
  EXPECT_GT(all.faults, count);
  return all;
}

TEST(World, Seeds_with_faults_keep_the_invariants) {
  run_seeds(40, false);
}

TEST(World, Gangs_queues_and_evictions_keep_the_invariants_whatever_fails) {
  const WorldReport all = run_seeds(200, true);
  const uint64_t count = number("TESSERA_WORLD_SEEDS", 200);
  EXPECT_GT(all.gangs_started, count);
  EXPECT_GT(all.evictions, count);
  EXPECT_GT(all.restarts, count / 2);
}

// Each of these broke a rule once.
TEST(World, Seeds_that_found_something_stay_well) {
  run(1549, false, true);   // nodes were kept idle until the end of a job that has none
  run(100141, true, true);  // a victim whose group was read anew counted as gone
  run(307, true, true);  // a bind that was refused gave away the place that others were evicted for
}

// Without faults nothing is lost: each eviction is told.
TEST(World, Queues_without_faults_keep_the_invariants) {
  for (uint64_t seed = 1; seed <= 20; ++seed) run(seed, false, true);
  run(30, false,
      true);  // a claim fell when a verdict was noted on its pod, and a limit was exceeded
}

}  // namespace
}  // namespace tessera::sim
