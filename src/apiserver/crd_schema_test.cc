// Schemas of custom objects: what they refuse, prune and set; their types for server-side apply; columns.
#include "apiserver/crd_schema.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/crd_columns.h"
#include "apiserver/crd_format.h"
#include "apiserver/crd_prune.h"
#include "apiserver/crd_types.h"
#include "apiserver/crd_validate.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using json::Value;

Value parse(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value) << text;
  return value ? *value : Value();
}

CrdSchema::Ptr compiled(std::string_view text) {
  auto schema = compile_schema(parse(text));
  EXPECT_TRUE(schema) << (schema ? "" : schema.error().message);
  return schema ? std::move(*schema) : nullptr;
}

std::vector<std::string> problems(std::string_view schema, std::string_view object,
                                  std::string_view before = "") {
  FieldErrors errors;
  const Value old = before.empty() ? Value() : parse(before);
  const auto rules = compiled(schema);
  validate_by_schema(*rules, parse(object), before.empty() ? nullptr : &old, "", errors);
  std::vector<std::string> out;
  for (const base::Cause& cause : errors.causes())
    out.push_back(cause.field + ": " + cause.message);
  return out;
}

using Texts = std::vector<std::string>;

TEST(CrdSchema, SaysWhatIsWrongWithAValueAsKubernetesDoes) {
  struct Row {
    const char* schema;
    const char* object;
    Texts expected;
  };
  const Row rows[] = {
      {R"({"type":"object","properties":{"a":{"type":"integer"}}})", R"({"a":1})", {}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}}})", R"({"a":1.0})", {}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}}})",
       R"({"a":"x"})",
       {R"(a: Invalid value: "string": a in body must be of type integer: "string")"}},
      {R"({"type":"object","properties":{"a":{"type":"string","nullable":true}}})",
       R"({"a":null})",
       {}},
      {R"({"type":"object","properties":{"a":{"type":"string"}}})",
       R"({"a":null})",
       {R"(a: Invalid value: "null": a in body must be of type string: "null")"}},
      {R"({"type":"object","required":["a"]})", R"({})", {"a: Required value"}},
      {R"({"properties":{"a":{"type":"string","maxLength":2,"minLength":1}}})",
       R"({"a":"äöü"})",
       {"a: Too long: may not be more than 2 bytes"}},
      {R"({"properties":{"a":{"type":"number","exclusiveMinimum":true,"minimum":0.5}}})",
       R"({"a":0.5})",
       {"a: Invalid value: 0.5: a in body should be greater than 0.5"}},
      {R"({"properties":{"a":{"type":"integer","multipleOf":3}}})",
       R"({"a":7})",
       {"a: Invalid value: 7: a in body should be a multiple of 3"}},
      {R"({"properties":{"a":{"type":"integer","format":"int32"}}})",
       R"({"a":3000000000})",
       {R"(<nil>: Invalid value: "": Checked value must be of type integer with format int32 in a)"}},
      {R"({"properties":{"a":{"type":"string","format":"uuid"}}})",
       R"({"a":"x"})",
       {R"(a: Invalid value: "x": a in body must be of type uuid: "x")"}},
      {R"({"properties":{"a":{"type":"object","additionalProperties":{"type":"integer"}}}})",
       R"({"a":{"b":"c"}})",
       {R"(a.b: Invalid value: "string": a.b in body must be of type integer: "string")"}},
      {R"({"properties":{"a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},)"
       R"({"type":"string"}],"pattern":"^[0-9]+%$"}}})",
       R"({"a":"50%"})",
       {}},
      {R"({"properties":{"a":{"not":{"enum":["x"]},"type":"string"}}})",
       R"({"a":"x"})",
       {R"(<nil>: Invalid value: "": "a" must not validate the schema (not))"}},
      {R"({"properties":{"a":{"type":"object","minProperties":1,"maxProperties":1}}})",
       R"({"a":{"x":1,"y":2}})",
       {"a: Too many: 2: must have at most 1 item"}},
  };
  for (const Row& row : rows)
    EXPECT_EQ(problems(row.schema, row.object), row.expected) << row.schema;
}

TEST(CrdSchema, OneOfTakesExactlyOneAndTheBestTellsWhatIsWrong) {
  const char* schema = R"({"type":"object","properties":{"a":{"type":"integer"},
    "b":{"type":"integer"}},"oneOf":[{"required":["a"]},{"required":["b"]}]})";
  EXPECT_EQ(problems(schema, R"({"a":1})"), Texts{});
  EXPECT_EQ(problems(schema, R"({"a":1,"b":1})"),
            Texts{R"(<nil>: Invalid value: "": "" must validate one and only one schema (oneOf). )"
                  R"(Found 2 valid alternatives)"});
  EXPECT_EQ(problems(schema, "{}").size(), 2U);
}

