#include "scheduler/queue.h"

#include <gtest/gtest.h>

namespace tessera::scheduler {
namespace {

std::string drain(WaitingQueue& queue) {
  std::string out;
  while (auto key = queue.pop()) out += *key;
  return out;
}

TEST(WaitingQueue, Higher_priority_comes_first_then_earlier_arrival) {
  WaitingQueue queue;
  queue.add("a", 0, 1);
  queue.add("b", 5, 3);
  queue.add("c", 5, 2);
  queue.add("d", -5, 0);
  queue.add("e", INT32_MIN, 0);
  queue.add("f", INT32_MAX, 9);
  EXPECT_EQ(drain(queue), "fcbade");
}

TEST(WaitingQueue, A_key_is_in_it_once_with_its_newest_priority) {
  WaitingQueue queue;
  queue.add("a", 0, 1);
  queue.add("b", 1, 2);
  queue.add("a", 2, 1);
  EXPECT_EQ(queue.active(), 2U);
  EXPECT_EQ(drain(queue), "ab");
}

TEST(WaitingQueue, Parked_pods_come_back_in_order_when_something_changes) {
  WaitingQueue queue;
  EXPECT_FALSE(queue.wake());
  queue.add("a", 0, 1);
  queue.add("b", 0, 2);
  const std::string first = *queue.pop();
  queue.park(first, 0, 1);
  EXPECT_EQ(queue.parked(), 1U);
  EXPECT_EQ(drain(queue), "b");
  EXPECT_TRUE(queue.wake());
  EXPECT_EQ(queue.parked(), 0U);
  EXPECT_EQ(drain(queue), "a");
}

TEST(WaitingQueue, Adding_a_parked_pod_unparks_it_and_removing_forgets_it) {
  WaitingQueue queue;
  queue.park("a", 0, 1);
  queue.add("a", 0, 1);
  EXPECT_EQ(queue.parked(), 0U);
  queue.remove("a");
  queue.remove("never there");
  queue.park("b", 0, 2);
  queue.remove("b");
  EXPECT_FALSE(queue.wake());
  EXPECT_EQ(drain(queue), "");
}

}  // namespace
}  // namespace tessera::scheduler
