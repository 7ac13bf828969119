#include "kube/field_set.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "json/parse.h"

namespace tessera::kube {
namespace {

using json::Value;

FieldSet read(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value);
  auto set = FieldSet::from_fields_v1(*value);
  EXPECT_TRUE(set) << (set ? "" : set.error().message);
  return set ? *set : FieldSet();
}

std::vector<std::string> paths(const FieldSet& set) {
  std::vector<std::string> out;
  set.each([&](const FieldPath& path) { out.push_back(to_string(path)); });
  return out;
}

TEST(FieldSet, NamesItsMembersAsKubernetesDoes) {
  const FieldSet set = read(
      R"({"f:spec":{"f:replicas":{},"f:ports":{".":{},"k:{\"protocol\":\"TCP\",\"port\":443}":{},
      "k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}},"f:set":{"v:\"a<b\"":{},"v:2":{}},
      "f:list":{"i:10":{},"i:9":{}}}})");
  EXPECT_EQ(
      paths(set),
      (std::vector<std::string>{
          ".spec.ports", ".spec.replicas", ".spec.list[9]", ".spec.list[10]",
          R"(.spec.ports[port=80,protocol="TCP"])", R"(.spec.ports[port=443,protocol="TCP"])",
          R"(.spec.ports[port=80,protocol="TCP"].port)", ".spec.set[=2]", R"(.spec.set[="a<b"])"}));
  EXPECT_EQ(set.size(), 9U);
}

TEST(FieldSet, KeysAreCanonicalWhateverTheirSpelling) {
  EXPECT_EQ(read(R"({"f:a":{"k:{\"y\":1, \"x\":2.0}":{}}})"),
            read(R"({"f:a":{"k:{\"x\":2,\"y\":1}":{}}})"));
  EXPECT_EQ(read(R"({"f:a":{"k:{\"x\":1}":{"f:b":{}},"k: {\"x\":1}":{"f:c":{}}}})"),
            read(R"({"f:a":{"k:{\"x\":1}":{"f:b":{},"f:c":{}}}})"));
  EXPECT_EQ(read(R"({"f:a":{"v:\"<\"":{}}})").node().members()[0].value.members()[0].name(),
            R"(v:"\u003c")");
}

TEST(FieldSet, UnknownStepsAreLeftOutAndBrokenOnesRefused) {
  EXPECT_EQ(read(R"({"f:a":{},"x:1":{"f:b":{}}})"), read(R"({"f:a":{}})"));
  EXPECT_EQ(read(R"({"f:a":{"x:1":{}}})"), read(R"({"f:a":{}})"));
  EXPECT_TRUE(read(R"({".":{}})").empty());
  for (const char* text : {R"({"f":{}})", R"({"fa":{}})", R"({"f:a":{"k:1":{}}})", R"([])",
                           R"({"f:a":{"k:{":{}}})", R"({"f:a":{"v:":{}}})", R"({"f:a":1})",
                           R"({"f:a":{"i:1x":{}}})", R"({"f:a":{"i:99999999999999999999":{}}})"}) {
    const auto set = FieldSet::from_fields_v1(*json::parse(text));
    ASSERT_FALSE(set) << text;
    EXPECT_EQ(set.error().code, base::Code::kBadRequest);
  }
}

TEST(FieldSet, RemovingAParentKeepsItsChildrenUnlessTheWholeTreeGoes) {
  const FieldSet set{{"f:a"}, {"f:a", "f:b"}, {"f:c"}};
  EXPECT_EQ(set.without(FieldSet{{"f:a"}}), (FieldSet{{"f:a", "f:b"}, {"f:c"}}));
  EXPECT_EQ(set.without_trees(FieldSet{{"f:a"}}), (FieldSet{{"f:c"}}));
  EXPECT_EQ(set.without(FieldSet{{"f:a", "f:b"}}), (FieldSet{{"f:a"}, {"f:c"}}));
  EXPECT_TRUE(set.without(set).empty());
}

// Sets of paths as plain sets: the model.
FieldSet random_set(base::Random& random, std::set<FieldPath>& model) {
  FieldSet out;
  const uint64_t count = random.below(8);
  for (uint64_t i = 0; i < count; ++i) {
    FieldPath path;
    const uint64_t depth = 1 + random.below(3);
    for (uint64_t d = 0; d < depth; ++d) {
      constexpr const char* kSteps[] = {"f:a", "f:b", R"(k:{"n":1})", R"(v:"x")"};
      path.emplace_back(kSteps[random.below(4)]);
    }
    out.insert(path);
    model.insert(path);
  }
  return out;
}

std::set<FieldPath> members(const FieldSet& set) {
  std::set<FieldPath> out;
  set.each([&](const FieldPath& path) { out.insert(path); });
  return out;
}

TEST(FieldSet, OperationsAgreeWithPlainSets) {
  base::Random random(7);
  for (int round = 0; round < 3000; ++round) {
    std::set<FieldPath> ma;
    std::set<FieldPath> mb;
    const FieldSet a = random_set(random, ma);
    const FieldSet b = random_set(random, mb);
    ASSERT_EQ(members(a), ma);
    std::set<FieldPath> both = ma;
    both.insert(mb.begin(), mb.end());
    std::set<FieldPath> shared;
    std::set<FieldPath> left;
    std::set<FieldPath> left_trees;
    for (const FieldPath& path : ma) {
      (mb.contains(path) ? shared : left).insert(path);
      bool below = false;
      for (size_t n = 1; n <= path.size(); ++n) {
        below = below || mb.contains(FieldPath(path.begin(), path.begin() + static_cast<long>(n)));
      }
      if (!below) left_trees.insert(path);
    }
    EXPECT_EQ(members(a.united_with(b)), both);
    EXPECT_EQ(members(a.intersected_with(b)), shared);
    EXPECT_EQ(members(a.without(b)), left);
    EXPECT_EQ(members(a.without_trees(b)), left_trees);
    EXPECT_EQ(a.united_with(b), b.united_with(a));
    EXPECT_EQ(a.without(b).united_with(a.intersected_with(b)), a);
    EXPECT_EQ(*FieldSet::from_fields_v1(*json::parse(a.to_fields_v1().dump())), a);
    EXPECT_TRUE(a.united_with(a.intersected_with(b)).same_node(a));
  }
}

}  // namespace
}  // namespace tessera::kube
