#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using ::testing::HasSubstr;

std::string with_finalizer(const char* finalizer) {
  return std::string(R"({"metadata":{"finalizers":[")") + finalizer + R"("]}})";
}

TEST(ApiDelete, Answers_a_status_with_the_uid) {
  TestApi api;
  const auto made = api.create("configmaps", TestApi::config_map("a", "1"));
  const auto status = api.remove("configmaps", "default", "a");
  ASSERT_TRUE(status);
  EXPECT_EQ((*status)["status"].as_string(), "Success");
  EXPECT_EQ((*status)["details"]["uid"], (*made)["metadata"]["uid"]);
  EXPECT_EQ(api.remove("configmaps", "default", "a").error().message, "configmaps \"a\" not found");
}

TEST(ApiDelete, Holds_preconditions) {
  TestApi api;
  ASSERT_TRUE(api.create("configmaps", TestApi::config_map("a", "1")));
  EXPECT_EQ(
      api.remove("configmaps", "default", "a", R"({"preconditions":{"uid":"x"}})").error().code,
      Code::kConflict);
  EXPECT_EQ(api.remove("configmaps", "default", "a", R"({"preconditions":{"resourceVersion":"1"}})")
                .error()
                .code,
            Code::kConflict);
  EXPECT_TRUE(api.get("configmaps", "default", "a"));
}

TEST(ApiDelete, Finalizers_keep_the_object_until_they_are_gone) {
  TestApi api;
  ASSERT_TRUE(api.create("configmaps", TestApi::config_map("a", "1")));
  ASSERT_TRUE(api.patch("configmaps", "default", "a", with_finalizer("example.com/hold")));
  ASSERT_TRUE(api.remove("configmaps", "default", "a"));
  auto left = api.get("configmaps", "default", "a");
  ASSERT_TRUE(left);
  EXPECT_TRUE((*left)["metadata"].contains("deletionTimestamp"));
  const uint64_t revision = api->revision();
  ASSERT_TRUE(api.remove("configmaps", "default", "a"));  // again: nothing changes
  EXPECT_EQ(api->revision(), revision);
  EXPECT_EQ(
      api.patch("configmaps", "default", "a", with_finalizer("example.com/more")).error().code,
      Code::kInvalid);
  ASSERT_TRUE(api.patch("configmaps", "default", "a", R"({"metadata":{"finalizers":null}})"));
  EXPECT_EQ(api.get("configmaps", "default", "a").error().code, Code::kNotFound);
}

TEST(ApiDelete, Propagation_is_left_to_the_garbage_collector_by_finalizers) {
  TestApi api;
  for (const auto& [policy, finalizer] :
       {std::pair("Foreground", "foregroundDeletion"), std::pair("Orphan", "orphan")}) {
    ASSERT_TRUE(api.create("configmaps", TestApi::config_map(finalizer[0] == 'o' ? "o" : "f", "")));
    const std::string name = finalizer[0] == 'o' ? "o" : "f";
    ASSERT_TRUE(api.remove("configmaps", "default", name,
                           std::string(R"({"propagationPolicy":")") + policy + "\"}"));
    const auto left = api.get("configmaps", "default", name);
    ASSERT_TRUE(left);
    EXPECT_EQ((*left)["metadata"]["finalizers"].at(0).as_string(), finalizer);
  }
  EXPECT_EQ(
      api.remove("configmaps", "default", "f", R"({"propagationPolicy":"Sideways"})").error().code,
      Code::kInvalid);
}

TEST(ApiDelete, Pods_on_a_node_end_in_two_steps) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("x")));
  ASSERT_TRUE(api.bind("default", "x", "n1"));
  const auto first = api.remove("pods", "default", "x");
  ASSERT_TRUE(first);
  EXPECT_EQ((*first)["metadata"]["deletionTimestamp"].as_string(), "2026-01-01T00:00:30Z");
  EXPECT_EQ((*first)["metadata"]["deletionGracePeriodSeconds"].as_int(), 30);
  const auto shorter = api.remove("pods", "default", "x", R"({"gracePeriodSeconds":5})");
  EXPECT_EQ((*shorter)["metadata"]["deletionTimestamp"].as_string(), "2026-01-01T00:00:05Z");
  const auto longer = api.remove("pods", "default", "x", R"({"gracePeriodSeconds":50})");
  EXPECT_EQ((*longer)["metadata"]["deletionGracePeriodSeconds"].as_int(), 5);
  EXPECT_TRUE(api.get("pods", "default", "x"));
  ASSERT_TRUE(api.remove("pods", "default", "x", R"({"gracePeriodSeconds":0})"));
  EXPECT_EQ(api.get("pods", "default", "x").error().code, Code::kNotFound);
}

TEST(ApiDelete, Pods_without_a_node_or_at_their_end_go_at_once) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("x")));
  ASSERT_TRUE(api.remove("pods", "default", "x"));
  EXPECT_FALSE(api.get("pods", "default", "x"));
  ASSERT_TRUE(api.create("pods", TestApi::pod("y")));
  ASSERT_TRUE(api.bind("default", "y", "n1"));
  ASSERT_TRUE(api.patch("pods", "default", "y", R"({"status":{"phase":"Succeeded"}})",
                        kube::PatchType::kMerge, "status"));
  ASSERT_TRUE(api.remove("pods", "default", "y"));
  EXPECT_FALSE(api.get("pods", "default", "y"));
}

TEST(ApiDelete, A_collection_goes_by_its_selector) {
  TestApi api;
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(api.create(
        "pods", TestApi::pod(name, name[0] == 'b' ? R"({"keep":"1"})" : R"({"keep":"0"})")));
  }
  auto request = TestApi::request(kube::Verb::kDeleteCollection, "pods", "default");
  request.query = {{"labelSelector", "keep=0"}};
  const auto gone = api.reply(request).result;
  ASSERT_TRUE(gone);
  EXPECT_EQ((*gone)["items"].size(), 2U);
  EXPECT_EQ((*api.list("pods", "default"))["items"].size(), 1U);
}

TEST(ApiDelete, Namespaces_wait_for_their_finalizer_and_take_nothing_new) {
  TestApi api;
  ASSERT_TRUE(api.create("namespaces", TestApi::parse(R"({"apiVersion":"v1","kind":"Namespace",
    "metadata":{"name":"team"}})")));
  const auto made = api.get("namespaces", "", "team");
  EXPECT_EQ((*made)["spec"]["finalizers"].at(0).as_string(), "kubernetes");
  EXPECT_EQ((*made)["status"]["phase"].as_string(), "Active");
  ASSERT_TRUE(api.remove("namespaces", "", "team"));
  const auto left = api.get("namespaces", "", "team");
  ASSERT_TRUE(left);
  EXPECT_EQ((*left)["status"]["phase"].as_string(), "Terminating");
  const auto refused = api.create("configmaps", TestApi::config_map("a", "1", "team"));
  EXPECT_EQ(refused.error().code, Code::kForbidden);
  EXPECT_EQ(refused.error().message,
            "configmaps \"a\" is forbidden: unable to create new content in namespace team because "
            "it is being terminated");
  ASSERT_EQ(refused.error().causes.size(), 1U);
  EXPECT_EQ(refused.error().causes[0].reason, "NamespaceTerminating");
  Value done = *left;
  done.ref("spec").erase("finalizers");
  ASSERT_TRUE(api.update("namespaces", done, "finalize"));
  EXPECT_EQ(api.get("namespaces", "", "team").error().code, Code::kNotFound);
  EXPECT_EQ(api.remove("namespaces", "", "default").error().code, Code::kForbidden);
}

}  // namespace
}  // namespace tessera::apiserver
