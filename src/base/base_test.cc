#include <gtest/gtest.h>

#include <future>

#include "base/clock.h"
#include "base/executor.h"
#include "base/file.h"
#include "base/random.h"
#include "base/result.h"
#include "base/time.h"

namespace tessera::base {
namespace {

TEST(Time, Rfc3339_reads_back_what_it_writes) {
  for (const char* text :
       {"1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z", "2100-12-31T12:00:00Z"}) {
    EXPECT_EQ(to_rfc3339(*parse_rfc3339(text)), text);
  }
  EXPECT_EQ(to_rfc3339(*parse_rfc3339("2026-01-01T02:00:00+02:00")), "2026-01-01T00:00:00Z");
  EXPECT_EQ(to_rfc3339_micro(*parse_rfc3339("2026-01-01T00:00:00.123456Z")),
            "2026-01-01T00:00:00.123456Z");
}

TEST(Time, Rfc3339_refuses_what_is_no_time) {
  for (const char* text :
       {"", "2026", "2026-13-01T00:00:00Z", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.Z", "9999-01-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

TEST(Time, Durations_read_as_in_go) {
  EXPECT_EQ(parse_duration("1h30m")->ns, seconds(5400).ns);
  EXPECT_EQ(parse_duration("1.5s")->ns, millis(1500).ns);
  EXPECT_EQ(parse_duration("0")->ns, 0);
  for (const char* text : {"", "5", "s", "1x", "1..5s", "999999999h", "1h-3m"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Time, Ages_read_as_kubectl_prints_them) {
  EXPECT_EQ(to_human(seconds(119)), "119s");
  EXPECT_EQ(to_human(seconds(200)), "3m20s");
  EXPECT_EQ(to_human(seconds(3600 * 5)), "5h");
  EXPECT_EQ(to_human(seconds(86400 * 3 + 3600)), "3d1h");
}

TEST(Random, Same_seed_gives_the_same_stream) {
  Random a(7);
  Random b(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
  EXPECT_EQ(Random(1).uuid().size(), 36U);
  EXPECT_EQ(Random(1).uuid()[14], '4');
}

TEST(ManualLoop, Runs_in_order_of_due_time_then_of_posting) {
  ManualLoop loop;
  std::string log;
  loop.post_after(seconds(2), [&] { log += "c"; });
  loop.post_after(seconds(1), [&] { log += "a"; });
  loop.post_after(seconds(1), [&] { log += "b"; });
  loop.advance(seconds(1));
  EXPECT_EQ(log, "ab");
  loop.advance(seconds(1));
  EXPECT_EQ(log, "abc");
}

TEST(LoopThread, Runs_tasks_in_order_and_stops_with_timers_left) {
  std::promise<int> seen;
  int count = 0;
  LoopThread loop("test");
  loop.post_after(seconds(3600), [&] { count = 100; });
  loop.post([&] { ++count; });
  loop.post([&] { seen.set_value(count); });
  EXPECT_EQ(seen.get_future().get(), 1);
  loop.stop();
  EXPECT_EQ(count, 1);
}

TEST(File, Writes_are_whole_and_carry_the_mode) {
  const TempDir dir;
  const std::string path = dir.path() + "/a";
  ASSERT_TRUE(write_file(path, "hello", 0600));
  EXPECT_EQ(*read_file(path), "hello");
  EXPECT_EQ(read_file(path, 3).error().code, Code::kTooLarge);
  EXPECT_EQ(read_file(dir.path() + "/none").error().code, Code::kNotFound);
  EXPECT_FALSE(gunzip("\x1f\x8b\x08 broken"));
}

TEST(Result, Codes_carry_the_reason_and_status_of_kubernetes) {
  EXPECT_EQ(reason_of(Code::kInvalid), "Invalid");
  EXPECT_EQ(http_status_of(Code::kExpired), 410);
  EXPECT_EQ(code_of_http_status(422), Code::kInvalid);
}

}  // namespace
}  // namespace tessera::base
