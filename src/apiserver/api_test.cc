#include "apiserver/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using ::testing::HasSubstr;

TEST(ApiCreate, Fills_in_what_the_server_owns) {
  TestApi api;
  const auto made = api.create("configmaps", TestApi::config_map("a", "1"));
  ASSERT_TRUE(made) << made.error().message;
  const Value& meta = (*made)["metadata"];
  EXPECT_EQ(meta["uid"].as_string().size(), 36U);
  EXPECT_EQ(meta["creationTimestamp"].as_string(), "2026-01-01T00:00:00Z");
  EXPECT_EQ(meta["resourceVersion"].str(), std::to_string(api->revision()));
  const auto read = api.get("configmaps", "default", "a");
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, *made);
}

TEST(ApiCreate, Words_what_is_missing_or_there_already_as_kubernetes) {
  TestApi api;
  EXPECT_EQ(api.get("pods", "default", "x").error().message, "pods \"x\" not found");
  EXPECT_EQ(api.get("deployments.apps", "default", "x").error().message,
            "deployments.apps \"x\" not found");
  ASSERT_TRUE(api.create("pods", TestApi::pod("x")));
  const auto again = api.create("pods", TestApi::pod("x"));
  EXPECT_EQ(again.error().code, Code::kAlreadyExists);
  EXPECT_EQ(again.error().message, "pods \"x\" already exists");
  auto elsewhere = TestApi::pod("x");
  elsewhere.ref("metadata", "namespace") = "nowhere";
  EXPECT_EQ(api.create("pods", elsewhere).error().message, "namespaces \"nowhere\" not found");
}

TEST(ApiCreate, Generates_names) {
  TestApi api;
  Value map = TestApi::config_map("", "1");
  map.ref("metadata").erase("name");
  map.ref("metadata", "generateName") = "run-";
  const auto a = api.create("configmaps", map);
  const auto b = api.create("configmaps", map);
  ASSERT_TRUE(a && b);
  EXPECT_EQ((*a)["metadata"]["name"].as_string().size(), 9U);
  EXPECT_NE((*a)["metadata"]["name"], (*b)["metadata"]["name"]);
  map.ref("metadata").erase("generateName");
  const auto none = api.create("configmaps", map);
  EXPECT_EQ(none.error().code, Code::kInvalid);
  EXPECT_THAT(none.error().message, HasSubstr("name or generateName is required"));
}

TEST(ApiCreate, Refuses_bodies_of_another_kind) {
  TestApi api;
  Value other = TestApi::config_map("a", "1");
  other.set("kind", "Secret");
  EXPECT_THAT(api.create("configmaps", other).error().message,
              HasSubstr("Secret in version \"v1\" cannot be handled as a ConfigMap"));
  other.set("apiVersion", "apps/v1");
  EXPECT_EQ(api.create("configmaps", other).error().message,
            "Secret in version \"v1\" cannot be handled as a ConfigMap: no kind \"Secret\" is "
            "registered for version \"apps/v1\"");
  EXPECT_EQ(api.create("configmaps", other).error().code, Code::kBadRequest);
}

TEST(ApiCreate, Unknown_fields_warn_or_are_refused) {
  TestApi api;
  Value pod = TestApi::pod("x");
  pod.ref("spec", "foo") = 1;
  auto request = TestApi::request(kube::Verb::kCreate, "pods", "default", {}, pod);
  request.query = {{"fieldValidation", "Strict"}};
  const auto strict = api.reply(request);
  EXPECT_EQ(strict.http_status, 400);
  EXPECT_THAT(strict.result.error().message,
              HasSubstr("strict decoding error: unknown field \"spec.foo\""));
  request.query = {{"fieldValidation", "Ignore"}, {"dryRun", "All"}};
  EXPECT_TRUE(api.reply(request).warnings.empty());
  request.query = {};
  const auto warned = api.reply(request);
  ASSERT_TRUE(warned.result);
  EXPECT_EQ(warned.http_status, 201);
  EXPECT_EQ(warned.warnings, std::vector<std::string>{"unknown field \"spec.foo\""});
  EXPECT_FALSE((*warned.result)["spec"].contains("foo"));
}

TEST(ApiCreate, Dry_run_stores_nothing) {
  TestApi api;
  const uint64_t before = api->revision();
  ASSERT_TRUE(api.create("pods", TestApi::pod("x"), {{"dryRun", "All"}}));
  EXPECT_EQ(api.get("pods", "default", "x").error().code, Code::kNotFound);
  EXPECT_EQ(api->revision(), before);
}

TEST(ApiCreate, Refuses_what_etcd_would_not_take) {
  TestApi api;
  const auto huge =
      api.create("configmaps", TestApi::config_map("a", std::string(size_t{2} << 20, 'x')));
  EXPECT_FALSE(huge);
}

