// When a CronJob runs: "*/5 * * * *", "0 3 * * mon-fri", "@daily", "@every 1h30m".
//
// Shape:   bit n of a mask says that value n matches; days match by day of month AND weekday where one of both is open,
//          else by either.
// Errors:  parse answers kInvalid in the words of Kubernetes' parser.
// Units:   whole seconds; the clock of the zone decides. What a clock that is put back shows twice runs twice, what it skips
//          does not run: as the parser's own search has it.
// Threads: a plain value.
// Source:  github.com/robfig/cron v3.0.1 (ParseStandard); crontab(5).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "apiserver/time_zones.h"
#include "base/result.h"
#include "base/time.h"

namespace tessera::apiserver {

struct CronSchedule {
  uint64_t minutes = 0;   // 0-59
  uint64_t hours = 0;     // 0-23
  uint64_t days = 0;      // 1-31
  uint64_t months = 0;    // 1-12
  uint64_t weekdays = 0;  // 0-6, 0 is Sunday
  bool any_day = false;   // "*" or "?" stood there
  bool any_weekday = false;
  std::optional<base::Duration> every{};  // "@every": the masks say nothing

  // May begin with "TZ=..." or "CRON_TZ=..."; that is checked and left out.
  static base::Result<CronSchedule> parse(std::string_view text);

  // The first time after `time` at which it runs; nothing where none comes within five years.
  std::optional<base::Time> next(base::Time time, const TimeZone& zone) const;
};

}  // namespace tessera::apiserver
