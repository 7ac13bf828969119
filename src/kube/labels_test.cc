#include "kube/labels.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "json/parse.h"
#include "kube/validate_names.h"

namespace tessera::kube {
namespace {

TEST(LabelSelector, Text_reads_and_writes_in_canonical_form) {
  struct Case {
    const char* text;
    const char* want;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"", ""},
           {"a", "a"},
           {"!a", "!a"},
           {" x = y ", "x=y"},
           {"x==y", "x=y"},
           {"b!=c,a", "a,b!=c"},
           {"a in (y, x,y)", "a in (x,y)"},
           {"a notin ()", "a notin ()"},
           {"a in (,)", "a in ()"},
           {"a in (b,,c)", "a in (,b,c)"},
           {"a=", "a="},
           {"a=,b", "a=,b"},
           {"n>5,n<9", "n>5,n<9"},
           {"in in (in,notin)", "in in (in,notin)"},
           {"example.com/a=B_c.d", "example.com/a=B_c.d"},
       }) {
    const auto selector = LabelSelector::parse(c.text);
    ASSERT_TRUE(selector) << c.text << ": " << selector.error().message;
    EXPECT_EQ(selector->to_string(), c.want);
    EXPECT_EQ(*LabelSelector::parse(selector->to_string()), *selector);
  }
}

TEST(LabelSelector, Errors_are_worded_as_Kubernetes_does) {
  struct Case {
    const char* text;
    const char* want;
  };
  for (
      const Case& c : std::initializer_list<Case>{
          {"=a", "found '=', expected: !, identifier, or 'end of string'"},
          {"a=b c", "found 'c', expected: ',' or 'end of string'"},
          {"a,", "found '', expected: identifier after ','"},
          {"a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
          {"a in b", "unable to parse requirement: found 'b' expected: '('"},
          {"a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"},
          {"a in (b", "unable to parse requirement: found '', expected: ',' or ')'"},
          {"!", "unable to parse requirement: found '', expected: identifier"},
          {"a==)", "unable to parse requirement: found ')', expected: identifier"},
          {"!a=b", "found '=', expected: ',' or 'end of string'"},
          {"n>x",
           "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
           "operators, "
           "the value must be an integer"},
          {"a=-",
           "unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid label must be "
           "an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
           "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
           "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
      }) {
    const auto selector = LabelSelector::parse(c.text);
    ASSERT_FALSE(selector) << c.text;
    EXPECT_EQ(selector.error().message, c.want) << c.text;
    EXPECT_EQ(selector.error().code, base::Code::kBadRequest);
  }
}

TEST(LabelSelector, Selects_as_each_operator_says) {
  const StringMap labels = {{"app", "web"}, {"n", "7"}, {"empty", ""}};
  for (const char* yes : {"", "app", "app=web", "app!=db", "x!=y", "!x", "app in (db,web)",
                          "x notin (y)", "n>6", "n<8", "empty=", "app,n=7"}) {
    EXPECT_TRUE(LabelSelector::parse(yes)->matches(labels)) << yes;
  }
  for (const char* no : {"x", "app=db", "app!=web", "!app", "app in (db)", "app notin (web)", "n>7",
                         "n<7", "app>1", "x>1", "app=web,x"}) {
    EXPECT_FALSE(LabelSelector::parse(no)->matches(labels)) << no;
  }
  EXPECT_FALSE(LabelSelector::nothing().matches(labels));
}

TEST(LabelSelector, Null_objects_select_nothing_and_empty_ones_everything) {
  EXPECT_TRUE(LabelSelector::from_json({}, "spec.selector")->selects_nothing());
  EXPECT_TRUE(
      LabelSelector::from_json(json::Value::object(), "spec.selector")->selects_everything());
}

TEST(LabelSelector, Objects_are_read_with_their_faults_named) {
  const auto good =
      LabelSelector::from_json(*json::parse(R"({"matchLabels":{"a":"b"},"matchExpressions":[
        {"key":"c","operator":"In","values":["y","x"]},{"key":"d","operator":"DoesNotExist"}]})"),
                               "spec.selector");
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->to_string(), "a=b,c in (x,y),!d");

  const auto bad =
      LabelSelector::from_json(*json::parse(R"({"matchExpressions":[{"key":"c","operator":"In"},
        {"key":"d","operator":"Exists","values":["x"]},{"key":"e","operator":"Gt"}]})"),
                               "spec.selector");
  ASSERT_FALSE(bad);
  ASSERT_EQ(bad.error().causes.size(), 3U);
  EXPECT_EQ(bad.error().causes[0].field, "spec.selector.matchExpressions[0].values");
  EXPECT_EQ(bad.error().causes[0].message,
            "Required value: must be specified when `operator` is 'In' or 'NotIn'");
  EXPECT_EQ(bad.error().causes[1].reason, "FieldValueForbidden");
  EXPECT_EQ(bad.error().causes[2].message, "Invalid value: \"Gt\": not a valid selector operator");
}

