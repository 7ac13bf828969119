#include "kube/apply.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/random.h"
#include "json/parse.h"

namespace tessera::kube {
namespace {

using json::Value;

Value parsed(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value) << text << (value ? "" : value.error().message);
  return value ? *value : Value();
}

base::Time at(int64_t second) {
  return base::Time{(1'700'000'000 + second) * 1'000'000'000};
}

OwnershipRules deployment() {
  OwnershipRules rules;
  rules.type = find_kind_schema("apps", "v1", "Deployment");
  rules.api_version = "apps/v1";
  rules.kind = "Deployment";
  rules.reset = &reset_fields("Deployment", true, false, "");
  return rules;
}

Value config(std::string_view spec, std::string_view meta = "{}") {
  Value object = parsed(R"({"apiVersion":"apps/v1","kind":"Deployment"})");
  object.set("metadata", parsed(meta));
  object.ref("metadata", "name") = "n";
  object.set("spec", parsed(spec));
  return object;
}

Value applied(const Value& live, std::string_view spec, std::string_view manager,
              bool force = false, int64_t second = 0) {
  auto out = apply(deployment(), live, config(spec), {manager, "", at(second)}, force);
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out ? *out : Value();
}

Value updated(const Value& before, Value after, std::string_view manager, int64_t second = 0,
              std::string_view subresource = "") {
  OwnershipRules rules = deployment();
  rules.reset = &reset_fields("Deployment", true, false, subresource);
  Value list = track_update(rules, before, after, {manager, subresource, at(second)});
  after.ref("metadata").erase("managedFields");
  if (!list.is_null()) after.ref("metadata", "managedFields") = std::move(list);
  return after;
}

const Value& fields(const Value& object) {
  return object["metadata"]["managedFields"];
}

TEST(Apply, AConflictNamesTheManagerTheFieldAndTheCause) {
  const Value live = updated({}, config(R"({"replicas":1,"paused":true})"), "client-side");
  const auto one = apply(deployment(), live, config(R"({"replicas":2})"), {"me", "", at(1)}, false);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, base::Code::kConflict);
  EXPECT_EQ(one.error().message,
            "Apply failed with 1 conflict: conflict with \"client-side\" using apps/v1: "
            ".spec.replicas");
  ASSERT_EQ(one.error().causes.size(), 1U);
  EXPECT_EQ(one.error().causes[0].reason, "FieldManagerConflict");
  EXPECT_EQ(one.error().causes[0].message, "conflict with \"client-side\" using apps/v1");
  EXPECT_EQ(one.error().causes[0].field, ".spec.replicas");

  const Value forced = applied(live, R"({"replicas":2})", "me", true);
  const auto several = apply(deployment(), forced, config(R"({"replicas":3,"paused":false})"),
                             {"you", "", at(1)}, false);
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().message,
            "Apply failed with 2 conflicts: conflicts with \"client-side\" using apps/v1:\n"
            "- .spec.paused\nconflicts with \"me\":\n- .spec.replicas");
}

TEST(Apply, FieldsNoLongerAppliedGoUnlessSomebodyElseOwnsThem) {
  Value live = applied({}, R"({"replicas":1,"paused":true,"minReadySeconds":3})", "a");
  live = applied(live, R"({"paused":true})", "b");
  live = applied(live, R"({"replicas":1})", "a");
  EXPECT_EQ(live["spec"]["paused"], Value(true));
  EXPECT_FALSE(live["spec"].contains("minReadySeconds"));
  EXPECT_EQ(live["spec"]["replicas"], Value(1));
}

TEST(Apply, RequestsThatAreNoneAreRefusedAsKubernetesDoes) {
  const auto refusal = [](const Value& request) {
    const auto out = apply(deployment(), {}, request, {"a", "", at(0)}, false);
    EXPECT_FALSE(out);
    return out ? std::string() : out.error().message;
  };
  EXPECT_EQ(refusal(parsed(R"({"apiVersion":"v1","kind":"Pod"})")),
            "invalid object type: /v1, Kind=Pod");
  EXPECT_EQ(refusal(config("{}", R"({"managedFields":[]})")), "metadata.managedFields must be nil");
  EXPECT_EQ(refusal(config(R"({"replicas":"1"})", R"({"namespace":"ns"})")),
            "failed to create typed patch object (ns/n; apps/v1, Kind=Deployment): .spec.replicas: "
            "expected numeric (int or float), got string");
  EXPECT_EQ(refusal(config(R"({"template":{"spec":{"containers":[{"name":"a"},{"name":"a"}]}}})")),
            "failed to create typed patch object (/n; apps/v1, Kind=Deployment): "
            ".spec.template.spec.containers: duplicate entries for key [name=\"a\"]");
  EXPECT_FALSE(apply(deployment(), {}, Value("text"), {"a", "", at(0)}, false));
}

