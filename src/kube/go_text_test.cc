#include "kube/go_text.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace tessera::kube {
namespace {

TEST(GoText, WritesValuesAsGoDoes) {
  EXPECT_EQ(go_text(*json::parse(R"({"b":[1,"x",null],"a":{"c":true}})")),
            "map[a:map[c:true] b:[1 x <nil>]]");
  EXPECT_EQ(go_type(json::Value("x")), "string");
}

TEST(GoTimeError, NamesThePieceThatDoesNotFit) {
  EXPECT_EQ(go_time_error("yesterday", false),
            "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse "
            "\"yesterday\" as \"2006\"");
  EXPECT_EQ(go_time_error("2026-13-01T00:00:00Z", false),
            "parsing time \"2026-13-01T00:00:00Z\": month out of range");
  EXPECT_EQ(go_time_error("2026-01-01T00:00:00Zx", false),
            "parsing time \"2026-01-01T00:00:00Zx\": extra text: \"x\"");
  EXPECT_EQ(go_time_error("2026-01-01T00:00:00Z", true),
            "parsing time \"2026-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot "
            "parse \"Z\" as \".000000\"");
}

TEST(GoTime, KnowsTheDaysOfAMonth) {
  EXPECT_TRUE(is_go_time("2028-02-29T00:00:00Z", false));
  EXPECT_FALSE(is_go_time("2026-02-29T00:00:00Z", false));
  EXPECT_TRUE(is_go_time("2026-01-01T00:00:00.5+01:00", false));
  EXPECT_TRUE(is_go_time("2026-01-01T00:00:00.123456Z", true));
}

}  // namespace
}  // namespace tessera::kube
