#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const base::Result<Value>& list) {
  std::vector<std::string> out;
  if (!list) return {list.error().message};
  for (const Value& item : (*list)["items"].items()) out.push_back(item["metadata"]["name"].str());
  return out;
}

void make_pods(TestApi& api, int count) {
  for (int i = 0; i < count; ++i) {
    const auto made = api.create(
        "pods", TestApi::pod("p" + std::to_string(i), i % 2 == 0 ? R"({"even":"yes"})" : "{}"));
    ASSERT_TRUE(made) << made.error().message;
  }
}

TEST(ApiList, Is_ordered_and_carries_the_revision) {
  TestApi api;
  make_pods(api, 3);
  const auto list = api.list("pods", "default");
  ASSERT_TRUE(list);
  EXPECT_EQ((*list)["kind"].as_string(), "PodList");
  EXPECT_EQ((*list)["metadata"]["resourceVersion"].str(), std::to_string(api->revision()));
  EXPECT_THAT(names(list), ElementsAre("p0", "p1", "p2"));
  EXPECT_THAT(names(api.list("pods", "kube-system")), ElementsAre());
  EXPECT_EQ(names(api.list("pods", "")).size(), 3U);
}

TEST(ApiList, Selects_by_labels_and_fields) {
  TestApi api;
  make_pods(api, 4);
  ASSERT_TRUE(api.bind("default", "p1", "n1"));
  EXPECT_THAT(names(api.list("pods", "default", {{"labelSelector", "even=yes"}})),
              ElementsAre("p0", "p2"));
  EXPECT_THAT(names(api.list("pods", "default", {{"fieldSelector", "metadata.name=p3"}})),
              ElementsAre("p3"));
  EXPECT_THAT(names(api.list("pods", "", {{"fieldSelector", "metadata.name!=p3,spec.nodeName="}})),
              ElementsAre("p0", "p2"));
  EXPECT_THAT(names(api.list("pods", "", {{"fieldSelector", "spec.nodeName=n1"}})),
              ElementsAre("p1"));
  const auto bad = api.list("pods", "", {{"fieldSelector", "spec.nothing=1"}});
  EXPECT_EQ(bad.error().code, Code::kBadRequest);
  EXPECT_THAT(bad.error().message, HasSubstr("field label not supported: spec.nothing"));
  EXPECT_EQ(api.list("pods", "", {{"labelSelector", "a=b=c"}}).error().code, Code::kBadRequest);
}

TEST(ApiList, Pages_show_one_moment_while_writes_go_on) {
  TestApi api;
  make_pods(api, 5);
  auto page = api.list("pods", "default", {{"limit", "2"}});
  EXPECT_THAT(names(page), ElementsAre("p0", "p1"));
  EXPECT_EQ((*page)["metadata"]["remainingItemCount"].as_int(), 3);
  const std::string version = (*page)["metadata"]["resourceVersion"].str();
  ASSERT_TRUE(api.remove("pods", "default", "p2"));
  ASSERT_TRUE(api.create("pods", TestApi::pod("p25")));
  ASSERT_TRUE(api.patch("pods", "default", "p3", R"({"metadata":{"labels":{"new":"1"}}})"));
  page = api.list("pods", "default",
                  {{"limit", "2"}, {"continue", (*page)["metadata"]["continue"].str()}});
  EXPECT_THAT(names(page), ElementsAre("p2", "p3"));
  EXPECT_EQ((*page)["metadata"]["remainingItemCount"].as_int(), 1);
  EXPECT_FALSE((*page)["items"].at(1)["metadata"]["labels"].contains("new"));
  EXPECT_EQ((*page)["metadata"]["resourceVersion"].str(), version);
  page = api.list("pods", "default",
                  {{"limit", "2"}, {"continue", (*page)["metadata"]["continue"].str()}});
  EXPECT_THAT(names(page), ElementsAre("p4"));
  EXPECT_FALSE((*page)["metadata"].contains("continue"));
}

TEST(ApiList, A_page_of_a_forgotten_moment_is_expired) {
  TestApi api({.history_events_max = 4});
  make_pods(api, 3);
  const auto page = api.list("pods", "default", {{"limit", "1"}});
  for (int i = 10; i < 20; ++i) ASSERT_TRUE(api.create("pods", TestApi::pod(std::to_string(i))));
  const auto next =
      api.list("pods", "default", {{"continue", (*page)["metadata"]["continue"].str()}});
  EXPECT_EQ(next.error().code, Code::kExpired);
  EXPECT_EQ(api.list("pods", "", {{"continue", "rubbish"}}).error().code, Code::kBadRequest);
}

TEST(ApiList, Reads_the_version_that_is_asked_for) {
  TestApi api;
  make_pods(api, 2);
  const std::string then = std::to_string(api->revision());
  ASSERT_TRUE(api.remove("pods", "default", "p0"));
  using Query = TestApi::Query;
  const auto list = [&](const Query& query) { return api.list("pods", "default", query); };
  EXPECT_THAT(names(list({{"resourceVersion", then}, {"resourceVersionMatch", "Exact"}})),
              ElementsAre("p0", "p1"));
  EXPECT_THAT(names(list({{"resourceVersion", then}, {"resourceVersionMatch", "NotOlderThan"}})),
              ElementsAre("p1"));
  EXPECT_THAT(names(list({{"resourceVersion", then}})), ElementsAre("p1"));
  EXPECT_THAT(names(list({{"resourceVersion", "0"}})), ElementsAre("p1"));
  EXPECT_EQ(list({{"resourceVersion", "999999"}}).error().code, Code::kTimeout);
  EXPECT_THAT(list({{"resourceVersion", "999999"}}).error().message,
              HasSubstr("Too large resource version: 999999"));
  EXPECT_EQ(list({{"resourceVersionMatch", "Exact"}}).error().code, Code::kInvalid);
  EXPECT_EQ(list({{"resourceVersion", "0"}, {"resourceVersionMatch", "Exact"}}).error().code,
            Code::kInvalid);
  EXPECT_EQ(list({{"resourceVersion", "x"}}).error().code, Code::kBadRequest);
  EXPECT_EQ(list({{"resourceVersion", "x"}}).error().message,
            "invalid resource version: resourceVersion: Invalid value: \"x\": strconv.ParseUint: "
            "parsing \"x\": invalid syntax");
  EXPECT_EQ(list({{"limit", "1.5"}}).error().message,
            "strconv.ParseInt: parsing \"1.5\": invalid syntax");
  EXPECT_TRUE(list({{"limit", "-1"}}));
  EXPECT_EQ(list({{"continue", "x"}}).error().message,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte "
            "0");
  EXPECT_EQ(
      list({{"resourceVersionMatch", "Some"}, {"sendInitialEvents", "true"}}).error().message,
      "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: "
      "resourceVersionMatch is forbidden unless resourceVersion is provided, "
      "resourceVersionMatch: Unsupported value: \"Some\": supported values: \"Exact\", "
      "\"NotOlderThan\", \"\", sendInitialEvents: Forbidden: sendInitialEvents is forbidden for "
      "list]");
}

}  // namespace
}  // namespace tessera::apiserver
