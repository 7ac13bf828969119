#include "kube/work_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "base/random.h"

namespace tessera::kube {
namespace {

using Done = WorkQueue::Done;

base::Status failure() {
  return base::error(base::Code::kConflict, "try again");
}

TEST(WorkQueue, A_key_that_waits_runs_once_and_keys_run_in_order) {
  base::ManualLoop loop;
  std::string ran;
  WorkQueue queue(loop, [&](const std::string& key, const Done& done) {
    ran += key;
    done({});
  });
  for (const char* key : {"a", "b", "a", "c", "b"}) queue.add(key);
  EXPECT_EQ(queue.waiting(), 3U);
  loop.run_ready();
  EXPECT_EQ(ran, "abc");
}

TEST(WorkQueue, A_key_added_while_in_work_runs_again_afterwards) {
  base::ManualLoop loop;
  std::vector<Done> open;
  WorkQueue queue(loop, [&](const std::string&, Done done) { open.push_back(std::move(done)); });
  queue.add("a");
  loop.run_ready();
  queue.add("a");
  queue.add("a");
  loop.run_ready();
  ASSERT_EQ(open.size(), 1U);
  open[0]({});
  open[0]({});  // the second call counts for nothing
  loop.run_ready();
  ASSERT_EQ(open.size(), 2U);
  open[1]({});
  loop.advance(base::seconds(10));
  EXPECT_EQ(open.size(), 2U);
  EXPECT_EQ(queue.in_work(), 0U);
}

TEST(WorkQueue, Failures_back_off_from_5_ms_to_1000_s_and_success_forgets_them) {
  base::ManualLoop loop;
  std::vector<base::Duration> at;
  bool fails = true;
  WorkQueue queue(loop, [&](const std::string&, const Done& done) {
    at.push_back(loop.now());
    done(fails ? failure() : base::Status());
  });
  queue.add("a");
  loop.advance(base::seconds(100'000));
  ASSERT_GT(at.size(), 22U);
  EXPECT_EQ((at[1] - at[0]).millis(), 5);
  EXPECT_EQ((at[2] - at[1]).millis(), 10);
  EXPECT_EQ((at[22] - at[21]).seconds(), 1000);
  EXPECT_GT(queue.failures("a"), 20);
  fails = false;
  loop.advance(base::seconds(1001));
  EXPECT_EQ(queue.failures("a"), 0);
}

TEST(WorkQueue, Works_on_so_many_keys_at_once_as_asked) {
  base::ManualLoop loop;
  std::vector<Done> open;
  WorkQueue queue(loop, {.name = "q", .parallel = 2},
                  [&](const std::string&, Done done) { open.push_back(std::move(done)); });
  for (const char* key : {"a", "b", "c"}) queue.add(key);
  loop.run_ready();
  EXPECT_EQ(open.size(), 2U);
  open[0]({});
  loop.run_ready();
  EXPECT_EQ(open.size(), 3U);
}

TEST(WorkQueue, Nothing_runs_after_destruction) {
  base::ManualLoop loop;
  int runs = 0;
  Done late;
  {
    WorkQueue queue(loop, [&](const std::string&, Done done) {
      ++runs;
      late = std::move(done);
    });
    queue.add("a");
    loop.run_ready();
    queue.add("b");
    queue.add_after("c", base::seconds(1));
  }
  late(failure());
  loop.advance(base::seconds(5000));
  EXPECT_EQ(runs, 1);
}

// No key is handled twice at once, and each add is followed by a run that begins after it.
TEST(WorkQueue, Loses_no_key_under_any_order_of_events) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    base::Random random(seed);
    base::ManualLoop loop;
    std::map<std::string, Done> open;
    std::set<std::string> dirty;
    WorkQueue queue(loop, {.name = "q", .parallel = 3}, [&](const std::string& key, Done done) {
      ASSERT_TRUE(open.emplace(key, std::move(done)).second) << "twice at once: " << key;
      dirty.erase(key);
    });
    const auto finish_one = [&] {
      if (open.empty()) return;
      auto at = std::next(open.begin(), static_cast<std::ptrdiff_t>(random.below(open.size())));
      const auto [key, done] = *at;
      open.erase(at);
      if (random.chance(0.3)) {
        dirty.insert(key);
        done(failure());
      } else {
        done({});
      }
    };
    for (int step = 0; step < 300; ++step) {
      const std::string key(1, static_cast<char>('a' + random.below(6)));
      if (random.chance(0.5)) {
        dirty.insert(key);
        queue.add(key);
      }
      if (random.chance(0.5)) finish_one();
      loop.advance(base::millis(static_cast<int64_t>(random.below(20))));
    }
    for (int i = 0; i < 1000 && !(open.empty() && dirty.empty()); ++i) {
      while (!open.empty()) {
        const auto [key, done] = *open.begin();
        open.erase(open.begin());
        done({});
      }
      loop.advance(base::seconds(20));
    }
    EXPECT_TRUE(dirty.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tessera::kube
