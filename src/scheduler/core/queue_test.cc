#include "scheduler/core/queue.h"

#include <gtest/gtest.h>

namespace tessera::scheduler::core {
namespace {

constexpr base::Time kStart{0};

TEST(WaitQueue, HigherPriorityFirstThenFirstCome) {
  WaitQueue queue;
  queue.push(1, 0);
  queue.push(2, 100);
  queue.push(3, 100);
  queue.push(4, -5);
  EXPECT_EQ(queue.position(4), 3U);
  std::vector<int64_t> order;
  while (auto key = queue.pop(kStart)) order.push_back(*key);
  EXPECT_EQ(order, (std::vector<int64_t>{2, 3, 1, 4}));
}

TEST(WaitQueue, AFailedPodWaitsForAChangeAndForItsBackoff) {
  WaitQueue queue;
  queue.push(1, 0);
  base::Time now = kStart;
  for (int64_t backoff_s : {1, 2, 4, 8, 10, 10}) {
    ASSERT_EQ(queue.pop(now), 1);
    queue.failed(1, now);
    EXPECT_FALSE(queue.pop(now + base::seconds(60))) << "nothing changed";
    queue.wake_all();
    EXPECT_FALSE(queue.pop(now + base::seconds(backoff_s) - base::nanos(1)));
    EXPECT_EQ(queue.next_due(now), now + base::seconds(backoff_s));
    now = now + base::seconds(backoff_s);
  }
  EXPECT_EQ(queue.attempts(1), 6);
}

TEST(WaitQueue, AChangeWhileAPodIsBeingTriedIsNotLost) {
  WaitQueue queue;
  queue.push(1, 0);
  ASSERT_EQ(queue.pop(kStart), 1);
  queue.wake_all();
  queue.failed(1, kStart);
  EXPECT_EQ(queue.pop(kStart + base::seconds(1)), 1);
}

TEST(WaitQueue, AParkedPodComesBackByItself) {
  WaitQueue queue;
  queue.push(1, 0);
  ASSERT_EQ(queue.pop(kStart), 1);
  queue.failed(1, kStart);
  EXPECT_EQ(queue.next_due(kStart), kStart + WaitQueue::kParkedMax);
  EXPECT_EQ(queue.pop(kStart + WaitQueue::kParkedMax), 1);
}

TEST(WaitQueue, ErasedPodsNeverComeBack) {
  WaitQueue queue;
  queue.push(1, 0);
  queue.push(2, 0);
  queue.erase(1);
  ASSERT_EQ(queue.pop(kStart), 2);
  queue.failed(2, kStart);
  queue.erase(2);
  queue.failed(2, kStart);
  queue.wake_all();
  EXPECT_FALSE(queue.pop(kStart + base::seconds(1000)));
  EXPECT_EQ(queue.size(), 0U);
}

TEST(WaitQueue, APriorityChangeMovesThePodInTheLine) {
  WaitQueue queue;
  queue.push(1, 0);
  queue.push(2, 0);
  queue.push(2, 7);
  EXPECT_EQ(queue.pop(kStart), 2);
}

}  // namespace
}  // namespace tessera::scheduler::core
