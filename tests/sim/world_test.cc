// The whole stack by seed. TESSERA_WORLD_SEEDS sets how many seeds run (default 40); TESSERA_WORLD_SEED the first.

#include "sim/world.h"

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

Outcome run(uint64_t seed, bool faults = true) {
  Outcome out;
  WorldOptions options;
  options.seed = seed;
  options.faults = faults;
  options.log = [&out](const std::string& line) { out.log += line + "\n"; };
  auto report = run_world(std::move(options));
  EXPECT_TRUE(report) << report.error().message << "\n  run it again: tessera world --seed "
                      << seed;
  if (report) out.report = *report;
  return out;
}

TEST(World, The_same_seed_is_the_same_run_byte_for_byte) {
  for (const uint64_t seed : {1, 2, 3}) {
    const Outcome first = run(seed);
    const Outcome second = run(seed);
    EXPECT_GT(first.log.size(), 100'000U);
    EXPECT_EQ(first.report.log_digest, second.report.log_digest);
    ASSERT_TRUE(first.log == second.log)
        << "seed " << seed << " differs at byte "
        << std::mismatch(first.log.begin(), first.log.end(), second.log.begin(), second.log.end())
                   .first -
               first.log.begin();
  }
}

TEST(World, Other_seeds_are_other_runs) {
  EXPECT_NE(run(1).report.log_digest, run(2).report.log_digest);
}

TEST(World, Without_faults_everything_ends_well_too) {
  const Outcome calm = run(7, false);
  EXPECT_EQ(calm.report.faults, 0U);
  EXPECT_GT(calm.report.pods_finished, 0U);
}

TEST(World, Seeds_with_faults_keep_the_invariants) {
  const uint64_t first = number("TESSERA_WORLD_SEED", 1);
  const uint64_t count = number("TESSERA_WORLD_SEEDS", 40);
  uint64_t bound = 0;
  uint64_t faults = 0;
  int failed = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    WorldOptions options;
    options.seed = seed;
    auto report = run_world(std::move(options));
    if (!report) {
      ADD_FAILURE() << report.error().message << "\n  run it again: tessera world --seed " << seed;
      if (++failed >= 10) break;
      continue;
    }
    bound += report->pods_bound;
    faults += report->faults;
  }
  EXPECT_GT(bound, count) << "the workload reached the nodes";
  EXPECT_GT(faults, count);
}

}  // namespace
}  // namespace tessera::sim
