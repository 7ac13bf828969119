#include "scheduler/queueing/fair_share.h"

#include <algorithm>
#include <numeric>

namespace tessera::scheduler::queueing {
namespace {

struct Taker {
  size_t index = 0;
  int64_t wants = 0;
  int64_t weight = 0;
};

// Gives `pot` to the takers by weight, none more than it wants; returns what is left.
int64_t pour(int64_t pot, std::vector<Taker> takers, std::vector<int64_t>& shares) {
  std::erase_if(takers, [](const Taker& t) { return t.wants <= 0 || t.weight <= 0; });
  while (pot > 0 && !takers.empty()) {
    __int128_t weights = 0;
    for (const Taker& taker : takers) weights += taker.weight;
    int64_t given = 0;
    bool filled = false;
    for (Taker& taker : takers) {
      auto part = static_cast<int64_t>(static_cast<__int128_t>(pot) * taker.weight / weights);
      if (part < taker.wants) continue;
      shares[taker.index] += taker.wants;
      given += taker.wants;
      taker.wants = 0;
      filled = true;
    }
    if (!filled) {
      for (Taker& taker : takers) {
        auto part = static_cast<int64_t>(static_cast<__int128_t>(pot) * taker.weight / weights);
        shares[taker.index] += part;
        taker.wants -= part;
        given += part;
      }
      pot -= given;
      for (Taker& taker : takers) {
        if (pot == 0 || taker.wants == 0) continue;
        ++shares[taker.index];
        --pot;
      }
      return pot;
    }
    pot -= given;
    std::erase_if(takers, [](const Taker& t) { return t.wants == 0; });
  }
  return pot;
}

}  // namespace

std::vector<int64_t> divide(int64_t capacity, std::span<const Claim> claims) {
  std::vector<int64_t> shares(claims.size(), 0);
  std::vector<Taker> takers;
  __int128_t guaranteed = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    int64_t due = std::min({claims[i].quota, claims[i].demand, claims[i].limit});
    takers.push_back({i, due, due});
    guaranteed += due;
  }
  if (guaranteed > capacity) {
    for (size_t i = 0; i < claims.size(); ++i) takers[i].weight = claims[i].quota;
    pour(std::max<int64_t>(capacity, 0), std::move(takers), shares);
    return shares;
  }
  for (const Taker& taker : takers) shares[taker.index] = taker.wants;
  int64_t pot = capacity - static_cast<int64_t>(guaranteed);

  std::vector<size_t> order(claims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return claims[a].priority > claims[b].priority; });
  auto rest_of = [&](bool weighted) {
    for (size_t from = 0; from < order.size() && pot > 0;) {
      size_t to = from;
      takers.clear();
      for (; to < order.size() && claims[order[to]].priority == claims[order[from]].priority;
           ++to) {
        const Claim& claim = claims[order[to]];
        int64_t wants = std::min(claim.demand, claim.limit) - shares[order[to]];
        if (weighted == (claim.weight > 0))
          takers.push_back({order[to], wants, weighted ? claim.weight : 1});
      }
      pot = pour(pot, takers, shares);
      from = to;
    }
  };
  rest_of(true);
  rest_of(false);  // who has no weight gets what nobody else wants
  return shares;
}

}  // namespace tessera::scheduler::queueing