TEST(Apply, KubectlTakesOverWhatItAppliedFromTheClientsSide) {
  const std::string last = R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"n"},)"
                           R"("spec":{"replicas":1}})";
  Value first = config(R"({"replicas":1})");
  first.ref("metadata", "annotations") =
      Value::object({{"kubectl.kubernetes.io/last-applied-configuration", last}});
  const Value live = updated({}, first, "kubectl-client-side-apply");
  EXPECT_FALSE(apply(deployment(), live, config(R"({"replicas":2})"), {"x", "", at(1)}, false));
  const Value taken = applied(live, R"({"replicas":2})", "kubectl");
  EXPECT_EQ(taken["spec"]["replicas"], Value(2));
  EXPECT_EQ(
      taken["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].str(),
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"n"},"spec":{"replicas":2}})"
      "\n");
}

TEST(Apply, AnObjectNobodyTrackedBelongsToBeforeFirstApply) {
  const Value live = applied(config(R"({"replicas":1})"), R"({"paused":true})", "a");
  ASSERT_EQ(fields(live).size(), 2U);
  EXPECT_EQ(fields(live).at(1)["manager"], Value("before-first-apply"));
  EXPECT_EQ(fields(live).at(1)["fieldsV1"], parsed(R"({"f:spec":{"f:replicas":{}}})"));
}

TEST(Apply, TheTimeMovesOnlyWithTheObject) {
  Value live = applied({}, R"({"replicas":1})", "a", false, 1);
  live = applied(live, R"({"replicas":1})", "a", false, 2);
  EXPECT_EQ(fields(live).at(0)["time"], Value("2023-11-14T22:13:21Z"));
  live = applied(live, R"({"replicas":2})", "a", false, 3);
  EXPECT_EQ(fields(live).at(0)["time"], Value("2023-11-14T22:13:23Z"));
}

// A random configuration out of a few fields, so that managers meet.
Value random_spec(base::Random& random) {
  Value spec = Value::object();
  for (const char* name : {"replicas", "minReadySeconds", "revisionHistoryLimit"}) {
    if (random.below(2) == 0) spec.set(name, static_cast<int64_t>(random.below(3)));
  }
  Value containers = Value::array();
  for (const char* name : {"a", "b", "c"}) {
    if (random.below(2) != 0) continue;
    Value container = Value::object({{"name", name}});
    if (random.below(2) == 0) container.set("image", random.below(2) == 0 ? "x" : "y");
    containers.push_back(container);
  }
  if (!containers.empty()) spec.ref("template", "spec", "containers") = containers;
  return spec;
}

TEST(Apply, TheSameConfigurationTwiceChangesNothing) {
  base::Random random(3);
  Value live;
  for (int round = 0; round < 2000; ++round) {
    const std::string manager(1, static_cast<char>('a' + random.below(4)));
    const Value object = config(random_spec(random).dump());
    const auto once = apply(deployment(), live, object, {manager, "", at(round)}, true);
    ASSERT_TRUE(once);
    const auto twice = apply(deployment(), *once, object, {manager, "", at(round + 1)}, false);
    ASSERT_TRUE(twice) << twice.error().message;
    ASSERT_EQ(*once, *twice);
    live = *once;
  }
}

TEST(Apply, ManagersOfOtherFieldsNeverConflict) {
  base::Random random(5);
  for (int round = 0; round < 300; ++round) {
    Value live;
    for (int step = 0; step < 12; ++step) {
      const int64_t who = static_cast<int64_t>(random.below(3));
      const std::string name = "m" + std::to_string(who);
      Value labels = Value::object();
      for (int i = 0; i < 3; ++i) {
        const std::string label = name + std::to_string(i);
        if (random.below(2) == 0) labels.set(label, std::to_string(random.below(3)));
      }
      Value object = config("{}");
      if (!labels.empty()) object.ref("metadata", "labels") = labels;
      const auto out = apply(deployment(), live, object, {name, "", at(step)}, false);
      ASSERT_TRUE(out) << out.error().message;
      // What each applied last is there, and nothing else of its own.
      for (const json::Member& label : (*out)["metadata"]["labels"].members()) {
        if (label.name().starts_with(name)) {
          ASSERT_EQ(label.value, labels[label.name()]);
        }
      }
      live = *out;
    }
  }
}

