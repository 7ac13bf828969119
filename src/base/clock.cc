#include "base/clock.h"

#include <chrono>

namespace tessera::base {

Time SystemClock::now() const {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count()};
}

Duration SystemClock::monotonic() const {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(
              std::chrono::steady_clock::now().time_since_epoch())
              .count()};
}

}  // namespace tessera::base
