// Kinds that CustomResourceDefinitions make, through the API.
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"
#include "apiserver/crd_fixture.h"
#include "base/file.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using kube::PatchType;

constexpr const char* kCrds = "customresourcedefinitions.apiextensions.k8s.io";
constexpr const char* kWidgets = "widgets.example.com";

Value condition(const Value& definition, std::string_view type) {
  for (const Value& each : definition["status"]["conditions"].items()) {
    if (each["type"].as_string() == type) return each["status"];
  }
  return {};
}

TEST(ApiCrd, ADefinitionIsEstablishedAndServesItsKind) {
  TestApi api;
  const auto made = api.create(kCrds, widget_definition());
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["status"]["storedVersions"], Value::array({"v1"}));
  EXPECT_EQ((*made)["spec"]["conversion"]["strategy"], Value("None"));
  const auto now = api.get(kCrds, "", kWidgets);
  ASSERT_TRUE(now);
  EXPECT_EQ(condition(*now, "NamesAccepted"), Value("True"));
  EXPECT_EQ(condition(*now, "Established"), Value("True"));
  EXPECT_EQ((*now)["status"]["acceptedNames"]["listKind"], Value("WidgetList"));
  const auto list = api.list(kWidgets, "");
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ((*list)["kind"], Value("WidgetList"));
}

TEST(ApiCrd, ObjectsGetDefaultsAndLoseUnknownFields) {
  TestApi api;
  ASSERT_TRUE(api.create(kCrds, widget_definition()));
  Value object = widget("w", R"({"color":"red","other":1})");
  auto request = TestApi::request(kube::Verb::kCreate, kWidgets, "default", {}, object);
  const ApiReply reply = api.reply(request);
  ASSERT_TRUE(reply.result) << reply.result.error().message;
  EXPECT_EQ((*reply.result)["spec"], TestApi::parse(R"({"color":"red","size":3})"));
  EXPECT_EQ((*reply.result)["metadata"]["generation"], Value(1));
  EXPECT_EQ(reply.warnings, std::vector<std::string>{"unknown field \"spec.other\""});
  const auto strict = api.create(kWidgets, widget("s", R"({"color":"red","other":1})"),
                                 {{"fieldValidation", "Strict"}});
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().message,
            "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: "
            "unknown field \"spec.other\"");
  const auto wrong = api.create(kWidgets, widget("p", R"({"color":"pink"})"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kInvalid);
}

TEST(ApiCrd, ShortFinalizersAreTakenAndWarnedOf) {
  TestApi api;
  ASSERT_TRUE(api.create(kCrds, widget_definition()));
  ASSERT_TRUE(api.create(kWidgets, widget("w", R"({"color":"red"})")));
  const Value patch = TestApi::parse(R"({"metadata":{"finalizers":["hold","example.com/x"]}})");
  auto request = TestApi::request(kube::Verb::kPatch, kWidgets, "default", "w", patch);
  request.patch_type = PatchType::kMerge;
  const ApiReply reply = api.reply(std::move(request));
  ASSERT_TRUE(reply.result) << reply.result.error().message;
  EXPECT_EQ(reply.warnings,
            std::vector<std::string>{
                "metadata.finalizers: \"hold\": prefer a domain-qualified finalizer name to avoid "
                "accidental conflicts with other finalizer writers"});
}

TEST(ApiCrd, ANameThatIsNoneIsToldAndSoAreDefaultsThatAreNotKept) {
  TestApi api;
  Value definition = widget_definition();
  definition.ref("spec").set("preserveUnknownFields", true);
  definition.ref("spec", "versions").ref_at(0).set("name", "1v");
  const auto refused = api.create(kCrds, definition);
  ASSERT_FALSE(refused);
  std::string fields;
  for (const base::Cause& cause : refused.error().causes) fields += cause.field + " ";
  EXPECT_NE(fields.find("spec.preserveUnknownFields spec.versions[0].name spec.version "),
            std::string::npos)
      << fields;
}

