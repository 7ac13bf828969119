#include "apiserver/cron_schedule.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "source_dir.h"

namespace tessera::apiserver {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) out.push_back(part);
  return out;
}

// As the library writes them: " 1 2 3 -".
std::string times_of(const CronSchedule& schedule, const TimeZone& zone, int64_t from) {
  std::string out;
  base::Time time{from * kSecond};
  for (int i = 0; i < 4; ++i) {
    const auto next = schedule.next(time, zone);
    if (!next) return out + " -";
    out += " " + std::to_string(next->ns / kSecond);
    time = *next;
  }
  return out;
}

TEST(CronSchedule, Runs_when_the_library_of_Kubernetes_says) {
  const auto text = base::read_file(TESSERA_SOURCE_DIR "/src/apiserver/testdata/cron_times.golden");
  ASSERT_TRUE(text) << text.error().message;
  size_t rows = 0;
  for (const std::string& line : split(*text, '\n')) {
    const auto row = split(line, '|');
    ASSERT_EQ(row.size(), 4U) << line;
    const auto schedule = CronSchedule::parse(row[0]);
    const TimeZone* zone = TimeZone::find(row[1]);
    ASSERT_TRUE(schedule && zone != nullptr) << line;
    ASSERT_EQ(times_of(*schedule, *zone, std::stoll(row[2])), row[3]) << line;
    ++rows;
  }
  EXPECT_GT(rows, 1500U);
}

TEST(CronSchedule, A_day_that_a_zone_skipped_ends_no_search) {
  const TimeZone* apia = TimeZone::find("Pacific/Apia");
  ASSERT_NE(apia, nullptr);
  const auto schedule = CronSchedule::parse("59 23 31 12 *");
  ASSERT_TRUE(schedule);
  const auto next = schedule->next(base::Time{1'325'149'200 * kSecond}, *apia);
  ASSERT_TRUE(next);
  EXPECT_EQ(base::to_rfc3339(*next), "2011-12-31T09:59:00Z");
}

TEST(CronSchedule, Times_at_the_ends_of_the_clock_end_the_search) {
  for (const char* text : {"* * * * *", "@every 1000h", "0 0 29 2 *"}) {
    const auto schedule = CronSchedule::parse(text);
    ASSERT_TRUE(schedule);
    EXPECT_FALSE(schedule->next(base::Time{std::numeric_limits<int64_t>::max()}, TimeZone::utc()));
    const base::Time first{std::numeric_limits<int64_t>::min()};
    const auto next = schedule->next(first, TimeZone::utc());
    ASSERT_TRUE(next) << text;
    EXPECT_GT(*next, first);
  }
}

TEST(TimeZone, Local_time_and_back) {
  const TimeZone* berlin = TimeZone::find("Europe/Berlin");
  ASSERT_NE(berlin, nullptr);
  EXPECT_EQ(berlin->offset_at(1'774'745'999), 3600);  // 2026-03-29T00:59:59Z
  EXPECT_EQ(berlin->offset_at(1'774'746'000), 7200);
  EXPECT_EQ(berlin->local(1'774'746'000).hour, 3);
  EXPECT_EQ(TimeZone::find("berlin"), nullptr);
  EXPECT_EQ(TimeZone::find(""), nullptr);
  EXPECT_EQ(TimeZone::utc().unix_of({.year = 2000, .month = 14, .day = 31, .hour = 25}),
            983'667'600);  // 2001-03-04T01:00
}

TEST(TimeZone, What_does_not_read_is_no_zone) {
  for (const char* line : {"", "CET", "CET-1 x", "CET-1CEST 60", "CET-1CEST,M3.5.0 60",
                           "CET-1 60 5", "CET-1 60 5:", "<+05-5 300", "CET-1 60 "}) {
    EXPECT_FALSE(TimeZone::parse(line)) << line;
  }
}

}  // namespace
}  // namespace tessera::apiserver
