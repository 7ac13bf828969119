#include <gtest/gtest.h>

#include "apiserver/kinds_cases.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using namespace testing_kinds;

const Kind& new_events() {
  static const Kinds* const kKinds = [] {
    auto* kinds = new Kinds();
    add_view_kinds(*kinds);
    return kinds;
  }();
  return *kKinds->find_kind("events.k8s.io", "v1", "Event");
}

constexpr const char* kEvent = R"(
metadata: {name: e, namespace: default}
regarding: {kind: Pod, name: p, namespace: default}
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: example.com/c
reportingInstance: c-0
action: Bind
reason: Bound
type: Normal
note: hello)";

TEST(EventView, StoresTheEventAsTheCoreDoesAndBack) {
  const KindView& view = *new_events().view;
  const Value sent = *kube::normalize(*new_events().schema, from_yaml(kEvent), nullptr);
  const Value kept = view.to_stored(sent);
  EXPECT_EQ(kept["apiVersion"].as_string(), "v1");
  EXPECT_EQ(kept["involvedObject"]["name"].as_string(), "p");
  EXPECT_EQ(kept["message"].as_string(), "hello");
  EXPECT_EQ(kept["reportingComponent"].as_string(), "example.com/c");
  EXPECT_FALSE(kept.contains("note") || kept.contains("regarding"));
  const Value shown = view.from_stored(kept);
  EXPECT_EQ(shown["apiVersion"].as_string(), "events.k8s.io/v1");
  EXPECT_EQ(shown["note"].as_string(), "hello");
  EXPECT_EQ(view.to_stored(shown), kept);
  EXPECT_EQ(view.from_stored(from_yaml("{count: 3, source: {component: k}}"))["deprecatedCount"],
            Value(3));
}

TEST(EventView, NamesFieldsAsTheyAreStored) {
  const KindView& view = *new_events().view;
  EXPECT_EQ(view.stored_field("regarding.name"), "involvedObject.name");
  EXPECT_EQ(view.stored_field("reportingController"), "reportingComponent");
  EXPECT_EQ(view.stored_field("reason"), "reason");
}

TEST(EventView, IsStricterThanTheCore) {
  const Kind& kind = new_events();
  const Value good =
      kind.view->to_stored(*kube::normalize(*kind.schema, from_yaml(kEvent), nullptr));
  const auto wrong = [&](const char* change) {
    FieldErrors errors;
    kind.validate(json::apply_merge_patch(good, from_yaml(change)), errors);
    std::string out;
    for (const base::Cause& cause : errors.causes()) out += cause.field + ": " + cause.message;
    return out;
  };
  EXPECT_EQ(wrong("{}"), "");
  EXPECT_EQ(wrong("{eventTime: null}"), "eventTime: Required value");
  EXPECT_EQ(wrong("{type: Odd}"), "type: Invalid value: \"\": has invalid value: Odd");
  EXPECT_EQ(wrong("{series: {count: 1, lastObservedTime: \"2026-01-01T00:00:00.000000Z\"}}"),
            "series.count: Invalid value: \"\": should be at least 2");
  EXPECT_EQ(wrong("{series: {count: 2}}"), "series.lastObservedTime: Required value");
  FieldErrors errors;
  kind.validate_update(json::apply_merge_patch(good, from_yaml("{message: other}")), good, errors);
  ASSERT_EQ(errors.causes().size(), 1U);
  EXPECT_EQ(errors.causes()[0].field, "message");
}

}  // namespace
}  // namespace tessera::apiserver
