// Server-side apply and managedFields through the API.
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using kube::PatchType;

constexpr const char* kConfig = R"({"apiVersion":"apps/v1","kind":"Deployment",
  "metadata":{"name":"web"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},
  "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[
    {"name":"c","image":"i:1"}]}}}})";

base::Result<Value> apply(TestApi& api, std::string_view config, std::string manager,
                          TestApi::Query more = {}) {
  more.emplace_back("fieldManager", std::move(manager));
  return api.patch("deployments.apps", "default", "web", config, PatchType::kApply, {},
                   std::move(more));
}

const Value& owners(const Value& object) {
  return object["metadata"]["managedFields"];
}

TEST(ApiApply, CreatesWhatIsNotThereAndChangesWhatIs) {
  TestApi api;
  auto made = apply(api, kConfig, "me");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["spec"]["replicas"], Value(2));
  EXPECT_EQ((*made)["spec"]["strategy"]["type"], Value("RollingUpdate"));
  ASSERT_EQ(owners(*made).size(), 1U);
  EXPECT_EQ(owners(*made).at(0)["operation"], Value("Apply"));
  EXPECT_FALSE(owners(*made).at(0)["fieldsV1"]["f:spec"].contains("f:strategy"));
  const auto again = apply(api, kConfig, "me");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *made);
  const auto other = apply(api, R"({"apiVersion":"apps/v1","kind":"Deployment",
    "metadata":{"name":"web","labels":{"a":"b"}}})",
                           "other");
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ((*other)["metadata"]["labels"]["a"], Value("b"));
  EXPECT_EQ(owners(*other).size(), 2U);
  EXPECT_EQ((*other)["metadata"]["generation"], Value(1));
}

TEST(ApiApply, AnsweredWithCreatedOnlyWhereItCreates) {
  TestApi api;
  auto request = TestApi::request(kube::Verb::kPatch, "deployments.apps", "default", "web",
                                  TestApi::parse(kConfig), {{"fieldManager", "me"}});
  request.patch_type = PatchType::kApply;
  auto dry = request;
  dry.query.emplace_back("dryRun", "All");
  EXPECT_EQ(api.reply(dry).http_status, 201);
  EXPECT_FALSE(api.get("deployments.apps", "default", "web"));
  EXPECT_EQ(api.reply(request).http_status, 201);
  EXPECT_EQ(api.reply(request).http_status, 200);
}

TEST(ApiApply, AConflictNamesTheFieldAndForceTakesIt) {
  TestApi api;
  Value object = TestApi::parse(kConfig);
  object.ref("metadata", "namespace") = "default";
  ASSERT_TRUE(api.create("deployments.apps", object, {{"fieldManager", "first"}}));
  constexpr const char* kMore = R"({"apiVersion":"apps/v1","kind":"Deployment",
    "metadata":{"name":"web"},"spec":{"replicas":5}})";
  const auto refused = apply(api, kMore, "second");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_EQ(refused.error().message,
            "Apply failed with 1 conflict: conflict with \"first\" using apps/v1: .spec.replicas");
  const auto forced = apply(api, kMore, "second", {{"force", "true"}});
  ASSERT_TRUE(forced) << forced.error().message;
  EXPECT_EQ((*forced)["spec"]["replicas"], Value(5));
  EXPECT_EQ((*forced)["metadata"]["generation"], Value(2));
  // Any word but false and 0 says yes, as it does for every option that is a flag.
  ASSERT_TRUE(apply(api, kMore, "third", {{"force", "True"}}));
}

TEST(ApiApply, RequestsWithoutAManagerOrWithForceElsewhereAreInvalid) {
  TestApi api;
  const auto nobody = api.patch("deployments.apps", "default", "web", kConfig, PatchType::kApply);
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Code::kInvalid);
  EXPECT_EQ(nobody.error().message,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required "
            "for apply patch");
  ASSERT_TRUE(apply(api, kConfig, "me"));
  const auto forced = api.patch("deployments.apps", "default", "web", "{}", PatchType::kMerge, {},
                                {{"force", "true"}});
  ASSERT_FALSE(forced);
  EXPECT_EQ(forced.error().code, Code::kInvalid);
  const auto name = apply(api, R"({"apiVersion":"apps/v1","kind":"Deployment",
    "metadata":{"name":"other"}})",
                          "me");
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().code, Code::kBadRequest);
  EXPECT_FALSE(apply(api, kConfig, std::string(129, 'x')));
}

TEST(ApiApply, UpdatesAndPatchesAreTrackedByTheirManagers) {
  TestApi api;
  ASSERT_TRUE(apply(api, kConfig, "me"));
  const auto patched =
      api.patch("deployments.apps", "default", "web", R"({"metadata":{"labels":{"x":"y"}}})",
                PatchType::kMerge, {}, {{"fieldManager", "patcher"}});
  ASSERT_TRUE(patched) << patched.error().message;
  ASSERT_EQ(owners(*patched).size(), 2U);
  EXPECT_EQ(owners(*patched).at(1)["manager"], Value("patcher"));
  const auto status = api.patch("deployments.apps", "default", "web",
                                R"({"status":{"replicas":1}})", PatchType::kMerge, "status");
  ASSERT_TRUE(status) << status.error().message;
  ASSERT_EQ(owners(*status).size(), 3U);
  EXPECT_EQ(owners(*status).at(2)["subresource"], Value("status"));
  EXPECT_EQ(owners(*status).at(2)["manager"], Value("test"));
  const auto gone =
      api.patch("deployments.apps", "default", "web", R"({"metadata":{"managedFields":[]}})");
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_TRUE(owners(*gone).is_null());
}

}  // namespace
}  // namespace tessera::apiserver
