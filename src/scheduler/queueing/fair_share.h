// Divides one resource between siblings.
//
// Shape:   1. everyone gets the smaller of quota and demand (in proportion to the quotas where capacity does not do for all);
//          2. the rest goes to the highest priority that still wants some, and only what that leaves to the next;
//          3. within one priority by weight; what one does not take goes back into the same step;
//          4. nobody gets more than demand or limit.
// Units:   one, the caller's; exact integers. A unit that cannot be split goes to the first in the list.
// Source:  the outcome that KAI's users asked for (kai-scheduler issue 143), with quotas scaled to what is healthy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::scheduler::queueing {

struct Claim {
  int64_t quota = 0;
  int64_t demand = 0;
  int64_t limit = 0;
  int32_t priority = 0;
  int64_t weight = 1;
};

std::vector<int64_t> divide(int64_t capacity, std::span<const Claim> claims);

}  // namespace tessera::scheduler::queueing
