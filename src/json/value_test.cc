#include "json/value.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace tessera::json {
namespace {

TEST(Value, Is_sixteen_bytes) {
  EXPECT_EQ(sizeof(Value), 16U);
}

TEST(Value, Missing_members_read_as_null) {
  const Value v = Value::object({{"a", Value::object({{"b", 3}})}});
  EXPECT_EQ(v.get("a", "b").as_int(), 3);
  EXPECT_TRUE(v.get("a", "x", "y").is_null());
  EXPECT_EQ(v["none"].as_string(), "");
  EXPECT_EQ(v.at(4).size(), 0U);
}

TEST(Value, A_change_leaves_copies_alone_and_shares_the_rest) {
  Value a =
      Value::object({{"spec", Value::object({{"x", 1}})}, {"meta", Value::object({{"y", 2}})}});
  Value b = a;
  b.ref("spec", "x") = 5;
  EXPECT_EQ(a.get("spec", "x").as_int(), 1);
  EXPECT_EQ(b.get("spec", "x").as_int(), 5);
  EXPECT_TRUE(a["meta"].same_node(b["meta"]));
  EXPECT_FALSE(a["spec"].same_node(b["spec"]));
  EXPECT_FALSE(a == b);
}

TEST(Value, May_be_assigned_from_its_own_part) {
  Value v = *parse(R"({"a":{"b":["a string that is longer than fourteen"]}})");
  v = v["a"]["b"];
  EXPECT_EQ(v.at(0).as_string(), "a string that is longer than fourteen");
}

TEST(Value, Strings_of_every_length_survive) {
  for (size_t n = 0; n < 40; ++n) {
    const std::string s(n, 'x');
    const Value v(s);
    const Value copy = v;  // NOLINT: the copy is what is tested
    EXPECT_EQ(copy.as_string(), s);
  }
}

TEST(Dump, Writes_members_sorted_and_reads_back) {
  const char* text = R"({"b":[1,-2,3.5,true,null,"x\n\u0001\"é"],"a":{},"c":1e+300})";
  const Value v = *parse(text);
  EXPECT_EQ(v.dump(), R"({"a":{},"b":[1,-2,3.5,true,null,"x\n\u0001\"é"],"c":1e+300})");
  EXPECT_TRUE(*parse(v.dump()) == v);
  EXPECT_TRUE(*parse(v.dump_pretty()) == v);
}

TEST(Parse, Numbers_beyond_64_bits_become_doubles) {
  EXPECT_EQ(parse("9223372036854775807")->as_int(), INT64_MAX);
  EXPECT_EQ(parse("9223372036854775808")->type(), Type::kDouble);
  EXPECT_EQ(parse("9223372036854775808")->dump(), "9223372036854775808");
  EXPECT_FALSE(parse("1e400"));  // no double holds it
  EXPECT_EQ(parse("1e-400")->dump(), "0");
  EXPECT_EQ(parse("[9.223372036708407e+25]")->dump(), "[9.223372036708407e+25]");
}

TEST(Parse, Errors_name_the_place) {
  struct Case {
    const char* text;
    const char* want;
  };
  for (const Case& c :
       {Case{"", "line 1, column 1"}, Case{"{\"a\": [1, 2,]}", "line 1, column 13, at a[2]"},
        Case{"{\"a\":1,\n\"a\":2}", "key \"a\" stands twice"},
        Case{"{\"x\":{\"a\":1,\"a\":2}}", "key \"x.a\" stands twice"}, Case{"\"\xff\"", "line 1"},
        Case{"1 2", "extra"}}) {
    const auto v = parse(c.text);
    ASSERT_FALSE(v) << c.text;
    EXPECT_NE(v.error().message.find(c.want), std::string::npos) << v.error().message;
  }
}

TEST(Parse, Depth_and_size_are_limited) {
  EXPECT_FALSE(parse(std::string(100000, '[')));
  EXPECT_EQ(parse("[1,2,3]", {.bytes_max = 3}).error().code, base::Code::kTooLarge);
}

TEST(Parse, Duplicates_are_collected_when_asked) {
  std::vector<std::string> twice;
  const auto v = parse(R"({"a":{"b":1,"b":2}})", {.duplicates = &twice});
  EXPECT_EQ(v->dump(), R"({"a":{"b":2}})");
  EXPECT_EQ(twice, std::vector<std::string>{"a.b"});
}

TEST(Parse, AMemberThatIsLeftOutGoesWithAllThatIsInItAndNothingElse) {
  ParseOptions options;
  options.leave_out = "managedFields";
  options.leave_out_in = "metadata";
  const std::pair<const char*, const char*> cases[] = {
      {R"({"metadata":{"managedFields":[{"a":{"b":["x",1,2.5,true,null]}},[]],"name":"p"}})",
       R"({"metadata":{"name":"p"}})"},
      {R"({"metadata":{"managedFields":"text"},"b":1})", R"({"b":1,"metadata":{}})"},
      {R"({"metadata":{"managedFields":12345678901234567890},"b":2})", R"({"b":2,"metadata":{}})"},
      {R"({"metadata":{"managedFields":{"metadata":{"managedFields":1}},"z":2}})",
       R"({"metadata":{"z":2}})"},
      {R"({"items":[{"metadata":{"managedFields":{},"uid":"u"}},{"metadata":{"uid":"v"}}]})",
       R"({"items":[{"metadata":{"uid":"u"}},{"metadata":{"uid":"v"}}]})"},
      {R"({"data":{"managedFields":"mine"},"managedFields":1})",
       R"({"data":{"managedFields":"mine"},"managedFields":1})"},
      {R"({"metadata":[{"managedFields":3}]})", R"({"metadata":[{"managedFields":3}]})"},
  };
  for (const auto& [text, rest] : cases) {
    const auto value = parse(text, options);
    ASSERT_TRUE(value) << text;
    EXPECT_EQ(value->dump(), rest) << text;
  }
  EXPECT_FALSE(parse(R"({"metadata":{"managedFields":[1,}})", options));
}

}  // namespace
}  // namespace tessera::json