TEST(TrackUpdate, AStatusIsOwnedThroughItsSubresourceAlone) {
  Value object = config(R"({"replicas":1})");
  object.set("status", parsed(R"({"replicas":1})"));
  Value live = updated({}, object, "a");
  EXPECT_EQ(fields(live).size(), 1U);
  EXPECT_FALSE(fields(live).at(0)["fieldsV1"].contains("f:status"));
  Value after = live;
  after.ref("status", "replicas") = 2;
  after.ref("spec", "replicas") = 5;
  after.ref("metadata", "labels") = parsed(R"({"a":"b"})");
  live = updated(live, after, "controller", 1, "status");
  ASSERT_EQ(fields(live).size(), 2U);
  EXPECT_EQ(fields(live).at(1)["fieldsV1"], parsed(R"({"f:status":{"f:replicas":{}}})"));
  EXPECT_EQ(fields(live).at(1)["subresource"], Value("status"));
}

TEST(TrackUpdate, AListOfNothingGivesTheOwnershipUpUntilTheNextApply) {
  const Value live = updated({}, config(R"({"replicas":1})"), "a");
  for (const char* none : {"[]", "[{}]"}) {
    Value after = live;
    after.ref("metadata", "managedFields") = parsed(none);
    EXPECT_TRUE(fields(updated(live, after, "b", 1)).is_null());
  }
  Value broken = live;
  broken.ref("metadata", "managedFields") = parsed(R"([{"manager":"x","operation":"Steal"}])");
  EXPECT_EQ(fields(updated(live, broken, "b", 1)), fields(live));
  Value untracked = live;
  untracked.ref("metadata").erase("managedFields");
  Value after = untracked;
  after.ref("spec", "replicas") = 3;
  EXPECT_TRUE(fields(updated(untracked, after, "b", 1)).is_null());
}

TEST(TrackUpdate, ElevenUpdatersMakeTheOldestAncient) {
  Value live = updated({}, config(R"({"replicas":0})"), "m00");
  for (int i = 1; i < 14; ++i) {
    Value after = live;
    after.ref("metadata", "labels").set("l" + std::to_string(i), "x");
    live = updated(live, after, fmt::format("m{:02}", i), i);
  }
  ASSERT_EQ(fields(live).size(), 10U);
  EXPECT_EQ(fields(live).at(0)["manager"], Value("ancient-changes"));
  EXPECT_EQ(fields(live).at(9)["manager"], Value("m13"));
  EXPECT_TRUE(fields(live).at(0)["fieldsV1"]["f:metadata"]["f:labels"].contains("f:l4"));
}

TEST(TrackUpdate, TimesAloneAreNoChange) {
  const Value live = updated({}, config(R"({"replicas":1})"), "a");
  Value later = live;
  later.ref("metadata", "managedFields").ref_at(0).set("time", "2024-01-01T00:00:00Z");
  EXPECT_TRUE(keep_times(live, later).same_node(fields(live)));
  later.ref("spec", "replicas") = 2;
  EXPECT_TRUE(keep_times(live, later).same_node(fields(later)));
}

TEST(TrackUpdate, TheFirstWordOfTheUserAgentIsTheManager) {
  EXPECT_EQ(manager_of_user_agent("kubectl/v1.36.3 (linux/amd64) kubernetes/abc"), "kubectl");
  EXPECT_EQ(manager_of_user_agent("Mozilla 5.0"), "Mozilla 5.0");
  EXPECT_EQ(manager_of_user_agent("a\tb\x01/2"), "ab");
  EXPECT_EQ(manager_of_user_agent(std::string(200, 'x')).size(), 128U);
  EXPECT_EQ(manager_of_user_agent(""), "");
}

// A custom resource: types that are made at run time.
struct Custom {
  std::deque<SchemaType> types;
  OwnershipRules rules;

