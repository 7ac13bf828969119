#include "base/random.h"

#include <sys/random.h>

#include <string_view>

#include "base/check.h"

namespace tessera::base {
namespace {

uint64_t rotl(uint64_t x, int k) {
  return (x << k) | (x >> (64 - k));
}

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15ULL;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    word = z ^ (z >> 31);
  }
}

uint64_t Random::next() {
  const uint64_t result = rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotl(state_[3], 45);
  return result;
}

uint64_t Random::below(uint64_t bound) {
  TS_CHECK(bound > 0);
  const uint64_t threshold = (0 - bound) % bound;
  while (true) {
    const uint64_t draw = next();
    if (draw >= threshold) return draw % bound;
  }
}

double Random::unit() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::string Random::suffix(int length) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (int i = 0; i < length; ++i) out += kAlphabet[below(kAlphabet.size())];
  return out;
}

std::string Random::uuid() {
  constexpr std::string_view kHex = "0123456789abcdef";
  const uint64_t words[2] = {(next() & ~0xf000ULL) | 0x4000ULL,
                             (next() & ~(3ULL << 62)) | (2ULL << 62)};
  std::string out;
  out.reserve(36);
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) out += '-';
    out += kHex[(words[i / 16] >> (60 - 4 * (i % 16))) & 0xf];
  }
  return out;
}

uint64_t entropy() {
  uint64_t word = 0;
  TS_CHECK(::getrandom(&word, sizeof word, 0) == sizeof word);
  return word;
}

}  // namespace tessera::base
