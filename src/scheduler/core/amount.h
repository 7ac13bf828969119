// Arithmetic on amounts that come from users: it saturates instead of wrapping.
//
// Units:   any; amounts are never negative, int64 max reads "more than there can be".
// Source:  Kubernetes quantities reach int64 max, and so may a request ("nvidia.com/gpu:
//          9223372036854775807").
#pragma once

#include <cstdint>
#include <limits>

namespace tessera::scheduler::core {

inline constexpr int64_t kAmountMax = std::numeric_limits<int64_t>::max();

constexpr int64_t sat_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kAmountMax : sum;
}

constexpr int64_t sat_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kAmountMax : product;
}

// A sum of amounts that can be taken apart again: 128 bits hold 2^31 pods of int64 max each, so
// that removing a pod gives back exactly what adding it took, whatever it asked for.
class ExactSum {
 public:
  void add(int64_t amount) { sum_ += amount; }
  void sub(int64_t amount) { sum_ -= amount; }
  // capacity - sum, but never below 0: a node may be overcommitted by pods that somebody else has
  // bound.
  int64_t free_of(int64_t capacity) const {
    return sum_ >= capacity ? 0 : capacity - static_cast<int64_t>(sum_);
  }
  int64_t saturated() const { return sum_ > kAmountMax ? kAmountMax : static_cast<int64_t>(sum_); }
  bool operator==(const ExactSum&) const = default;

 private:
  __extension__ using Wide = __int128;
  Wide sum_ = 0;
};

}  // namespace tessera::scheduler::core
