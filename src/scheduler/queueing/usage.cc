#include "scheduler/queueing/usage.h"

#include <fmt/format.h>

#include <cmath>

namespace tessera::scheduler::queueing {

void DecayedUsage::advance(base::Time now, base::Duration half_life) {
  if (!started_) {
    started_ = true;
    at_ = now;
    return;
  }
  if (now <= at_) return;
  const double passed = (now - at_).seconds();
  const double decay = std::log(2.0) / half_life.seconds();
  const double kept = std::exp(-decay * passed);
  sum_ = sum_ * kept + rate_ * (1 - kept) / decay;
  at_ = now;
}

void DecayedUsage::restore(double sum, base::Time at, base::Duration half_life) {
  if (!started_) return;
  DecayedUsage past;
  past.advance(at, half_life);
  past.sum_ = sum;
  past.rate_ = rate_;
  past.advance(at_, half_life);
  sum_ += past.sum_;
}

std::string half_life_problem(base::Duration half_life) {
  if (half_life.ns > 0) return {};
  return fmt::format(
      "a half-life of {} has no meaning: give a positive time, or leave it out to count no history",
      base::to_string(half_life));
}

}  // namespace tessera::scheduler::queueing