TEST(LabelSelector, Any_text_is_read_or_refused_and_what_is_read_reads_back) {
  rc::check([](const std::vector<uint8_t>& picks) {
    static const char* const kPieces[] = {"a",       "b", "=", "!", ",",   "(", ")", " in ",
                                          " notin ", ">", "<", " ", "x/y", "5", "=="};
    std::string text;
    for (const uint8_t pick : picks) text += kPieces[pick % 15];
    const auto selector = LabelSelector::parse(text);
    if (selector) RC_ASSERT(*LabelSelector::parse(selector->to_string()) == *selector);
  });
}

TEST(FieldSelector, Text_reads_and_selects) {
  const auto selector = FieldSelector::parse("spec.nodeName=n1,,status.phase!=Running,x==a\\,b");
  ASSERT_TRUE(selector) << selector.error().message;
  EXPECT_EQ(selector->to_string(), "spec.nodeName=n1,status.phase!=Running,x=a\\,b");
  EXPECT_EQ(selector->exact("spec.nodeName"), "n1");
  EXPECT_EQ(selector->exact("status.phase"), std::nullopt);
  const auto phase_is = [&](std::string_view phase) {
    return selector->matches([phase](std::string_view field) -> std::string_view {
      return field == "spec.nodeName" ? "n1" : (field == "x" ? "a,b" : phase);
    });
  };
  EXPECT_TRUE(phase_is("Pending"));
  EXPECT_FALSE(phase_is("Running"));
  EXPECT_TRUE(FieldSelector::parse("")->selects_everything());
}

TEST(FieldSelector, Errors_are_worded_as_Kubernetes_does) {
  EXPECT_EQ(FieldSelector::parse("a=b,c").error().message,
            "invalid selector: 'a=b,c'; can't understand 'c'");
  EXPECT_EQ(FieldSelector::parse("a=b\\x").error().message,
            "invalid field selector: invalid escape sequence: \\x");
  EXPECT_EQ(FieldSelector::parse("a=b=c").error().message,
            "invalid field selector: unescaped character in value: 61");
}

TEST(Names, Are_accepted_and_refused_as_Kubernetes_does) {
  const std::string long_label(64, 'a');
  EXPECT_TRUE(check_dns1123_label("a-1").empty());
  EXPECT_EQ(check_dns1123_label("a.b"), Reasons{"must not contain dots"});
  EXPECT_EQ(check_dns1123_label(long_label), Reasons{"must be no more than 63 characters"});
  EXPECT_TRUE(check_dns1123_subdomain("a.b-c.9").empty());
  for (const char* bad : {"", "A", "a..b", "-a", "a-", "a_b", ".a", "a."}) {
    EXPECT_EQ(check_dns1123_subdomain(bad).size(), 1U) << bad;
  }
  EXPECT_FALSE(check_dns1035_label("1a").empty());
  EXPECT_TRUE(check_qualified_name("nvidia.com/gpu.product").empty());
  EXPECT_EQ(check_qualified_name("a/b/c").size(), 1U);
  EXPECT_EQ(check_qualified_name("/b"), Reasons{"prefix part must be non-empty"});
  EXPECT_EQ(check_qualified_name("a/").size(), 2U);
  EXPECT_TRUE(check_label_value("").empty());
  EXPECT_FALSE(check_label_value("a b").empty());
  EXPECT_EQ(check_label_value(long_label), Reasons{"must be no more than 63 bytes"});
  EXPECT_EQ(check_config_map_key("..").size(), 1U);
  EXPECT_EQ(check_path_segment("a/b"), Reasons{"may not contain '/'"});
  EXPECT_EQ(check_port_name("http--1-").size(), 2U);
  EXPECT_TRUE(check_env_name("MY.VAR-1").empty());
  EXPECT_FALSE(check_env_name("A=B").empty());
}

TEST(Names, The_pattern_stands_in_the_message) {
  EXPECT_EQ(
      check_dns1123_subdomain("A")[0],
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
      "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
      "regex used for validation is "
      "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
}

}  // namespace
}  // namespace tessera::kube
