// Other faces of kinds, through the verbs: what is written through one is read through the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using ::testing::HasSubstr;

constexpr const char* kNew = "events.events.k8s.io";

Value new_event() {
  return TestApi::parse(R"({"apiVersion":"events.k8s.io/v1","kind":"Event",
    "metadata":{"name":"e","namespace":"default"},"eventTime":"2026-01-01T00:00:00.000000Z",
    "regarding":{"kind":"Pod","namespace":"default","name":"p"},"reportingController":"x.io/y",
    "reportingInstance":"i","action":"a","reason":"r","type":"Normal","note":"n"})");
}

TEST(ApiViews, What_one_face_writes_the_other_shows) {
  TestApi api;
  const auto made = api.create(kNew, new_event());
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["note"].as_string(), "n");
  EXPECT_EQ((*made)["apiVersion"].as_string(), "events.k8s.io/v1");
  const auto core = api.get("events", "default", "e");
  ASSERT_TRUE(core);
  EXPECT_EQ((*core)["message"].as_string(), "n");
  EXPECT_EQ((*core)["involvedObject"]["name"].as_string(), "p");
  ASSERT_TRUE(api.patch(kNew, "default", "e", R"({"metadata":{"labels":{"x":"y"}}})"));
  EXPECT_EQ(api.get("events", "default", "e")->get("metadata", "labels", "x").as_string(), "y");
  ASSERT_TRUE(api.remove(kNew, "default", "e"));
  EXPECT_EQ(api.get("events", "default", "e").error().code, Code::kNotFound);
}

TEST(ApiViews, Lists_and_selectors_speak_of_the_face_that_is_asked) {
  TestApi api;
  ASSERT_TRUE(api.create(kNew, new_event()));
  const auto all = api.list(kNew, "default");
  ASSERT_TRUE(all);
  EXPECT_EQ((*all)["kind"].as_string(), "EventList");
  EXPECT_EQ((*all)["apiVersion"].as_string(), "events.k8s.io/v1");
  EXPECT_EQ((*all)["items"].at(0)["note"].as_string(), "n");
  const auto count = [&](const char* selector) {
    const auto list = api.list(kNew, "default", {{"fieldSelector", selector}});
    return list ? static_cast<int>((*list)["items"].size()) : -1;
  };
  EXPECT_EQ(count("regarding.name=p,reportingController=x.io/y"), 1);
  EXPECT_EQ(count("regarding.name=q"), 0);
  EXPECT_EQ(count("involvedObject.name=p"), -1);
}

TEST(ApiViews, Errors_name_the_face_and_its_rules_hold) {
  TestApi api;
  EXPECT_THAT(api.get(kNew, "default", "e").error().message,
              HasSubstr("events.events.k8s.io \"e\" not found"));
  ASSERT_TRUE(api.create(kNew, new_event()));
  EXPECT_THAT(api.create(kNew, new_event()).error().message,
              HasSubstr("events.events.k8s.io \"e\" already exists"));
  EXPECT_THAT(api.patch(kNew, "default", "e", R"({"note":"other"})").error().message,
              HasSubstr("field is immutable"));
}

TEST(ApiViews, An_applied_configuration_keeps_the_form_it_came_in) {
  TestApi api;
  Value event = new_event();
  const auto made = api.patch(kNew, "default", "e", event.dump(), kube::PatchType::kApply, {},
                              {{"fieldManager", "m"}});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["note"].as_string(), "n");
  EXPECT_EQ(api.get("events", "default", "e")->get("message").as_string(), "n");
}

