// The seam to chance: a seeded generator whose stream is the same on every machine and compiler.
//
// Source:  xoshiro256** 1.0 and splitmix64, Blackman and Vigna (public domain); bounded draw by Lemire's rejection.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::base {

class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t next();
  // Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound);
  // Uniform in [0, 1), 53 bits.
  double unit();
  bool chance(double probability) { return unit() < probability; }
  // Lower-case letters and digits that Kubernetes uses for generated names (no vowels, no 0, 1, 3).
  std::string suffix(int length);
  // RFC 4122 version 4.
  std::string uuid();
  // A generator of its own, whose draws do not move this one's: for a component or a node.
  Random fork() { return Random(next()); }

  template <class Container>
  void shuffle(Container& items) {
    for (uint64_t i = items.size(); i > 1; --i) {
      using std::swap;
      swap(items[i - 1], items[below(i)]);
    }
  }

 private:
  uint64_t state_[4];
};

// 64 bits from the operating system, for a seed where no one asked for a fixed one.
uint64_t entropy();

}  // namespace tessera::base
