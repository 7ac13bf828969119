#include "apiserver/table.h"

#include <gtest/gtest.h>

#include "apiserver/routes_test_kinds.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using json::Value;

Value pod(std::string_view name) {
  return Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", Value::object({{"name", name},
                                   {"resourceVersion", "7"},
                                   {"creationTimestamp", "2026-11-30T09:00:00Z"}})},
       {"spec", Value::object({{"nodeName", "n1"}})},
       {"status", Value::object({{"phase", "Running"}})}});
}

const Kind& kind_of(std::string_view plural) {
  return *test_kinds().find({"", "v1", std::string(plural)});
}

TEST(Table, ListHasARowAnItemAndTheListsMetadata) {
  const Value list = Value::object(
      {{"apiVersion", "v1"},
       {"kind", "PodList"},
       {"metadata",
        Value::object({{"resourceVersion", "9"}, {"continue", "abc"}, {"remainingItemCount", 3}})},
       {"items", Value::array({pod("a"), pod("b")})}});
  const Value table = to_table(kind_of("pods"), list, {});
  EXPECT_EQ(table["kind"].as_string(), "Table");
  EXPECT_EQ(table["apiVersion"].as_string(), "meta.k8s.io/v1");
  EXPECT_EQ(table["metadata"].dump(),
            R"({"continue":"abc","remainingItemCount":3,"resourceVersion":"9"})");
  ASSERT_EQ(table["rows"].size(), 2u);
  EXPECT_EQ(table["rows"].at(1)["cells"].dump(), R"(["b","Running","n1"])");
  EXPECT_EQ(table["columnDefinitions"].at(0).dump(),
            R"({"description":"","format":"name","name":"Name","priority":0,"type":"string"})");
  EXPECT_EQ(table["columnDefinitions"].at(2)["priority"].as_int(), 1);
}

TEST(Table, SingleObjectHasOneRowAndItsVersion) {
  const Value table = to_table(kind_of("pods"), pod("a"), {.version = "v1beta1"});
  EXPECT_EQ(table["apiVersion"].as_string(), "meta.k8s.io/v1beta1");
  EXPECT_EQ(table["metadata"].dump(), R"({"resourceVersion":"7"})");
  ASSERT_EQ(table["rows"].size(), 1u);
}

TEST(Table, RowShowsNoObjectItsMetadataOrAllOfIt) {
  const auto object = [](RowObject how) {
    return to_table(kind_of("pods"), pod("a"), {.object = how})["rows"].at(0)["object"];
  };
  EXPECT_TRUE(object(RowObject::kNone).is_null());
  EXPECT_EQ(object(RowObject::kMetadata)["kind"].as_string(), "PartialObjectMetadata");
  EXPECT_EQ(object(RowObject::kMetadata).get("metadata", "name").as_string(), "a");
  EXPECT_FALSE(object(RowObject::kMetadata).contains("spec"));
  EXPECT_EQ(object(RowObject::kObject), pod("a"));
}

TEST(Table, KindWithoutColumnsShowsNameAndAge) {
  const auto now = base::parse_rfc3339("2026-11-30T09:03:20Z");
  const Value table = to_table(kind_of("nodes"), pod("n1"), {.now = *now});
  EXPECT_EQ(table["rows"].at(0)["cells"].dump(), R"(["n1","3m20s"])");
  const Value bare = to_table(kind_of("nodes"), Value::object(), {});
  EXPECT_EQ(bare["rows"].at(0)["cells"].dump(), R"(["","<unknown>"])");
}

TEST(Table, LaterEventsNameNoColumns) {
  const Value table = to_table(kind_of("pods"), pod("a"), {.column_definitions = false});
  EXPECT_TRUE(table["columnDefinitions"].is_null());
  EXPECT_EQ(table["rows"].size(), 1u);
}

TEST(PartialMetadata, KeepsOnlyMetadata) {
  const Value list = Value::object({{"kind", "PodList"},
                                    {"metadata", Value::object({{"resourceVersion", "9"}})},
                                    {"items", Value::array({pod("a")})}});
  const Value partial = to_partial_metadata_list(list, "v1");
  EXPECT_EQ(partial["kind"].as_string(), "PartialObjectMetadataList");
  EXPECT_EQ(partial.get("metadata", "resourceVersion").as_string(), "9");
  EXPECT_EQ(partial["items"].at(0)["metadata"], pod("a")["metadata"]);
  EXPECT_FALSE(partial["items"].at(0).contains("spec"));
}

}  // namespace
}  // namespace tessera::apiserver
