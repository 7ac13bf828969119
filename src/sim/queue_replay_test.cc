#include "sim/queue_replay.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/file.h"
#include "base/random.h"
#include "source_dir.h"

namespace tessera::sim {
namespace {

constexpr int64_t kHour = 3600;

QueueJob job(std::string tenant, int64_t arrival_s, int32_t gpus, int64_t duration_s) {
  return {std::move(tenant), arrival_s, gpus, duration_s, duration_s};
}

QueueReplayOptions small(int32_t nodes) {
  QueueReplayOptions options;
  options.nodes = nodes;
  return options;
}

// One of 4 GPUs runs for two hours; one of 8 cannot start beside it; then a short and a long one of 1.
std::vector<QueueJob> line_of_four() {
  return {job("a", 0, 4, 2 * kHour), job("a", 60, 8, kHour), job("b", 120, 1, kHour),
          job("b", 180, 1, 3 * kHour)};
}

TEST(QueueReplay, StrictFifoHoldsBackAllBehindTheFirst) {
  const QueueScore score = replay_queues(QueuePolicy::kStrictFifo, line_of_four(), small(1));
  EXPECT_EQ(score.jobs, 4);
  EXPECT_EQ(score.waits[3].max_s, 2 * kHour - 60);   // the one of 8 starts when the first ends
  EXPECT_EQ(score.waits[1].max_s, 3 * kHour - 120);  // and the others when that one ends
  EXPECT_EQ(score.makespan_s, 6 * kHour);
}

TEST(QueueReplay, BestEffortFifoLetsOthersPassAndTheLargeOneWaits) {
  const QueueScore score = replay_queues(QueuePolicy::kBestEffortFifo, line_of_four(), small(1));
  EXPECT_EQ(score.waits[1].max_s, 0);
  EXPECT_EQ(score.waits[3].max_s, 180 + 3 * kHour - 60);
}

TEST(QueueReplay, EasyLetsPassWhoIsGoneInTime) {
  const QueueScore score = replay_queues(QueuePolicy::kEasy, line_of_four(), small(1));
  EXPECT_EQ(score.waits[3].max_s, 2 * kHour - 60);
  EXPECT_EQ(score.waits[1].p50_s, 0);                // one hour: over before
  EXPECT_EQ(score.waits[1].max_s, 3 * kHour - 180);  // three hours: would be in the way
}

TEST(QueueReplay, DrfServesTheTenantWithTheLowestShare) {
  const std::vector<QueueJob> jobs = {job("a", 0, 8, kHour), job("a", 10, 8, kHour),
                                      job("a", 20, 8, kHour), job("b", 30, 8, kHour)};
  // With two nodes: a runs two jobs; the place that is free first goes to b.
  const QueueScore drf = replay_queues(QueuePolicy::kDrf, jobs, small(2));
  EXPECT_EQ(drf.waits[3].p99_s, kHour + 10 - 20);  // a's third, after b
  const QueueScore fifo = replay_queues(QueuePolicy::kStrictFifo, jobs, small(2));
  EXPECT_EQ(fifo.waits[3].p99_s, kHour + 10 - 30);  // b, after a's third
}

TEST(QueueReplay, ReclaimCostsTheWorkSinceTheLastCheckpoint) {
  QueueReplayOptions options = small(2);
  options.half_life_s = 0;
  const std::vector<QueueJob> jobs = {job("a", 0, 8, 10 * kHour), job("a", 0, 8, 10 * kHour),
                                      job("b", 2 * kHour + 600, 8, kHour)};
  const QueueScore score = replay_queues(QueuePolicy::kTessera, jobs, options);
  EXPECT_EQ(score.evictions, 1);
  EXPECT_DOUBLE_EQ(score.lost_gpu_hours, 8 * 600.0 / kHour);
  EXPECT_EQ(score.waits[0].max_s, kHour);                 // the evicted one, while b runs
  EXPECT_EQ(score.makespan_s, 10 * kHour + 600 + kHour);  // lost work is done again
}

TEST(QueueReplay, NobodyIsEvictedBeforeTheMinimumRuntime) {
  QueueReplayOptions options = small(2);
  options.half_life_s = 0;
  options.runtime_min_s = 4 * kHour;
  const std::vector<QueueJob> jobs = {job("a", 0, 8, 10 * kHour), job("a", 0, 8, 10 * kHour),
                                      job("b", 600, 8, kHour)};
  const QueueScore score = replay_queues(QueuePolicy::kTessera, jobs, options);
  EXPECT_EQ(score.evictions, 1);
  EXPECT_EQ(score.waits[0].p99_s, 4 * kHour - 600);  // b
}

std::vector<QueueJob> drawn(uint64_t seed, int count) {
  base::Random random(seed);
  std::vector<QueueJob> jobs;
  constexpr int32_t kSizes[] = {1, 1, 1, 2, 4, 7, 8, 12, 16, 32};
  for (int i = 0; i < count; ++i) {
    jobs.push_back(job(std::string(1, static_cast<char>('a' + random.below(4))),
                       static_cast<int64_t>(random.below(100'000)), kSizes[random.below(10)],
                       static_cast<int64_t>(60 + random.below(20'000))));
  }
  QueueLoad load;
  load.days = 0;
  load.seed = seed;
  return shape_load(std::move(jobs), 48, load);
}

TEST(QueueReplay, EveryJobEndsOnceAndGpuSecondsAreKept) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::vector<QueueJob> jobs = drawn(seed, 150);
    double asked = 0;
    for (const QueueJob& j : jobs) asked += static_cast<double>(j.gpus * j.duration_s);
    // One more, last, that asks for next to nothing, long after: all use is counted before it.
    jobs.push_back(job("z", 100'000'000, 1, 1));
    for (QueuePolicy policy : kQueuePolicies) {
      const QueueScore score = replay_queues(policy, jobs, small(6));
      EXPECT_EQ(score.jobs, 151) << name_of(policy);
      const double all = 48.0 * 100'000'000;
      EXPECT_NEAR(score.utilisation * all, asked, asked * 1e-9) << name_of(policy);
      EXPECT_NEAR((score.occupied - score.utilisation) * all, score.lost_gpu_hours * kHour, 1)
          << name_of(policy);
      if (policy != QueuePolicy::kTessera) {
        EXPECT_EQ(score.evictions, 0) << name_of(policy);
      }
    }
  }
}

TEST(QueueReplay, TheSameJobsGiveTheSameDigest) {
  const std::vector<QueueJob> jobs = drawn(7, 200);
  for (QueuePolicy policy : kQueuePolicies) {
    const uint64_t digest = replay_queues(policy, jobs, small(6)).digest;
    EXPECT_EQ(digest, replay_queues(policy, jobs, small(6)).digest) << name_of(policy);
    EXPECT_NE(digest, replay_queues(policy, drawn(8, 200), small(6)).digest) << name_of(policy);
  }
}

TEST(QueueReplay, NoJobsGiveNoScore) {
  const QueueScore score = replay_queues(QueuePolicy::kTessera, {}, small(1));
  EXPECT_EQ(score.jobs, 0);
  EXPECT_EQ(score.utilisation, 0);
}

TEST(QueueReplay, TheRealTenantsAreServedMoreEvenlyThanByAnyOtherPolicy) {
  const char* shared = std::getenv("TESSERA_SHARED");
  const std::string root = shared ? shared : std::string(TESSERA_SOURCE_DIR) + "/../shared";
  const std::string path = root + "/data/philly/philly_gavel_vc_jobs.csv";
  auto text = base::read_file(path);
  if (!text) GTEST_SKIP() << "no jobs under " << path << ": set TESSERA_SHARED";
  auto jobs = parse_queue_jobs(*text, "philly");
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->size(), 15264U);
  QueueLoad load;
  load.jobs = 2000;
  const std::vector<QueueJob> shaped = shape_load(std::move(*jobs), 576, load);
  const QueueScore ours = replay_queues(QueuePolicy::kTessera, shaped, {});
  EXPECT_EQ(ours.jobs, 2000);
  for (QueuePolicy policy : kQueuePolicies) {
    if (policy == QueuePolicy::kTessera) continue;
    const QueueScore theirs = replay_queues(policy, shaped, {});
    EXPECT_EQ(theirs.jobs, 2000);
    EXPECT_GT(ours.jain_p5, theirs.jain_p5) << name_of(policy);
    EXPECT_GE(ours.utilisation, theirs.utilisation) << name_of(policy);
  }
}

TEST(QueueTrace, ReadsColumnsByNameAndRefusesWhatMakesNoSense) {
  auto jobs = parse_queue_jobs("num_gpu,vc,duration_s,arrival_s,model\n16,x,60,5,m\n", "f.csv");
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->at(0).gpus, 16);
  EXPECT_EQ(jobs->at(0).tenant, "x");
  auto none = parse_queue_jobs("vc,arrival_s,num_gpu,duration_s\nx,0,0,60\n", "f.csv");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "f.csv:2: num_gpu is \"0\": must be a whole number from 1 to 65536");
  EXPECT_FALSE(parse_queue_jobs("vc,arrival_s,num_gpu\nx,0,1\n", "f.csv"));
}

TEST(QueueTrace, StretchesArrivalsToTheLoadAndLimitsStayAboveTheDuration) {
  std::vector<QueueJob> jobs = {job("a", 100, 8, 1000), job("b", 0, 64, 100), job("a", 0, 8, 1000)};
  QueueLoad load;
  load.load = 0.5;
  const std::vector<QueueJob> shaped = shape_load(jobs, 16, load);
  ASSERT_EQ(shaped.size(), 2U);          // 64 fit nowhere
  EXPECT_EQ(shaped[1].arrival_s, 2000);  // 16000 GPU-seconds are half of 16 GPUs for 2000 s
  for (const QueueJob& j : shaped) {
    EXPECT_GE(j.limit_s, j.duration_s);
    EXPECT_LE(j.limit_s, 3 * j.duration_s);
  }
}

TEST(QueueScore, SharesAreMaxMinByWeight) {
  EXPECT_EQ(max_min_shares(90, {10, 100, 100}, {1, 1, 1}), (std::vector<double>{10, 40, 40}));
  EXPECT_EQ(max_min_shares(90, {10, 100, 100}, {1, 1, 3}), (std::vector<double>{10, 20, 60}));
  EXPECT_EQ(max_min_shares(90, {10, 20, 0}, {1, 1, 1}), (std::vector<double>{10, 20, 0}));
}

TEST(QueueScore, JainIsOneWhereAllAreEqualAndANthWhereOneHasItAll) {
  EXPECT_DOUBLE_EQ(jain_index({2, 2, 2}), 1);
  EXPECT_DOUBLE_EQ(jain_index({5, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(jain_index({}), 1);
}

}  // namespace
}  // namespace tessera::sim
