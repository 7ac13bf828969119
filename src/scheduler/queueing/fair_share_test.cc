#include "scheduler/queueing/fair_share.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "scheduler/queueing/amounts.h"

namespace tessera::scheduler::queueing {
namespace {

constexpr int64_t kG = kUnitsPerGpu;

std::vector<int64_t> c15(int64_t red, int64_t blue, int64_t green) {
  std::vector<Claim> claims = {{3 * kG, red * kG, kUnlimited, 200, 1},
                               {2 * kG, blue * kG, kUnlimited, 100, 3},
                               {1 * kG, green * kG, kUnlimited, 100, 1}};
  return divide(12 * kG, claims);
}

TEST(FairShare, C15_quota_then_priority_then_weight) {
  EXPECT_EQ(c15(5, 9, 9), (std::vector<int64_t>{5 * kG, 5 * kG, 2 * kG}));
  EXPECT_EQ(c15(5, 3, 9), (std::vector<int64_t>{5 * kG, 3 * kG, 4 * kG}));
  EXPECT_EQ(c15(0, 9, 9), (std::vector<int64_t>{0, 61'250, 22'750}));  // 8.75 and 3.25 GPUs
  EXPECT_EQ(c15(20, 9, 9), (std::vector<int64_t>{9 * kG, 2 * kG, 1 * kG}));
  EXPECT_EQ(c15(5, 0, 0), (std::vector<int64_t>{5 * kG, 0, 0}));
}

TEST(FairShare, quotas_above_what_is_healthy_shrink_in_proportion) {
  std::vector<Claim> claims = {{80, 100, kUnlimited, 0, 1}, {40, 100, kUnlimited, 0, 1}};
  EXPECT_EQ(divide(60, claims), (std::vector<int64_t>{40, 20}));
}

TEST(FairShare, a_queue_without_weight_gets_what_nobody_else_wants) {
  std::vector<Claim> claims = {{0, 10, kUnlimited, 0, 0}, {0, 4, kUnlimited, 0, 1}};
  EXPECT_EQ(divide(10, claims), (std::vector<int64_t>{6, 4}));
}

TEST(FairShare, weights_and_amounts_at_the_end_of_their_range_do_not_wrap) {
  std::vector<Claim> claims = {{0, kUnlimited, kUnlimited, 0, 1'000'000},
                               {0, kUnlimited, kUnlimited, 0, 1}};
  auto shares = divide(kUnlimited, claims);
  EXPECT_EQ(shares[0] + shares[1], kUnlimited);
  EXPECT_GT(shares[0], shares[1]);
}

std::vector<Claim> random_claims() {
  auto claims = std::vector<Claim>(*rc::gen::inRange<size_t>(1, 7));
  for (Claim& claim : claims) {
    claim.quota = *rc::gen::inRange(0, 20);
    claim.demand = *rc::gen::inRange(0, 30);
    claim.limit = std::max<int64_t>(claim.quota, *rc::gen::inRange(0, 40));
    claim.priority = *rc::gen::inRange(0, 3);
    claim.weight = *rc::gen::inRange(0, 5);
  }
  return claims;
}

RC_GTEST_PROP(FairShareProperty, nothing_is_wasted_and_nobody_gets_more_than_it_asks, ()) {
  auto claims = random_claims();
  int64_t capacity = *rc::gen::inRange(0, 80);
  auto shares = divide(capacity, claims);
  int64_t wanted = 0;
  int64_t quotas = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    RC_ASSERT(shares[i] >= 0);
    RC_ASSERT(shares[i] <= std::min(claims[i].demand, claims[i].limit));
    wanted += std::min(claims[i].demand, claims[i].limit);
    quotas += std::min({claims[i].quota, claims[i].demand, claims[i].limit});
  }
  RC_ASSERT(std::accumulate(shares.begin(), shares.end(), int64_t{0}) ==
            std::min(capacity, wanted));
  if (quotas <= capacity) {
    for (size_t i = 0; i < claims.size(); ++i)
      RC_ASSERT(shares[i] >= std::min({claims[i].quota, claims[i].demand, claims[i].limit}));
  }
}

// The rule once more, a unit at a time: each unit beyond the quotas goes to the highest priority that wants it, and there to
// whom has the least of it for its weight. It may differ from divide() by the unit that cannot be split.
std::vector<int64_t> by_units(int64_t capacity, const std::vector<Claim>& claims) {
  std::vector<int64_t> shares(claims.size());
  std::vector<int64_t> extra(claims.size(), 0);
  for (size_t i = 0; i < claims.size(); ++i) {
    shares[i] = std::min({claims[i].quota, claims[i].demand, claims[i].limit});
    capacity -= shares[i];
  }
  for (; capacity > 0; --capacity) {
    size_t best = claims.size();
    for (size_t i = 0; i < claims.size(); ++i) {
      if (shares[i] >= std::min(claims[i].demand, claims[i].limit)) continue;
      if (best == claims.size()) {
        best = i;
        continue;
      }
      const Claim& a = claims[i];
      const Claim& b = claims[best];
      if ((a.weight > 0) != (b.weight > 0)) {
        if (a.weight > 0) best = i;
      } else if (a.priority != b.priority) {
        if (a.priority > b.priority) best = i;
      } else if ((extra[i] + 1) * std::max<int64_t>(b.weight, 1) <
                 (extra[best] + 1) * std::max<int64_t>(a.weight, 1)) {
        best = i;
      }
    }
    if (best == claims.size()) break;
    ++shares[best];
    ++extra[best];
  }
  return shares;
}

RC_GTEST_PROP(FairShareProperty, agrees_with_giving_unit_by_unit, ()) {
  auto claims = random_claims();
  int64_t capacity = *rc::gen::inRange(0, 80);
  int64_t quotas = 0;
  for (const Claim& claim : claims) quotas += std::min({claim.quota, claim.demand, claim.limit});
  RC_PRE(quotas <= capacity);
  auto shares = divide(capacity, claims);
  auto slow = by_units(capacity, claims);
  for (size_t i = 0; i < claims.size(); ++i)
    RC_ASSERT(std::abs(shares[i] - slow[i]) <= static_cast<int64_t>(claims.size()));
}

}  // namespace
}  // namespace tessera::scheduler::queueing
