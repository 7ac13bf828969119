#include "apiserver/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tessera::apiserver {
namespace {

class FlowTest : public testing::Test {
 protected:
  void make(size_t running_max, size_t queue_max) {
    flow_ = std::make_unique<FlowControl>(FlowControl::Options{
        .executor = &loop_, .running_max = running_max, .queue_max = queue_max, .waiting_max = 20});
  }
  base::Status submit(const std::string& user) {
    return flow_->submit(user, [this, user](FlowControl::Seat seat) {
      ran_ += user;
      if (keep_) seats_.push_back(std::move(seat));
    });
  }

  base::ManualLoop loop_;
  std::unique_ptr<FlowControl> flow_;
  std::string ran_;
  bool keep_ = false;
  std::vector<FlowControl::Seat> seats_;
};

TEST_F(FlowTest, UsersTakeTurnsHoweverManyOneSends) {
  make(1, 10);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(submit("a"));
  EXPECT_TRUE(submit("b"));
  EXPECT_TRUE(submit("c"));
  EXPECT_TRUE(submit("b"));
  EXPECT_EQ(ran_, "") << "nothing runs inside submit";
  loop_.run_ready();
  EXPECT_EQ(ran_, "abcabaaaa");
}

TEST_F(FlowTest, SeatsLimitWhatRunsUntilTheyAreGivenBack) {
  make(2, 10);
  keep_ = true;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(submit("a"));
  loop_.run_ready();
  EXPECT_EQ(ran_, "aa");
  seats_.erase(seats_.begin());
  loop_.run_ready();
  EXPECT_EQ(ran_, "aaa");
  keep_ = false;
  seats_.clear();
  loop_.run_ready();
  EXPECT_EQ(ran_, "aaaaa");
}

TEST_F(FlowTest, AThousandRequestsOfOneUserLetAnotherOneThroughWithTheNextSeat) {
  flow_ = std::make_unique<FlowControl>(
      FlowControl::Options{.executor = &loop_, .running_max = 4, .queue_max = 1000});
  keep_ = true;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(submit("a"));
  loop_.run_ready();
  EXPECT_EQ(ran_, "aaaa") << "all seats are taken, and are kept";
  EXPECT_TRUE(submit("b"));
  loop_.run_ready();
  for (int freed = 0; freed < 2; ++freed) {
    seats_.erase(seats_.begin());
    loop_.run_ready();
  }
  EXPECT_EQ(ran_.find('b'), 5u) << ran_;
  for (int more = 0; more < 5; ++more) EXPECT_TRUE(submit("b"));
  for (int freed = 0; freed < 10; ++freed) {
    seats_.erase(seats_.begin());
    loop_.run_ready();
  }
  EXPECT_EQ(std::ranges::count(ran_, 'b'), 6) << ran_;
  EXPECT_EQ(flow_->load().waiting, 1000u - (ran_.size() - 6));
}

TEST_F(FlowTest, AFullQueueRefusesItsUserAndNoOther) {
  make(1, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(submit("a"));
  const auto refused = submit("a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kTooManyRequests);
  EXPECT_TRUE(submit("b"));
  loop_.run_ready();
  EXPECT_EQ(std::ranges::count(ran_, 'a'), 3);
  EXPECT_TRUE(submit("a"));
}

TEST_F(FlowTest, AllQueuesTogetherHaveALimit) {
  make(1, 3);
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += submit("user" + std::to_string(i)) ? 1 : 0;
  EXPECT_EQ(taken, 20);
}

TEST_F(FlowTest, SeatsOutliveTheControl) {
  make(1, 3);
  keep_ = true;
  EXPECT_TRUE(submit("a"));
  EXPECT_TRUE(submit("a"));
  loop_.run_ready();
  flow_.reset();
  seats_.clear();
  loop_.run_ready();
  EXPECT_EQ(ran_, "aa");
}

}  // namespace
}  // namespace tessera::apiserver
