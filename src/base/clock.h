// The seam to time: components take a Clock, never the system's.
#pragma once

#include "base/time.h"

namespace tessera::base {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time; may jump.
  virtual Time now() const = 0;
  // Time since some fixed moment; never goes back. For measuring and for timers.
  virtual Duration monotonic() const = 0;
};

class SystemClock : public Clock {
 public:
  Time now() const override;
  Duration monotonic() const override;
};

// Stands still until moved: for tests.
class ManualClock : public Clock {
 public:
  explicit ManualClock(Time start = Time{1'767'225'600'000'000'000}) : start_(start), now_(start) {}
  Time now() const override { return now_; }
  Duration monotonic() const override { return now_ - start_; }
  void advance(Duration d) { now_ = now_ + d; }

 private:
  Time start_;
  Time now_;
};

}  // namespace tessera::base
