#include "base/time.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace tessera::base {
namespace {

struct Civil {
  int64_t year;
  unsigned month;
  unsigned day;
};

// Days since 1970-01-01 and back, proleptic Gregorian (Howard Hinnant, "chrono-compatible low-level date algorithms").
int64_t days_from_civil(Civil c) {
  const int64_t y = c.year - (c.month <= 2 ? 1 : 0);
  const int64_t era = (y >= 0 ? y : y - 399) / 400;
  const auto yoe = static_cast<unsigned>(y - era * 400);
  const unsigned doy = (153 * (c.month > 2 ? c.month - 3 : c.month + 9) + 2) / 5 + c.day - 1;
  const unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146097 + static_cast<int64_t>(doe) - 719468;
}

Civil civil_from_days(int64_t z) {
  z += 719468;
  const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  const auto doe = static_cast<unsigned>(z - era * 146097);
  const unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const unsigned mp = (5 * doy + 2) / 153;
  const unsigned day = doy - (153 * mp + 2) / 5 + 1;
  const unsigned month = mp < 10 ? mp + 3 : mp - 9;
  return {static_cast<int64_t>(yoe) + era * 400 + (month <= 2 ? 1 : 0), month, day};
}

std::string format(Time t, bool micro) {
  int64_t secs = t.ns / 1'000'000'000;
  int64_t frac = t.ns % 1'000'000'000;
  if (frac < 0) {
    frac += 1'000'000'000;
    secs -= 1;
  }
  int64_t days = secs / 86400;
  int64_t rest = secs % 86400;
  if (rest < 0) {
    rest += 86400;
    days -= 1;
  }
  const Civil c = civil_from_days(days);
  std::string out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", c.year, c.month, c.day,
                                rest / 3600, rest / 60 % 60, rest % 60);
  if (micro) out += fmt::format(".{:06}", frac / 1000);
  return out + "Z";
}

bool digits(std::string_view text, size_t at, size_t count, int64_t& out) {
  if (at + count > text.size()) return false;
  out = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    out = out * 10 + (text[i] - '0');
  }
  return true;
}

// Reads ".123" at `at` into nanoseconds and moves past it.
bool fraction(std::string_view text, size_t& at, int64_t& ns) {
  ns = 0;
  if (at >= text.size() || text[at] != '.') return true;
  int64_t scale = 100'000'000;
  size_t i = at + 1;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    ns += (text[i] - '0') * scale;
    scale /= 10;
  }
  if (i == at + 1) return false;
  at = i;
  return true;
}

// Reads "Z" or "+hh:mm" at `at` to the end.
bool zone(std::string_view text, size_t at, int64_t& offset_s) {
  offset_s = 0;
  if (at >= text.size()) return false;
  if (text[at] == 'Z' || text[at] == 'z') return at + 1 == text.size();
  int64_t h = 0;
  int64_t m = 0;
  if ((text[at] != '+' && text[at] != '-') || at + 6 != text.size() || text[at + 3] != ':') {
    return false;
  }
  if (!digits(text, at + 1, 2, h) || !digits(text, at + 4, 2, m) || h > 23 || m > 59) return false;
  offset_s = (h * 3600 + m * 60) * (text[at] == '-' ? -1 : 1);
  return true;
}

}  // namespace

std::string to_rfc3339(Time t) {
  return format(t, false);
}

std::string to_rfc3339_micro(Time t) {
  return format(t, true);
}

