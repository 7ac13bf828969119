// The time zones of the world: their names, and what clocks there show.
//
// Shape:   compiled in, so that nothing depends on the machine. data/time.zones holds one zone a line:
//              NAME[,NAME...] RULE FIRST [MINUTES:OFFSET...]
//          FIRST is the offset from UTC at first, in minutes; each change follows after so many minutes since the one
//          before (since 1970 the first), with the offset from then on; past the last change RULE holds, a POSIX TZ text.
//          Changes before the year 2000 are left out.
// Units:   seconds since 1970 (UTC); offsets in seconds, east positive.
// Threads: any.
// Source:  the time zone database as Go 1.26 carries it, https://www.iana.org/time-zones; tests/tools/kubernetes/time_zones
//          writes the file. Local times that a clock shows twice or never are read as Go's time.Date reads them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace tessera::apiserver {

// A date and time of day as a clock on the wall shows it. Fields past their range carry over: day 32, month 13, hour 24.
struct LocalTime {
  int64_t year = 1970;
  int64_t month = 1;  // 1-12
  int64_t day = 1;
  int64_t hour = 0;
  int64_t minute = 0;
  int64_t second = 0;
  int64_t weekday() const;  // 0 is Sunday
};

class TimeZone {
 public:
  // "Europe/Berlin"; case matters. Null for what is no zone.
  static const TimeZone* find(std::string_view name);
  static const TimeZone& utc();

  int32_t offset_at(int64_t unix_seconds) const { return period_at(unix_seconds).offset; }
  LocalTime local(int64_t unix_seconds) const;
  int64_t unix_of(const LocalTime& time) const;

  // The rest of a line after its names.
  static std::optional<TimeZone> parse(std::string_view line);

 private:
  // As long as one offset holds; where the rule is at work, up to the end of the year at most.
  struct Period {
    int32_t offset = 0;
    int64_t start = std::numeric_limits<int64_t>::min();
    int64_t end = std::numeric_limits<int64_t>::max();
  };
  struct Change {
    int64_t at = 0;
    int32_t offset = 0;
  };
  // The day of week `day` in week `week` of the month (5: the last one), so many seconds after its midnight.
  struct Switch {
    int64_t month = 0;
    int64_t week = 0;
    int64_t day = 0;
    int64_t seconds = 0;
    // Since the year began, of the offset before it.
    int64_t in_year(int64_t year, int32_t offset) const;
  };
  struct Rule {
    int32_t standard = 0;
    bool has_summer = false;
    int32_t summer = 0;
    Switch to_summer;
    Switch to_standard;
  };

  static bool parse_rule(std::string_view text, Rule& rule);
  static bool parse_switch(std::string_view text, Switch& out);
  Period period_at(int64_t unix_seconds) const;
  Period by_rule(int64_t unix_seconds, int64_t start) const;

  int32_t first_ = 0;
  std::vector<Change> changes_;
  Rule rule_;
};

bool is_time_zone(std::string_view name);

// The text of data/time.zones.
extern const std::string_view kTimeZones;

}  // namespace tessera::apiserver
