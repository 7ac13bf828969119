// How many of the ascending values are not above x: std::upper_bound without branches, for the innermost loops, where the
// outcome of each comparison is a coin toss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::scheduler::core {

inline size_t count_not_above(std::span<const int64_t> ascending, int64_t x) {
  const int64_t* base = ascending.data();
  size_t left = ascending.size();
  while (left > 1) {
    size_t half = left / 2;
    base += base[half - 1] <= x ? half : 0;
    left -= half;
  }
  return static_cast<size_t>(base - ascending.data()) + (left == 1 && *base <= x);
}

}  // namespace tessera::scheduler::core