TEST(ApiUpdate, Wants_the_current_resource_version) {
  TestApi api;
  auto first = api.create("configmaps", TestApi::config_map("a", "1"));
  ASSERT_TRUE(first);
  Value changed = *first;
  changed.ref("data", "key") = "2";
  const auto second = api.update("configmaps", changed);
  ASSERT_TRUE(second);
  EXPECT_NE((*second)["metadata"]["resourceVersion"], (*first)["metadata"]["resourceVersion"]);
  changed.ref("data", "key") = "3";
  const auto stale = api.update("configmaps", changed);
  EXPECT_EQ(stale.error().code, Code::kConflict);
  EXPECT_EQ(stale.error().message,
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; "
            "please apply your changes to the latest version and try again");
  changed.ref("metadata").erase("resourceVersion");
  EXPECT_TRUE(api.update("configmaps", changed));
}

TEST(ApiUpdate, Writes_nothing_where_nothing_changed) {
  TestApi api;
  const auto made = api.create("configmaps", TestApi::config_map("a", "1"));
  const uint64_t before = api->revision();
  ASSERT_TRUE(api.update("configmaps", *made));
  ASSERT_TRUE(api.patch("configmaps", "default", "a", R"({"data":{"key":"1"}})"));
  EXPECT_EQ(api->revision(), before);
}

TEST(ApiUpdate, Keeps_what_the_server_owns) {
  TestApi api;
  const auto made = api.create("configmaps", TestApi::config_map("a", "1"));
  Value bare = TestApi::config_map("a", "2");
  const auto replaced = api.update("configmaps", bare);
  ASSERT_TRUE(replaced);
  EXPECT_EQ((*replaced)["metadata"]["uid"], (*made)["metadata"]["uid"]);
  bare.ref("metadata", "uid") = "another";
  EXPECT_EQ(api.update("configmaps", bare).error().code, Code::kConflict);
  bare = *replaced;
  bare.ref("metadata", "creationTimestamp") = "2020-01-01T00:00:00Z";
  const auto again = api.update("configmaps", bare);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)["metadata"]["creationTimestamp"], (*made)["metadata"]["creationTimestamp"]);
  const auto other = api.patch("configmaps", "default", "a", R"({"metadata":{"uid":"another"}})");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kInvalid);
  EXPECT_EQ(other.error().causes.size(), 2);
}

TEST(ApiUpdate, Status_and_the_rest_change_apart) {
  TestApi api;
  auto made = api.create("pods", TestApi::pod("x"));
  ASSERT_TRUE(made) << made.error().message;
  Value object = *made;
  object.ref("status", "phase") = "Running";
  object.ref("metadata", "labels", "a") = "b";
  const auto main = api.update("pods", object);
  ASSERT_TRUE(main) << main.error().message;
  EXPECT_NE((*main)["status"]["phase"].as_string(), "Running");
  EXPECT_EQ((*main)["metadata"]["labels"]["a"].as_string(), "b");
  object = *main;
  object.ref("status", "phase") = "Running";
  object.ref("spec", "nodeName") = "n1";
  const auto status = api.update("pods", object, "status");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ((*status)["status"]["phase"].as_string(), "Running");
  EXPECT_TRUE((*status)["spec"]["nodeName"].is_null());
}

TEST(ApiUpdate, Generation_counts_changes_of_what_should_be) {
  TestApi api;
  const auto made = api.create("deployments.apps", TestApi::parse(R"({"apiVersion":"apps/v1",
    "kind":"Deployment","metadata":{"name":"d","namespace":"default"},"spec":{"replicas":1,
    "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
    "spec":{"containers":[{"name":"c","image":"x"}]}}}})"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["metadata"]["generation"].as_int(), 1);
  const auto labelled =
      api.patch("deployments.apps", "default", "d", R"({"metadata":{"labels":{"x":"y"}}})");
  EXPECT_EQ((*labelled)["metadata"]["generation"].as_int(), 1);
  const auto scaled = api.patch("deployments.apps", "default", "d", R"({"spec":{"replicas":2}})");
  EXPECT_EQ((*scaled)["metadata"]["generation"].as_int(), 2);
  const auto status = api.patch("deployments.apps", "default", "d", R"({"status":{"replicas":2}})",
                                kube::PatchType::kMerge, "status");
  EXPECT_EQ((*status)["metadata"]["generation"].as_int(), 2);
  EXPECT_EQ((*status)["status"]["replicas"].as_int(), 2);
}