Result<Time> parse_rfc3339(std::string_view text) {
  int64_t y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, ns = 0, offset_s = 0;
  size_t at = 19;
  const bool shape = text.size() >= 20 && text[4] == '-' && text[7] == '-' &&
                     (text[10] == 'T' || text[10] == 't') && text[13] == ':' && text[16] == ':';
  const bool ok = shape && digits(text, 0, 4, y) && digits(text, 5, 2, mo) &&
                  digits(text, 8, 2, d) && digits(text, 11, 2, h) && digits(text, 14, 2, mi) &&
                  digits(text, 17, 2, s) && fraction(text, at, ns) && zone(text, at, offset_s) &&
                  mo >= 1 && mo <= 12 && d >= 1 && d <= 31 && h <= 23 && mi <= 59 && s <= 60;
  // An int64 of nanoseconds ends in 2262.
  if (!ok || y < 1678 || y > 2261) {
    return error(Code::kBadRequest, "\"{}\" is not a time; write it as 2026-01-31T12:00:00Z",
                 text.substr(0, 64));
  }
  const int64_t days = days_from_civil({y, static_cast<unsigned>(mo), static_cast<unsigned>(d)});
  return Time{(days * 86400 + h * 3600 + mi * 60 + s - offset_s) * 1'000'000'000 + ns};
}

Result<Duration> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double ns;
  };
  constexpr std::array<Unit, 6> kUnits = {
      {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};
  auto bad = [&] {
    return error(Code::kBadRequest,
                 "\"{}\" is not a duration; write it as 300ms, 90s, 10m or 1h30m",
                 text.substr(0, 64));
  };
  std::string_view rest = text;
  const bool negative = !rest.empty() && rest[0] == '-';
  if (negative || (!rest.empty() && rest[0] == '+')) rest.remove_prefix(1);
  if (rest == "0") return Duration{0};
  if (rest.empty()) return bad();
  double total = 0;
  while (!rest.empty()) {
    size_t n = 0;
    while (n < rest.size() && ((rest[n] >= '0' && rest[n] <= '9') || rest[n] == '.')) ++n;
    if (n == 0 || n > 20) return bad();
    const std::string number(rest.substr(0, n));
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (end != number.c_str() + n) return bad();
    rest.remove_prefix(n);
    n = 0;
    while (n < rest.size() && rest[n] >= 'a' && rest[n] <= 'z') ++n;
    double scale = 0;
    for (const Unit& unit : kUnits) {
      if (rest.substr(0, n) == unit.name) scale = unit.ns;
    }
    if (scale == 0) return bad();
    total += value * scale;
    rest.remove_prefix(n);
  }
  if (total > 9.2e18) return bad();
  return Duration{static_cast<int64_t>(std::llround(negative ? -total : total))};
}

std::string to_string(Duration d) {
  if (d.ns == 0) return "0s";
  const std::string sign = d.ns < 0 ? "-" : "";
  const auto ns = static_cast<uint64_t>(d.ns < 0 ? -d.ns : d.ns);
  if (ns < 1'000) return fmt::format("{}{}ns", sign, ns);
  if (ns < 1'000'000) return fmt::format("{}{}us", sign, static_cast<double>(ns) / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{}{}ms", sign, static_cast<double>(ns) / 1e6);
  const uint64_t h = ns / 3'600'000'000'000;
  const uint64_t m = ns / 60'000'000'000 % 60;
  const double s = static_cast<double>(ns % 60'000'000'000) / 1e9;
  if (h > 0) return fmt::format("{}{}h{}m{}s", sign, h, m, s);
  if (m > 0) return fmt::format("{}{}m{}s", sign, m, s);
  return fmt::format("{}{}s", sign, s);
}

std::string to_human(Duration d) {
  const int64_t s = d.ns / 1'000'000'000;
  if (s < -1) return "<invalid>";
  if (s < 0) return "0s";
  if (s < 120) return fmt::format("{}s", s);
  const int64_t m = s / 60;
  if (m < 10) return s % 60 == 0 ? fmt::format("{}m", m) : fmt::format("{}m{}s", m, s % 60);
  if (m < 180) return fmt::format("{}m", m);
  const int64_t h = m / 60;
  if (h < 8) return m % 60 == 0 ? fmt::format("{}h", h) : fmt::format("{}h{}m", h, m % 60);
  if (h < 48) return fmt::format("{}h", h);
  const int64_t days = h / 24;
  if (h < 192) return h % 24 == 0 ? fmt::format("{}d", days) : fmt::format("{}d{}h", days, h % 24);
  if (days < 730) return fmt::format("{}d", days);
  const int64_t years = days / 365;
  if (days < 2920 && days % 365 != 0) return fmt::format("{}y{}d", years, days % 365);
  return fmt::format("{}y", years);
}

}  // namespace tessera::base
