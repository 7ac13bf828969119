// Ids and quantities as types: an index of a node is never taken for an index of a GPU.
//
// Units:   Milli counts thousandths (of a CPU core, of a GPU); Mib counts 2^20 bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace tessera::base {

template <class Tag, class Rep = int32_t>
struct Id {
  Rep value = -1;
  constexpr Id() = default;
  constexpr explicit Id(Rep v) : value(v) {}
  constexpr bool valid() const { return value >= 0; }
  auto operator<=>(const Id&) const = default;
};

template <class Tag>
struct Amount {
  int64_t value = 0;
  constexpr Amount() = default;
  constexpr explicit Amount(int64_t v) : value(v) {}
  auto operator<=>(const Amount&) const = default;
  constexpr Amount operator+(Amount o) const { return Amount(value + o.value); }
  constexpr Amount operator-(Amount o) const { return Amount(value - o.value); }
  constexpr Amount operator*(int64_t k) const { return Amount(value * k); }
  constexpr Amount& operator+=(Amount o) {
    value += o.value;
    return *this;
  }
  constexpr Amount& operator-=(Amount o) {
    value -= o.value;
    return *this;
  }
};

using NodeId = Id<struct NodeTag>;
using GpuId = Id<struct GpuTag>;
using PodId = Id<struct PodTag>;
using Milli = Amount<struct MilliTag>;
using Mib = Amount<struct MibTag>;

}  // namespace tessera::base

template <class Tag, class Rep>
struct std::hash<tessera::base::Id<Tag, Rep>> {
  size_t operator()(tessera::base::Id<Tag, Rep> id) const noexcept {
    return std::hash<Rep>()(id.value);
  }
};