TEST(ApiViews, An_autoscaler_keeps_in_annotations_what_version_1_lacks) {
  TestApi api;
  const auto made = api.create("horizontalpodautoscalers.autoscaling", TestApi::parse(R"({
    "apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler",
    "metadata":{"name":"a","namespace":"default"},"spec":{"maxReplicas":3,
    "targetCPUUtilizationPercentage":50,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}})"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["spec"]["targetCPUUtilizationPercentage"], Value(50));
  kube::Request get =
      TestApi::request(kube::Verb::kGet, "horizontalpodautoscalers.autoscaling", "default", "a");
  get.gvr.version = "v2";
  auto v2 = api.reply(get).result;
  ASSERT_TRUE(v2);
  EXPECT_EQ((*v2)["spec"]["metrics"].at(0).get("resource", "target", "averageUtilization"),
            Value(50));
  kube::Request patch = get;
  patch.verb = kube::Verb::kPatch;
  patch.body = TestApi::parse(R"({"spec":{"metrics":[{"type":"Resource","resource":
    {"name":"memory","target":{"type":"Utilization","averageUtilization":70}}}],
    "behavior":{"scaleDown":{"stabilizationWindowSeconds":7}}}})");
  ASSERT_TRUE(api.reply(patch).result);
  const auto v1 = api.get("horizontalpodautoscalers.autoscaling", "default", "a");
  ASSERT_TRUE(v1);
  EXPECT_FALSE((*v1)["spec"].contains("targetCPUUtilizationPercentage"));
  const Value& notes = (*v1)["metadata"]["annotations"];
  EXPECT_THAT(notes["autoscaling.alpha.kubernetes.io/metrics"].str(),
              HasSubstr("\"targetAverageUtilization\":70"));
  EXPECT_THAT(notes["autoscaling.alpha.kubernetes.io/behavior"].str(), HasSubstr("ScaleDown"));
  ASSERT_TRUE(api.patch("horizontalpodautoscalers.autoscaling", "default", "a",
                        R"({"spec":{"targetCPUUtilizationPercentage":40}})"));
  v2 = api.reply(get).result;
  ASSERT_TRUE(v2);
  EXPECT_EQ((*v2)["spec"]["metrics"].size(), 2U);
  EXPECT_EQ((*v2)["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"], Value(7));
  EXPECT_TRUE((*v2)["metadata"]["annotations"].empty());
}

TEST(ApiScale, Is_applied_with_owners_and_conflicts) {
  TestApi api;
  Value deployment = TestApi::parse(R"({"apiVersion":"apps/v1","kind":"Deployment",
    "metadata":{"name":"d","namespace":"default"},"spec":{"replicas":1,
    "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}}}}})");
  deployment.ref("spec", "template", "spec") = TestApi::pod("p")["spec"];
  ASSERT_TRUE(api.create("deployments.apps", deployment, {{"fieldManager", "maker"}}));
  const auto apply = [&](const char* manager, const char* force, int replicas) {
    return api.patch("deployments.apps", "default", "d",
                     fmt::format(R"({{"apiVersion":"autoscaling/v1","kind":"Scale",
                       "spec":{{"replicas":{}}}}})",
                                 replicas),
                     kube::PatchType::kApply, "scale",
                     {{"fieldManager", manager}, {"force", force}});
  };
  EXPECT_EQ(apply("one", "false", 2).error().code, Code::kConflict);
  const auto scale = apply("one", "true", 2);
  ASSERT_TRUE(scale) << scale.error().message;
  EXPECT_EQ((*scale)["spec"]["replicas"], Value(2));
  EXPECT_THAT(apply("two", "false", 3).error().message,
              HasSubstr("conflict with \"one\" with subresource \"scale\": .spec.replicas"));
  const auto now = api.get("deployments.apps", "default", "d");
  ASSERT_TRUE(now);
  EXPECT_EQ((*now)["spec"]["replicas"], Value(2));
  const Value& owner = (*now)["metadata"]["managedFields"].at(0);
  EXPECT_EQ(owner["manager"].as_string(), "one");
  EXPECT_EQ(owner["apiVersion"].as_string(), "apps/v1");
  EXPECT_EQ(owner["fieldsV1"].dump(), R"({"f:spec":{"f:replicas":{}}})");
}

TEST(ApiBindings, Bind_the_pod_that_they_name) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("a")));
  const auto bound = api.create("bindings", TestApi::parse(R"({"apiVersion":"v1","kind":"Binding",
    "metadata":{"name":"a","namespace":"default"},"target":{"kind":"Node","name":"n"}})"));
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_EQ(api.get("pods", "default", "a")->get("spec", "nodeName").as_string(), "n");
}

TEST(ApiEventsTtl, Ends_for_events_of_a_time_that_the_clock_went_back_from) {
  TestApi api;
  ASSERT_TRUE(api.create(kNew, new_event()));
  api.clock().advance(base::seconds(-10 * 86400));
  api.advance(base::seconds(61));
  EXPECT_EQ(api.get("events", "default", "e").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace tessera::apiserver