TEST(ApiCrd, StatusAndScaleAreResourcesOfTheirOwn) {
  TestApi api;
  ASSERT_TRUE(api.create(kCrds, widget_definition()));
  ASSERT_TRUE(api.create(kWidgets, widget("w", R"({"color":"red","replicas":2})")));
  const auto status = api.patch(kWidgets, "default", "w",
                                R"({"status":{"phase":"ok","replicas":1},"spec":{"color":"blue"}})",
                                PatchType::kMerge, "status");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ((*status)["status"]["phase"], Value("ok"));
  EXPECT_EQ((*status)["spec"]["color"], Value("red"));
  EXPECT_EQ((*status)["metadata"]["generation"], Value(1));
  EXPECT_FALSE(api.patch(kWidgets, "default", "w", R"({"status":{"phase":1}})", PatchType::kMerge,
                         "status"));
  const auto scale =
      api.patch(kWidgets, "default", "w", R"({"spec":{"replicas":5}})", PatchType::kMerge, "scale");
  ASSERT_TRUE(scale) << scale.error().message;
  EXPECT_EQ((*scale)["spec"]["replicas"], Value(5));
  EXPECT_EQ((*scale)["status"]["replicas"], Value(1));
  const auto now = api.get(kWidgets, "default", "w");
  EXPECT_EQ((*now)["spec"]["replicas"], Value(5));
  EXPECT_EQ((*now)["metadata"]["generation"], Value(2));
}

TEST(ApiCrd, FieldsAreAppliedByTheSchema) {
  TestApi api;
  ASSERT_TRUE(api.create(kCrds, widget_definition()));
  const auto apply = [&](const char* spec, const char* manager, bool force = false) {
    TestApi::Query query = {{"fieldManager", manager}};
    if (force) query.emplace_back("force", "true");
    return api.patch(kWidgets, "default", "w", widget("w", spec).dump(), PatchType::kApply, {},
                     query);
  };
  const auto first = apply(R"({"color":"red","parts":[{"name":"a","count":1}]})", "one");
  ASSERT_TRUE(first) << first.error().message;
  const auto second = apply(R"({"parts":[{"name":"b","count":2}]})", "two");
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ((*second)["spec"]["parts"].size(), 2U);
  const auto conflict = apply(R"({"color":"blue"})", "two");
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().code, Code::kConflict);
  const auto forced = apply(R"({"color":"blue"})", "two", true);
  ASSERT_TRUE(forced) << forced.error().message;
  EXPECT_EQ((*forced)["spec"]["color"], Value("blue"));
  EXPECT_EQ((*forced)["spec"]["parts"].size(), 1U);
  const auto strategic =
      api.patch(kWidgets, "default", "w", R"({"spec":{}})", PatchType::kStrategic);
  ASSERT_FALSE(strategic);
  EXPECT_EQ(strategic.error().code, Code::kUnsupportedMediaType);
}

TEST(ApiCrd, VersionsShareTheirObjects) {
  TestApi api;
  Value definition = widget_definition();
  Value second = TestApi::parse(R"({"name":"v2","served":true,"storage":false,"schema":
    {"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}})");
  definition.ref("spec", "versions").push_back(second);
  ASSERT_TRUE(api.create(kCrds, definition));
  ASSERT_TRUE(api.create(kWidgets, widget("w", R"({"color":"red"})")));
  auto request = TestApi::request(kube::Verb::kGet, kWidgets, "default", "w");
  request.gvr.version = "v2";
  const auto other = api.reply(request);
  ASSERT_TRUE(other.result) << other.result.error().message;
  EXPECT_EQ((*other.result)["apiVersion"], Value("example.com/v2"));
  EXPECT_EQ((*other.result)["spec"]["size"], Value(3));
  request = TestApi::request(kube::Verb::kPatch, kWidgets, "default", "w",
                             TestApi::parse(R"({"spec":{"color":"blue","extra":1}})"));
  request.gvr.version = "v2";
  request.patch_type = PatchType::kMerge;
  ASSERT_TRUE(api.reply(request).result);
  const auto first = api.get(kWidgets, "default", "w");
  EXPECT_EQ((*first)["apiVersion"], Value("example.com/v1"));
  EXPECT_EQ((*first)["spec"], TestApi::parse(R"({"color":"blue","size":3})"));
}

TEST(ApiCrd, NamesAreTakenOnceInAGroup) {
  TestApi api;
  ASSERT_TRUE(api.create(kCrds, widget_definition()));
  Value other = widget_definition();
  other.ref("metadata", "name") = "gadgets.example.com";
  other.ref("spec", "names") =
      TestApi::parse(R"({"plural":"gadgets","singular":"gadget","kind":"Widget"})");
  ASSERT_TRUE(api.create(kCrds, other));
  const auto refused = api.get(kCrds, "", "gadgets.example.com");
  EXPECT_EQ(condition(*refused, "NamesAccepted"), Value("False"));
  EXPECT_EQ(condition(*refused, "Established"), Value("False"));
  EXPECT_FALSE(api.list("gadgets.example.com", ""));
  ASSERT_TRUE(api.remove(kCrds, "", kWidgets));
  const auto taken = api.get(kCrds, "", "gadgets.example.com");
  EXPECT_EQ(condition(*taken, "Established"), Value("True"));
}

TEST(ApiCrd, ADefinitionGoesWithItsObjects) {
  TestApi api;
  ASSERT_TRUE(api.create(kCrds, widget_definition()));
  Value held = widget("held", R"({"color":"red"})");
  held.ref("metadata", "finalizers") = Value::array({"example.com/hold"});
  ASSERT_TRUE(api.create(kWidgets, held));
  ASSERT_TRUE(api.create(kWidgets, widget("w", R"({"color":"red"})")));
  const auto going = api.remove(kCrds, "", kWidgets);
  ASSERT_TRUE(going);
  EXPECT_EQ((*going)["kind"], Value("CustomResourceDefinition"));
  EXPECT_EQ(condition(*going, "Terminating"), Value("True"));
  EXPECT_EQ(api.list(kWidgets, "")->get("items").size(), 1U);
  const auto late = api.create(kWidgets, widget("late", R"({"color":"red"})"));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kMethodNotAllowed);
  ASSERT_TRUE(api.patch(kWidgets, "default", "held", R"({"metadata":{"finalizers":null}})"));
  EXPECT_FALSE(api.get(kCrds, "", kWidgets));
  EXPECT_FALSE(api.list(kWidgets, ""));
}

