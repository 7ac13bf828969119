// Instants and spans, in nanoseconds, as types of their own; RFC 3339 text as Kubernetes writes it.
//
// Units:   nanoseconds; Time counts from the Unix epoch, UTC.
// Errors:  parse functions answer kBadRequest with the text they could not read.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tessera::base {

struct Duration {
  int64_t ns = 0;
  auto operator<=>(const Duration&) const = default;
  double seconds() const { return static_cast<double>(ns) / 1e9; }
  int64_t millis() const { return ns / 1'000'000; }
};
constexpr Duration nanos(int64_t n) {
  return {n};
}
constexpr Duration micros(int64_t n) {
  return {n * 1'000};
}
constexpr Duration millis(int64_t n) {
  return {n * 1'000'000};
}
constexpr Duration seconds(int64_t n) {
  return {n * 1'000'000'000};
}
constexpr Duration operator+(Duration a, Duration b) {
  return {a.ns + b.ns};
}
constexpr Duration operator-(Duration a, Duration b) {
  return {a.ns - b.ns};
}
constexpr Duration operator*(Duration a, int64_t k) {
  return {a.ns * k};
}

struct Time {
  int64_t ns = 0;
  auto operator<=>(const Time&) const = default;
};
constexpr Time operator+(Time t, Duration d) {
  return {t.ns + d.ns};
}
constexpr Time operator-(Time t, Duration d) {
  return {t.ns - d.ns};
}
constexpr Duration operator-(Time a, Time b) {
  return {a.ns - b.ns};
}

// "2026-11-30T09:27:03Z" (metav1.Time) and "2026-11-30T09:27:03.000000Z" (metav1.MicroTime).
std::string to_rfc3339(Time t);
std::string to_rfc3339_micro(Time t);
Result<Time> parse_rfc3339(std::string_view text);

// Go's duration text: "1h30m", "250ms", "1.5s"; a bare number is refused.
Result<Duration> parse_duration(std::string_view text);
std::string to_string(Duration d);

// Age as kubectl prints it: "5s", "3m20s", "2d3h", "400d" (k8s.io/apimachinery/pkg/util/duration HumanDuration).
std::string to_human(Duration d);

}  // namespace tessera::base