TEST(ApiStatus, AnAddressOfALoadBalancerGetsItsMode) {
  TestApi api;
  ASSERT_TRUE(api.create("services", TestApi::parse(R"({"apiVersion":"v1","kind":"Service",
    "metadata":{"name":"s","namespace":"default"},
    "spec":{"type":"LoadBalancer","ports":[{"port":80}]}})")));
  const auto status = api.patch("services", "default", "s",
                                R"({"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}})",
                                kube::PatchType::kMerge, "status");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ((*status)["status"].dump(),
            R"({"loadBalancer":{"ingress":[{"ip":"192.0.2.1","ipMode":"VIP"}]}})");
}

TEST(ApiPatch, Applies_all_three_kinds) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("x", R"({"a":"1","b":"2"})")));
  auto patched = api.patch("pods", "default", "x",
                           R"([{"op":"replace","path":"/metadata/labels/a","value":"9"}])",
                           kube::PatchType::kJson);
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ((*patched)["metadata"]["labels"]["a"].as_string(), "9");
  patched = api.patch("pods", "default", "x", R"({"metadata":{"labels":{"b":null}}})");
  EXPECT_FALSE((*patched)["metadata"]["labels"].contains("b"));
  patched = api.patch("pods", "default", "x",
                      R"({"spec":{"containers":[{"name":"c0","image":"registry.example/x:2"}]}})",
                      kube::PatchType::kStrategic);
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ((*patched)["spec"]["containers"].at(0)["image"].as_string(), "registry.example/x:2");
  EXPECT_EQ(api.patch("pods", "default", "none", "{}").error().code, Code::kNotFound);
}

TEST(ApiPatch, A_resource_version_in_the_patch_must_be_current) {
  TestApi api;
  ASSERT_TRUE(api.create("configmaps", TestApi::config_map("a", "1")));
  const auto stale = api.patch("configmaps", "default", "a",
                               R"({"metadata":{"resourceVersion":"1"},"data":{"key":"2"}})");
  EXPECT_EQ(stale.error().code, Code::kConflict);
  EXPECT_FALSE(api.patch("configmaps", "default", "a", R"({"metadata":{"name":"b"}})"));
  EXPECT_FALSE(api.patch("configmaps", "default", "a", R"({"kind":"Secret"})"));
}

TEST(ApiCall, Refuses_addresses_that_name_nothing) {
  TestApi api;
  EXPECT_EQ(api.get("things", "default", "x").error().message,
            "the server could not find the requested resource");
  EXPECT_EQ(api.get("pods", "default", "").error().code, Code::kMethodNotAllowed);
  EXPECT_EQ(api.get("nodes", "default", "x").error().code, Code::kNotFound);
  auto request = TestApi::request(kube::Verb::kGet, "pods", "default", "x");
  request.subresource = "nothing";
  EXPECT_EQ(api.reply(request).result.error().code, Code::kNotFound);
  request = TestApi::request(kube::Verb::kCreate, "pods", "default", {}, TestApi::pod("x"));
  request.query = {{"dryRun", "Some"}};
  EXPECT_EQ(api.reply(request).result.error().code, Code::kInvalid);
}

TEST(ApiScale, Reads_and_sets_replicas) {
  TestApi api;
  ASSERT_TRUE(api.create("deployments.apps", TestApi::parse(R"({"apiVersion":"apps/v1",
    "kind":"Deployment","metadata":{"name":"d","namespace":"default"},"spec":{"replicas":1,
    "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
    "spec":{"containers":[{"name":"c","image":"x"}]}}}})")));
  auto request = TestApi::request(kube::Verb::kGet, "deployments.apps", "default", "d");
  request.subresource = "scale";
  auto scale = api.reply(request).result;
  ASSERT_TRUE(scale) << scale.error().message;
  EXPECT_EQ((*scale)["kind"].as_string(), "Scale");
  EXPECT_EQ((*scale)["spec"]["replicas"].as_int(), 1);
  EXPECT_EQ((*scale)["status"]["selector"].as_string(), "a=b");
  request.verb = kube::Verb::kUpdate;
  request.body = *scale;
  request.body.ref("spec", "replicas") = 3;
  scale = api.reply(request).result;
  ASSERT_TRUE(scale) << scale.error().message;
  EXPECT_EQ((*scale)["spec"]["replicas"].as_int(), 3);
  scale = api.patch("deployments.apps", "default", "d", R"({"spec":{"replicas":4}})",
                    kube::PatchType::kMerge, "scale");
  EXPECT_EQ((*api.get("deployments.apps", "default", "d"))["spec"]["replicas"].as_int(), 4);
  scale = api.patch("deployments.apps", "default", "d", R"({"spec":{"replicas":-1}})",
                    kube::PatchType::kMerge, "scale");
  EXPECT_EQ(scale.error().code, Code::kInvalid);
}

}  // namespace
}  // namespace tessera::apiserver