TEST(CrdSchema, WhatDidNotChangeIsNotRefusedLater) {
  const char* schema = R"({"type":"object","properties":{"a":{"type":"string","enum":["x"]},
    "l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
      "items":{"type":"object","properties":{"k":{"type":"string"},
        "v":{"type":"integer","maximum":1}}}}}})";
  EXPECT_EQ(problems(schema, R"({"a":"y"})", R"({"a":"y"})"), Texts{});
  EXPECT_EQ(problems(schema, R"({"a":"z"})", R"({"a":"y"})").size(), 1U);
  EXPECT_EQ(
      problems(schema, R"({"l":[{"k":"n","v":1},{"k":"o","v":9}]})", R"({"l":[{"k":"o","v":9}]})"),
      Texts{});
}

TEST(CrdSchema, AnswersHaveABound) {
  std::string object = R"({"a":[)";
  for (int i = 0; i < 5000; ++i) object += i == 0 ? "1" : fmt::format(",{}", i);
  object += "]}";
  const char* schema =
      R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}})";
  EXPECT_LE(problems(schema, object).size(), kSchemaErrorsMax);
}

TEST(CrdSchema, UnknownFieldsGoAndAreListed) {
  const auto schema = compiled(R"({"type":"object","properties":{
    "spec":{"type":"object","properties":{"a":{"type":"array","items":{"type":"object",
      "properties":{"b":{"type":"string"}}}},
      "open":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
        "properties":{"shut":{"type":"object","properties":{"k":{"type":"string"}}}}},
      "map":{"type":"object","additionalProperties":{"type":"string"}}}}}})");
  Value object = parse(R"({"apiVersion":"x/v1","kind":"K","metadata":{"name":"n"},"more":1,
    "spec":{"a":[{"b":"x","c":1}],"open":{"any":{"x":1},"shut":{"k":"v","l":1}},"map":{"q":"r"}}})");
  std::vector<std::string> unknown;
  prune_unknown(*schema, object, &unknown);
  EXPECT_EQ(unknown, (Texts{"more", "spec.a[0].c", "spec.open.shut.l"}));
  EXPECT_EQ(object["spec"], parse(R"({"a":[{"b":"x"}],"open":{"any":{"x":1},"shut":{"k":"v"}},
    "map":{"q":"r"}})"));
  EXPECT_EQ(object["metadata"]["name"], Value("n"));
}

TEST(CrdSchema, DefaultsAreSetWhereNothingStands) {
  const auto schema = compiled(R"({"type":"object","properties":{
    "spec":{"type":"object","default":{},"properties":{"n":{"type":"integer","default":3},
      "t":{"type":"string","nullable":true,"default":"x"},"u":{"type":"string"},
      "l":{"type":"array","items":{"type":"object","properties":{"p":{"type":"string",
        "default":"TCP"}}}}}}}})");
  Value object = parse("{}");
  fill_defaults(*schema, object);
  EXPECT_EQ(object, parse(R"({"spec":{"n":3,"t":"x"}})"));
  object = parse(R"({"spec":{"n":null,"t":null,"u":null,"l":[{},{"p":"UDP"}]}})");
  fill_defaults(*schema, object);
  EXPECT_EQ(object, parse(R"({"spec":{"n":3,"t":null,"l":[{"p":"TCP"},{"p":"UDP"}]}})"));
}

TEST(CrdSchema, SetsAndMapsHaveEachElementOnce) {
  const auto schema = compiled(R"({"type":"object","properties":{
    "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
      "items":{"type":"object","properties":{"k":{"type":"string"}}}}}})");
  FieldErrors errors;
  validate_lists(*schema, parse(R"({"s":["a","b","a","a"],"m":[{"k":"x"},{"k":"x"}]})"), errors);
  ASSERT_EQ(errors.causes().size(), 2U);
  EXPECT_EQ(errors.causes()[0].field, "m[1]");
  EXPECT_EQ(errors.causes()[0].message, R"(Duplicate value: {"k":"x"})");
  EXPECT_EQ(errors.causes()[1].field, "s[2]");
}

TEST(CrdSchema, ObjectsWithinObjectsHaveTypeAndMetadata) {
  const auto schema = compiled(R"({"type":"object","properties":{"t":{"type":"object",
    "x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}})");
  FieldErrors errors;
  validate_embedded(*schema, parse(R"({"t":{"kind":"Pod","metadata":{"labels":{"-":"x"}}}})"),
                    errors);
  ASSERT_EQ(errors.causes().size(), 2U);
  EXPECT_EQ(errors.causes()[0].field, "t.apiVersion");
  EXPECT_EQ(errors.causes()[1].field, "t.metadata.labels");
}

