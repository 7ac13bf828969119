#include "apiserver/cron_schedule.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/time_zones.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using base::Result;

struct Bounds {
  unsigned min;
  unsigned max;
  std::vector<std::string_view> names;  // of min and those after it
};

struct Mask {
  uint64_t bits = 0;
  bool any = false;
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, std::string_view at, bool keep_empty) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = std::min(text.find_first_of(at), text.size());
    if (keep_empty || end > 0) out.push_back(text.substr(0, end));
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

Result<unsigned> parse_number(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc::result_out_of_range) {
    return base::error(Code::kInvalid,
                       "failed to parse int from {}: strconv.Atoi: parsing \"{}\": value out of "
                       "range",
                       text, text);
  }
  const bool sign_twice = digits.size() != text.size() && digits.starts_with('-');
  if (error != std::errc() || end != digits.data() + digits.size() || sign_twice) {
    return base::error(Code::kInvalid,
                       "failed to parse int from {}: strconv.Atoi: parsing \"{}\": invalid syntax",
                       text, text);
  }
  if (number < 0) {
    return base::error(Code::kInvalid, "negative number ({}) not allowed: {}", number, text);
  }
  return static_cast<unsigned>(std::min<int64_t>(number, std::numeric_limits<unsigned>::max()));
}

Result<unsigned> parse_number_or_name(std::string_view text, const Bounds& bounds) {
  const auto found = std::ranges::find(bounds.names, lower(text));
  if (found != bounds.names.end()) {
    return bounds.min + static_cast<unsigned>(found - bounds.names.begin());
  }
  return parse_number(text);
}

struct Range {
  unsigned first = 0;
  unsigned last = 0;
  unsigned step = 1;
  bool any = false;
};

base::Status parse_ends(std::string_view text, std::string_view whole, const Bounds& bounds,
                        Range& range) {
  const auto ends = split(text, "-", true);
  if (ends[0] == "*" || ends[0] == "?") {
    range = {bounds.min, bounds.max, 1, true};
    return {};
  }
  TS_TRY(range.first, parse_number_or_name(ends[0], bounds));
  if (ends.size() > 2) return base::error(Code::kInvalid, "too many hyphens: {}", whole);
  range.last = range.first;
  if (ends.size() == 2) {
    TS_TRY(range.last, parse_number_or_name(ends[1], bounds));
  }
  return {};
}

base::Status check_range(const Range& range, std::string_view text, const Bounds& bounds) {
  if (range.first < bounds.min) {
    return base::error(Code::kInvalid, "beginning of range ({}) below minimum ({}): {}",
                       range.first, bounds.min, text);
  }
  if (range.last > bounds.max) {
    return base::error(Code::kInvalid, "end of range ({}) above maximum ({}): {}", range.last,
                       bounds.max, text);
  }
  if (range.first > range.last) {
    return base::error(Code::kInvalid, "beginning of range ({}) beyond end of range ({}): {}",
                       range.first, range.last, text);
  }
  if (range.step == 0) {
    return base::error(Code::kInvalid, "step of range should be a positive number: {}", text);
  }
  return {};
}

// "5", "1-5", "*/10", "3-20/4", "3/4" (from 3 on).
Result<Mask> parse_range(std::string_view text, const Bounds& bounds) {
  const auto parts = split(text, "/", true);
  Range range;
  TS_TRY_STATUS(parse_ends(parts[0], text, bounds, range));
  if (parts.size() > 2) return base::error(Code::kInvalid, "too many slashes: {}", text);
  if (parts.size() == 2) {
    TS_TRY(range.step, parse_number(parts[1]));
    if (parts[0].find('-') == parts[0].npos) range.last = bounds.max;
    if (range.step > 1) range.any = false;
  }
  TS_TRY_STATUS(check_range(range, text, bounds));
  Mask out{0, range.any};
  for (unsigned i = range.first; i <= range.last; i += std::min(range.step, 64U)) {
    out.bits |= uint64_t{1} << i;
  }
  return out;
}

Result<Mask> parse_field(std::string_view text, const Bounds& bounds) {
  Mask out;
  for (const std::string_view part : split(text, ",", false)) {
    TS_TRY(const Mask mask, parse_range(part, bounds));
    out.bits |= mask.bits;
    out.any = out.any || mask.any;
  }
  return out;
}

Result<CronSchedule> parse_fields(std::string_view text) {
  static const Bounds kMinutes{0, 59, {}};
  static const Bounds kHours{0, 23, {}};
  static const Bounds kDays{1, 31, {}};
  static const Bounds kMonths{
      1, 12, {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}};
  static const Bounds kWeekdays{0, 6, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}};
  const auto fields = split(text, " \t\n\v\f\r", false);
  if (fields.size() != 5) {
    std::string shown;
    for (const std::string_view field : fields)
      shown.append(shown.empty() ? "" : " ").append(field);
    return base::error(Code::kInvalid, "expected exactly 5 fields, found {}: [{}]", fields.size(),
                       shown);
  }
  TS_TRY(const Mask minutes, parse_field(fields[0], kMinutes));
  TS_TRY(const Mask hours, parse_field(fields[1], kHours));
  TS_TRY(const Mask days, parse_field(fields[2], kDays));
  TS_TRY(const Mask months, parse_field(fields[3], kMonths));
  TS_TRY(const Mask weekdays, parse_field(fields[4], kWeekdays));
  return CronSchedule{minutes.bits,  hours.bits, days.bits,    months.bits,
                      weekdays.bits, days.any,   weekdays.any, {}};
}

