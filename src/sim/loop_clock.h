// Virtual wall time: a ManualLoop's time after a fixed start.
#pragma once

#include "base/clock.h"
#include "base/executor.h"

namespace tessera::sim {

class LoopClock : public base::Clock {
 public:
  explicit LoopClock(const base::ManualLoop& loop) : loop_(loop) {}
  base::Time now() const override { return base::Time{1'767'225'600'000'000'000} + loop_.now(); }
  base::Duration monotonic() const override { return loop_.now(); }

 private:
  const base::ManualLoop& loop_;
};

}  // namespace tessera::sim