TEST(CrdSchema, PatternsThatDoNotCompileOrNestTooDeepAreErrors) {
  const auto bad = compile_pattern("[a");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "error parsing regexp: missing closing ]: `[a`");
  Value deep = Value::object();
  for (int i = 0; i < 400; ++i) deep = Value::object({{"type", "array"}, {"items", deep}});
  EXPECT_FALSE(compile_schema(deep));
}

TEST(CrdSchema, FormatsAreThoseOfKubernetes) {
  const std::pair<const char*, const char*> good[] = {{"date-time", "2024-02-29T12:00:00Z"},
                                                      {"date", "2024-02-29"},
                                                      {"ipv4", "10.0.0.1"},
                                                      {"ipv6", "::1"},
                                                      {"cidr", "10.0.0.0/8"},
                                                      {"duration", "1h30m"},
                                                      {"duration", "22 ns"},
                                                      {"hostname", "a.example.com"},
                                                      {"byte", "aGk="},
                                                      {"isbn10", "0321751043"},
                                                      {"isbn13", "978-0321751041"},
                                                      {"creditcard", "4111 1111 1111 1111"},
                                                      {"email", "a@b.c"},
                                                      {"uri", "https://x/y"},
                                                      {"mac", "00:11:22:33:44:55"},
                                                      {"k8s-short-name", "abc"},
                                                      {"password", "anything"},
                                                      {"no-such-format", "x"}};
  for (const auto& [format, text] : good) EXPECT_TRUE(has_format(format, text)) << format;
  const std::pair<const char*, const char*> bad[] = {
      {"date", "2023-02-29"},  {"ipv4", "10.0.0.256"}, {"ipv6", "10.0.0.1"},
      {"cidr", "10.0.0.0/33"}, {"duration", "soon"},   {"hostname", "-a.b"},
      {"byte", "a"},           {"isbn", "1"},          {"creditcard", "1234"},
      {"email", "nobody"},     {"uri", "nothing"},     {"k8s-short-name", "A"}};
  for (const auto& [format, text] : bad) EXPECT_FALSE(has_format(format, text)) << format;
  EXPECT_FALSE(is_known_format("integer", "date"));
  EXPECT_TRUE(is_known_format("string", "date-time"));
}

TEST(CrdTypes, TellHowListsAndMapsAreMerged) {
  const auto schema =
      compiled(R"({"type":"object","properties":{"spec":{"type":"object","properties":{
    "m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
      "items":{"type":"object","properties":{"k":{"type":"string"}}}},
    "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "a":{"type":"array","items":{"type":"string"}},
    "labels":{"type":"object","additionalProperties":{"type":"string"}},
    "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}})");
  const CrdTypes types(*schema, "t");
  ASSERT_NE(types.root().field("metadata"), nullptr);
  const kube::SchemaType* spec = types.root().field("spec")->object;
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(spec->field("m")->list_map_keys, std::vector<std::string_view>{"k"});
  EXPECT_TRUE(spec->field("s")->list_set);
  EXPECT_TRUE(spec->field("a")->atomic);
  EXPECT_TRUE(spec->field("labels")->map);
  EXPECT_EQ(spec->field("free")->type, kube::FieldType::kAny);
}

TEST(JsonPath, FindsWhatKubectlWouldFind) {
  const Value object =
      parse(R"({"a":{"b":[{"t":"x","v":1},{"t":"y","v":2}],"c.d":"dot"},"n":null})");
  const std::pair<const char*, const char*> rows[] = {{".a.b[0].v", "[1]"},
                                                      {".a.b[-1].v", "[2]"},
                                                      {".a.b[*].v", "[1,2]"},
                                                      {".a.b[?(@.t==\"y\")].v", "[2]"},
                                                      {".a.b[?(@.v>1)].t", R"(["y"])"},
                                                      {".a.c\\.d", R"(["dot"])"},
                                                      {".a['c.d']", R"(["dot"])"},
                                                      {"..v", "[1,2]"},
                                                      {".a.b[0:1].t", R"(["x"])"},
                                                      {".a.none", "[]"},
                                                      {".a.b[7]", "[]"},
                                                      {".n", "[null]"}};
  for (const auto& [path, expected] : rows) {
    const auto parsed = JsonPath::parse(path);
    ASSERT_TRUE(parsed) << path;
    auto found = parsed->find(object, 10);
    EXPECT_EQ(json::array_of(found).dump(), expected) << path;
  }
  for (const char* path : {".a[", ".a[x]", ".a b", "..", ".a[?(]", ".a[?(@.b==)]"}) {
    EXPECT_FALSE(JsonPath::parse(path)) << path;
  }
}

}  // namespace
}  // namespace tessera::apiserver