Result<CronSchedule> parse_descriptor(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
      {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
      {"@hourly", "0 * * * *"}};
  for (const auto& [name, fields] : kNames) {
    if (text == name) return parse_fields(fields);
  }
  constexpr std::string_view kEvery = "@every ";
  if (!text.starts_with(kEvery)) {
    return base::error(Code::kInvalid, "unrecognized descriptor: {}", text);
  }
  const std::string_view span = text.substr(kEvery.size());
  auto duration = base::parse_duration(span);
  if (!duration) {
    return base::error(Code::kInvalid, "failed to parse duration {}: {}", text,
                       duration.error().message);
  }
  CronSchedule out;
  // Whole seconds, at least one.
  out.every = std::max(base::seconds(1), base::seconds(duration->ns / base::seconds(1).ns));
  return out;
}

}  // namespace

Result<CronSchedule> CronSchedule::parse(std::string_view text) {
  if (text.empty()) return base::error(Code::kInvalid, "empty spec string");
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) {
    const size_t begin = text.find('=') + 1;
    const size_t end = text.find(' ');
    if (end == text.npos) {
      return base::error(Code::kInvalid, "schedule is missing after the time zone: {}", text);
    }
    const std::string_view zone = text.substr(begin, end - begin);
    if (!zone.empty() && zone != "Local" && !is_time_zone(zone)) {
      return base::error(Code::kInvalid, "provided bad location {}: unknown time zone {}", zone,
                         zone);
    }
    text.remove_prefix(std::min(text.find_first_not_of(" \t", end), text.size()));
  }
  return text.starts_with('@') ? parse_descriptor(text) : parse_fields(text);
}

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kYearsMax = 5;

bool has(uint64_t mask, int64_t value) {
  return (mask >> value & 1) != 0;
}

// Moves on, field by field, until all match; a field that wraps around sends the search back to the months. Once a field
// has moved, those below it start at their least.
class Search {
 public:
  Search(const CronSchedule& schedule, const TimeZone& zone, int64_t from)
      : schedule_(schedule), zone_(zone), at_(from), shown_(zone.local(from)) {}

  std::optional<int64_t> run() {
    const int64_t last_year = shown_.year + kYearsMax;
    while (shown_.year <= last_year) {
      if (find_month() && find_day() && find_hour() && find_minute()) return at_;
    }
    return std::nullopt;
  }

 private:
  void move_to(int64_t at) {
    at_ = at;
    shown_ = zone_.local(at);
  }
  void set(const LocalTime& time) { move_to(zone_.unix_of(time)); }
  // True the first time.
  bool first_move() { return !std::exchange(moved_, true); }

  bool day_matches() const {
    const bool day = has(schedule_.days, shown_.day);
    const bool weekday = has(schedule_.weekdays, shown_.weekday());
    return schedule_.any_day || schedule_.any_weekday ? day && weekday : day || weekday;
  }

  bool find_month() {
    while (!has(schedule_.months, shown_.month)) {
      if (first_move()) set({shown_.year, shown_.month, 1, 0, 0, 0});
      LocalTime next = shown_;
      ++next.month;
      set(next);
      if (shown_.month == 1) return false;
    }
    return true;
  }

  bool find_day() {
    while (!day_matches()) {
      if (first_move()) set({shown_.year, shown_.month, shown_.day, 0, 0, 0});
      const int64_t before = at_;
      LocalTime next = shown_;
      ++next.day;
      set(next);
      // A clock may skip midnight, or show it twice.
      if (shown_.hour != 0) {
        move_to(at_ + (shown_.hour > 12 ? 24 - shown_.hour : -shown_.hour) * 3600);
      }
      // Or skip the day altogether.
      if (at_ <= before) move_to(before + 24 * 3600);
      if (shown_.day == 1) return false;
    }
    return true;
  }

  bool find_hour() {
    while (!has(schedule_.hours, shown_.hour)) {
      if (first_move()) set({shown_.year, shown_.month, shown_.day, shown_.hour, 0, 0});
      move_to(at_ + 3600);
      if (shown_.hour == 0) return false;
    }
    return true;
  }

  bool find_minute() {
    while (!has(schedule_.minutes, shown_.minute)) {
      if (first_move()) move_to(at_ - shown_.second);
      move_to(at_ + 60);
      if (shown_.minute == 0) return false;
    }
    if (shown_.second == 0) return true;
    // Only the full minute matches.
    move_to(at_ + 60 - shown_.second);
    moved_ = true;
    return false;
  }

  const CronSchedule& schedule_;
  const TimeZone& zone_;
  int64_t at_;
  LocalTime shown_;
  bool moved_ = false;
};

}  // namespace

std::optional<base::Time> CronSchedule::next(base::Time time, const TimeZone& zone) const {
  const int64_t seconds = time.ns / kSecond - (time.ns % kSecond < 0 ? 1 : 0);
  constexpr int64_t kSecondsMax = std::numeric_limits<int64_t>::max() / kSecond;
  std::optional<int64_t> at;
  if (every) {
    if (every->ns / kSecond <= kSecondsMax - seconds) at = seconds + every->ns / kSecond;
  } else {
    at = Search(*this, zone, seconds + 1).run();
  }
  if (!at || *at > kSecondsMax) return std::nullopt;
  return base::Time{*at * kSecond};
}

}  // namespace tessera::apiserver
