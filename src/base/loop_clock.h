// Virtual wall time: a ManualLoop's time after a fixed start.
#pragma once

#include "base/clock.h"
#include "base/executor.h"

namespace tessera::base {

class LoopClock : public Clock {
 public:
  explicit LoopClock(const ManualLoop& loop) : loop_(loop) {}
  Time now() const override { return Time{1'767'225'600'000'000'000} + loop_.now() + jump; }
  Duration monotonic() const override { return loop_.now(); }

  Duration jump{};  // of the wall clock alone

 private:
  const ManualLoop& loop_;
};

}  // namespace tessera::base