TEST(ApiCrd, AWatchEndsWithItsDefinition) {
  TestApi api;
  ASSERT_TRUE(api.create(kCrds, widget_definition()));
  std::vector<std::string> seen;
  bool closed = false;
  auto request = TestApi::request(kube::Verb::kList, kWidgets, "");
  const auto watch = api->watch(
      system_caller("test"), request,
      [&](const kube::WatchEvent& event) { seen.emplace_back(event.object.name()); },
      [&](const base::Status&) { closed = true; });
  ASSERT_TRUE(watch);
  api.loop().run_ready();
  ASSERT_TRUE(api.create(kWidgets, widget("w", R"({"color":"red"})")));
  ASSERT_TRUE(api.remove(kCrds, "", kWidgets));
  EXPECT_EQ(seen, (std::vector<std::string>{"w", "w"}));
  EXPECT_TRUE(closed);
}

TEST(ApiCrd, ARestartServesWhatWasServed) {
  const base::TempDir dir;
  Api::Options options;
  options.data_dir = dir.path();
  {
    TestApi api(options);
    ASSERT_TRUE(api.create(kCrds, widget_definition()));
    ASSERT_TRUE(api.create(kWidgets, widget("w", R"({"color":"red"})")));
  }
  TestApi api(options);
  const auto found = api.get(kWidgets, "default", "w");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)["spec"]["size"], Value(3));
  ASSERT_TRUE(api.remove(kCrds, "", kWidgets));
  EXPECT_FALSE(api.list(kWidgets, ""));
}

TEST(ApiCrd, ANewDefaultReachesObjectsThatAreThere) {
  TestApi api;
  ASSERT_TRUE(api.create(kCrds, widget_definition()));
  ASSERT_TRUE(api.create(kWidgets, widget("w", R"({"color":"red"})")));
  ASSERT_TRUE(api.patch(kCrds, "", kWidgets,
                        R"([{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties)"
                        R"(/spec/properties/tier","value":{"type":"string","default":"low"}}])",
                        PatchType::kJson));
  EXPECT_EQ((*api.get(kWidgets, "default", "w"))["spec"]["tier"], Value("low"));
}

TEST(ApiCrd, DefinitionsAsProjectsWriteThemAreTaken) {
  TestApi api;
  for (const Value& definition : project_definitions()) {
    const auto made = api.create(kCrds, definition);
    ASSERT_TRUE(made) << made.error().message;
    const std::string name = definition["metadata"]["name"].str();
    EXPECT_EQ(condition(*api.get(kCrds, "", name), "Established"), Value("True")) << name;
  }
}

}  // namespace
}  // namespace tessera::apiserver
