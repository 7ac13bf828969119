// What somebody has used so far, with the past counting less the longer it is over.
//
// Shape:   between two calls use runs at a constant rate; the past halves every `half_life`. Exact for such steps: the same
//          total comes out however often it is asked.
// Units:   any amount times seconds (GPU-seconds in kUnitsPerGpu-ths of a device).
// Errors:  a half-life that is not positive is refused by parse (see half_life_problem); nothing here divides by it.
// Source:  Slurm's PriorityDecayHalfLife; the formula is that of continuous decay.
#pragma once

#include <string>

#include "base/time.h"

namespace tessera::scheduler::queueing {

class DecayedUsage {
 public:
  // Brings the sum to `now` with the rate so far. A clock that goes back counts nothing twice.
  void advance(base::Time now, base::Duration half_life);
  void set_rate(double units_per_second) { rate_ = units_per_second; }
  void add(double unit_seconds) { sum_ += unit_seconds; }
  // A sum that was written down at `at`: since then it went on at the rate of now.
  void restore(double sum, base::Time at, base::Duration half_life);
  double sum() const { return sum_; }
  base::Time at() const { return at_; }

 private:
  double sum_ = 0;
  double rate_ = 0;
  base::Time at_{};
  bool started_ = false;
};

// Empty where the half-life can be used; else the reason and the mend.
std::string half_life_problem(base::Duration half_life);

}  // namespace tessera::scheduler::queueing