  Custom() {
    SchemaType& item = types.emplace_back();
    item.name = "Item";
    item.fields = {field("id", FieldType::kString), field("n", FieldType::kInt64)};
    SchemaType& spec = types.emplace_back();
    spec.name = "Spec";
    SchemaField items = field("items", FieldType::kObject);
    items.object = &item;
    items.list = true;
    items.list_map_keys = {"id"};
    SchemaField words = field("words", FieldType::kString);
    words.list = true;
    words.list_set = true;
    spec.fields = {field("free", FieldType::kAny), items, words};
    SchemaType& root = types.emplace_back();
    root.name = "Root";
    SchemaField meta = field("metadata", FieldType::kObject);
    meta.object = find_schema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    SchemaField spec_field = field("spec", FieldType::kObject);
    spec_field.object = &spec;
    root.fields = {field("apiVersion", FieldType::kString), field("kind", FieldType::kString), meta,
                   spec_field};
    rules.type = &root;
    rules.api_version = "x.y/v1";
    rules.kind = "Root";
    rules.custom = true;
  }
  static SchemaField field(std::string_view name, FieldType type) {
    SchemaField out;
    out.name = name;
    out.type = type;
    return out;
  }
  Value object(std::string_view spec) const {
    Value out = parsed(R"({"apiVersion":"x.y/v1","kind":"Root","metadata":{"name":"n"}})");
    out.set("spec", parsed(spec));
    return out;
  }
};

TEST(ApplyCustom, ItsListsMapsAndFreeFieldsFollowItsType) {
  const Custom custom;
  const Value first = custom.object(
      R"({"items":[{"id":"a","n":1}],"words":["x"],"free":{"deep":{"a":1},"list":[1]}})");
  auto live = apply(custom.rules, {}, first, {"a", "", at(0)}, false);
  ASSERT_TRUE(live);
  EXPECT_EQ(fields(*live).at(0)["fieldsV1"]["f:spec"],
            parsed(R"({"f:free":{"f:deep":{".":{},"f:a":{}},"f:list":{}},"f:items":{
                       "k:{\"id\":\"a\"}":{".":{},"f:id":{},"f:n":{}}},"f:words":{"v:\"x\"":{}}})"));
  live = apply(custom.rules, *live,
               custom.object(R"({"items":[{"id":"b"}],"words":["y"],"free":{"deep":{"b":2}}})"),
               {"b", "", at(1)}, false);
  ASSERT_TRUE(live);
  EXPECT_EQ((*live)["spec"],
            parsed(R"({"free":{"deep":{"a":1,"b":2},"list":[1]},"items":[{"id":"a","n":1},
                       {"id":"b"}],"words":["x","y"]})"));
  live = apply(custom.rules, *live, custom.object("{}"), {"a", "", at(2)}, false);
  ASSERT_TRUE(live);
  EXPECT_EQ((*live)["spec"],
            parsed(R"({"free":{"deep":{"b":2}},"items":[{"id":"b"}],"words":["y"]})"));
}

TEST(ApplyCustom, ItsFirstWriterOwnsItsStructs) {
  const Custom custom;
  const Value list =
      track_update(custom.rules, {}, custom.object(R"({"words":["x"]})"), {"a", "", at(0)});
  EXPECT_EQ(list.at(0)["fieldsV1"],
            parsed(R"({"f:spec":{".":{},"f:words":{".":{},"v:\"x\"":{}}}})"));
}

TEST(ApplyCustom, EntriesFollowAListThatBecameAtomicAndVersionsThatAreServed) {
  Custom custom;
  const auto live =
      apply(custom.rules, {}, custom.object(R"({"items":[{"id":"a"}]})"), {"a", "", at(0)}, false);
  ASSERT_TRUE(live);
  auto& items = custom.types[1].fields[1];
  items.list_map_keys.clear();
  items.atomic = true;
  Value after = *live;
  after.ref("spec", "words") = parsed(R"(["x"])");
  const Value list = track_update(custom.rules, *live, after, {"b", "", at(1)});
  EXPECT_EQ(list.at(0)["fieldsV1"], parsed(R"({"f:spec":{"f:items":{}}})"));
  custom.rules.api_version = "x.y/v2";
  EXPECT_EQ(track_update(custom.rules, *live, after, {"b", "", at(1)}).size(), 1U);
  custom.rules.serves = [](std::string_view version) { return version == "x.y/v1"; };
  EXPECT_EQ(track_update(custom.rules, *live, after, {"b", "", at(1)}).size(), 2U);
}

}  // namespace
}  // namespace tessera::kube
