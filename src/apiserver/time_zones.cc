#include "apiserver/time_zones.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/check.h"

namespace tessera::apiserver {
namespace {

constexpr int64_t kDay = 86'400;

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

// Days since 1970-01-01 of the proleptic Gregorian calendar; months may lie outside 1-12.
int64_t days_of(int64_t year, int64_t month, int64_t day) {
  year += floor_div(month - 1, 12);
  month -= 12 * floor_div(month - 1, 12);
  if (month <= 2) --year;
  const int64_t era = floor_div(year, 400);
  const int64_t of_era = year - era * 400;
  const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
}

LocalTime date_of(int64_t days) {
  const int64_t since = days + 719'468;
  const int64_t era = floor_div(since, 146'097);
  const int64_t of_era = since - era * 146'097;
  const int64_t year = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const int64_t month = (5 * of_year + 2) / 153;
  LocalTime out;
  out.day = of_year - (153 * month + 2) / 5 + 1;
  out.month = month < 10 ? month + 3 : month - 9;
  out.year = year + era * 400 + (out.month <= 2 ? 1 : 0);
  return out;
}

int64_t weekday_of(int64_t days) {
  return days + 4 - 7 * floor_div(days + 4, 7);
}

std::string_view take_word(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return word;
}

bool take_number(std::string_view& text, int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// "CET" or "<+05>".
bool take_name(std::string_view& text) {
  const size_t end =
      text.starts_with('<') ? text.find('>') + 1 : text.find_first_of("+-0123456789,");
  if (end == 0 || text.empty()) return false;
  text.remove_prefix(std::min(end, text.size()));
  return true;
}

// "-5:30", "+2", "3:45:10": seconds.
bool take_clock(std::string_view& text, int64_t& seconds) {
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  int64_t part = 0;
  if (!take_number(text, part)) return false;
  seconds = part * 3600;
  for (int64_t unit = 60; unit > 0 && text.starts_with(':'); unit /= 60) {
    text.remove_prefix(1);
    if (!take_number(text, part)) return false;
    seconds += part * unit;
  }
  if (minus) seconds = -seconds;
  return true;
}

}  // namespace

int64_t LocalTime::weekday() const {
  return weekday_of(days_of(year, month, day));
}

bool TimeZone::parse_switch(std::string_view text, Switch& out) {
  if (!text.starts_with('M')) return false;
  text.remove_prefix(1);
  for (int64_t* field : {&out.month, &out.week, &out.day}) {
    if (!take_number(text, *field)) return false;
    if (text.starts_with('.')) text.remove_prefix(1);
  }
  out.seconds = 2 * 3600;
  if (text.empty()) return true;
  if (!text.starts_with('/')) return false;
  text.remove_prefix(1);
  return take_clock(text, out.seconds) && text.empty();
}

// "CET-1CEST,M3.5.0,M10.5.0/3"; an offset there is what must be added to get UTC.
bool TimeZone::parse_rule(std::string_view text, Rule& rule) {
  int64_t seconds = 0;
  if (!take_name(text) || !take_clock(text, seconds)) return false;
  rule.standard = static_cast<int32_t>(-seconds);
  if (text.empty()) return true;
  if (!take_name(text)) return false;
  rule.summer = rule.standard + 3600;
  if (!text.starts_with(',')) {
    if (!take_clock(text, seconds)) return false;
    rule.summer = static_cast<int32_t>(-seconds);
  }
  if (!text.starts_with(',')) return false;
  text.remove_prefix(1);
  rule.has_summer = true;
  return parse_switch(take_word(text, ','), rule.to_summer) && parse_switch(text, rule.to_standard);
}

std::optional<TimeZone> TimeZone::parse(std::string_view line) {
  TimeZone out;
  int64_t number = 0;
  if (!parse_rule(take_word(line, ' '), out.rule_) || !take_number(line, number)) {
    return std::nullopt;
  }
  out.first_ = static_cast<int32_t>(number * 60);
  int64_t at = 0;
  while (line.starts_with(' ')) {
    line.remove_prefix(1);
    if (!take_number(line, number) || !line.starts_with(':')) return std::nullopt;
    line.remove_prefix(1);
    at += number * 60;
    if (!take_number(line, number)) return std::nullopt;
    out.changes_.push_back({at, static_cast<int32_t>(number * 60)});
  }
  return line.empty() ? std::optional<TimeZone>(std::move(out)) : std::nullopt;
}

namespace {

struct Zones {
  std::vector<TimeZone> all;
  std::unordered_map<std::string_view, size_t> by_name;
};

const Zones& zones() {
  static const Zones kZones = [] {
    Zones out;
    std::string_view text = kTimeZones;
    while (!text.empty()) {
      std::string_view line = take_word(text, '\n');
      if (line.empty()) continue;
      std::string_view names = take_word(line, ' ');
      auto zone = TimeZone::parse(line);
      TS_CHECK(zone.has_value(), "data/time.zones: {} does not read", names);
      while (!names.empty()) out.by_name.emplace(take_word(names, ','), out.all.size());
      out.all.push_back(std::move(*zone));
    }
    return out;
  }();
  return kZones;
}

}  // namespace

const TimeZone* TimeZone::find(std::string_view name) {
  const auto found = zones().by_name.find(name);
  return found == zones().by_name.end() ? nullptr : &zones().all[found->second];
}

const TimeZone& TimeZone::utc() {
  static const TimeZone kUtc;
  return kUtc;
}

bool is_time_zone(std::string_view name) {
  return TimeZone::find(name) != nullptr;
}

int64_t TimeZone::Switch::in_year(int64_t year, int32_t offset) const {
  const int64_t first = days_of(year, month, 1);
  int64_t at = (day - weekday_of(first) + 7) % 7;
  const int64_t length = days_of(year, month + 1, 1) - first;
  for (int64_t i = 1; i < week && at + 7 < length; ++i) at += 7;
  return (first + at - days_of(year, 1, 1)) * kDay + seconds - offset;
}

TimeZone::Period TimeZone::by_rule(int64_t at, int64_t start) const {
  if (!rule_.has_summer) return {rule_.standard, start};
  const int64_t year = date_of(floor_div(at, kDay)).year;
  const int64_t begin = days_of(year, 1, 1) * kDay;
  int64_t first = begin + rule_.to_summer.in_year(year, rule_.standard);
  int64_t second = begin + rule_.to_standard.in_year(year, rule_.summer);
  int32_t outside = rule_.standard;
  int32_t between = rule_.summer;
  if (second < first) {
    std::swap(first, second);
    std::swap(outside, between);
  }
  if (at < first) return {outside, begin, first};
  if (at < second) return {between, first, second};
  return {outside, second, begin + 365 * kDay};
}

TimeZone::Period TimeZone::period_at(int64_t at) const {
  if (changes_.empty()) return by_rule(at, std::numeric_limits<int64_t>::min());
  const auto next = std::ranges::upper_bound(changes_, at, {}, &Change::at);
  if (next == changes_.begin()) return {first_, Period().start, next->at};
  const Change& last = *std::prev(next);
  if (next == changes_.end()) return by_rule(at, last.at);
  return {last.offset, last.at, next->at};
}

LocalTime TimeZone::local(int64_t unix_seconds) const {
  const int64_t shown = unix_seconds + offset_at(unix_seconds);
  const int64_t days = floor_div(shown, kDay);
  LocalTime out = date_of(days);
  const int64_t rest = shown - days * kDay;
  out.hour = rest / 3600;
  out.minute = rest / 60 % 60;
  out.second = rest % 60;
  return out;
}

int64_t TimeZone::unix_of(const LocalTime& time) const {
  const int64_t shown = days_of(time.year, time.month, time.day) * kDay + time.hour * 3600 +
                        time.minute * 60 + time.second;
  const Period period = period_at(shown);
  const int64_t at = shown - period.offset;
  if (period.offset == 0 || (at >= period.start && at < period.end)) return at;
  return shown - offset_at(at);
}

}  // namespace tessera::apiserver
