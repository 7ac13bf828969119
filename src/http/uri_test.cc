#include "http/uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::http {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Uri, PathsAreSplitAndDecoded) {
  EXPECT_THAT(parse_target("/api/v1/").value().segments, ElementsAre("api", "v1"));
  EXPECT_THAT(parse_target("/").value().segments, ElementsAre());
  EXPECT_THAT(parse_target("/a%2Fb/c+d/%c3%a9").value().segments,
              ElementsAre("a", "b", "c+d", "\xc3\xa9"));
  EXPECT_THAT(parse_target("//a/./%2e%2e//").value().segments, ElementsAre("", "a", ".", "..", ""));
}

TEST(Uri, QueriesKeepOrderAndRepeats) {
  const Target target =
      parse_target("/x?labelSelector=a%3Db%2Cc&watch&empty=&a+b=c%20d&k=1&k=2&&last=x=y").value();
  EXPECT_THAT(target.segments, ElementsAre("x"));
  EXPECT_THAT(target.query,
              ElementsAre(Pair("labelSelector", "a=b,c"), Pair("watch", ""), Pair("empty", ""),
                          Pair("a b", "c d"), Pair("k", "1"), Pair("k", "2"), Pair("last", "x=y")));
}

TEST(Uri, BadTargetsAreRefused) {
  for (const char* text : {"", "api", "*", "http://host/", "/%", "/%2", "/%zz", "/a?b=%g0", "/a b",
                           "/a#b", "/%00", "/a?b=%00", "/a\x01", "/a\x7f"}) {
    const auto result = parse_target(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, base::Code::kBadRequest) << text;
  }
}

TEST(Uri, EncodedTextComesBack) {
  std::string all;
  for (int i = 1; i < 256; ++i) {
    if (i != '/') all += static_cast<char>(i);
  }
  EXPECT_THAT(parse_target("/" + percent_encode(all)).value().segments, ElementsAre(all));
  EXPECT_THAT(parse_target("/?" + make_query({{all, "a b+c"}, {"k", ""}})).value().query,
              ElementsAre(Pair(all, "a b+c"), Pair("k", "")));
  EXPECT_EQ(percent_encode("a-b_c.d~e/f"), "a-b_c.d~e%2Ff");
}

}  // namespace
}  // namespace tessera::http
