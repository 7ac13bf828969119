// Case C37: watches that are too old, and paging through a list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using Query = TestApi::Query;

Value secret(int number) {
  Value out = TestApi::parse(R"({"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"w",
      "labels":{"set":"a"}},"stringData":{"k":"v"}})");
  out.ref("metadata", "name") = fmt::format("c{:02}", number);
  return out;
}

class C37 : public ::testing::Test {
 protected:
  C37() : api({.history_events_max = 1200}) {
    EXPECT_TRUE(api.create(
        "namespaces",
        TestApi::parse(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"w"}})")));
    for (int i = 0; i < 25; ++i) EXPECT_TRUE(api.create("secrets", secret(i)));
  }
  // Makes the history forget what was before.
  void compact() {
    for (int i = 0; i < 1300; ++i) {
      EXPECT_TRUE(
          api.patch("secrets", "w", "c01", fmt::format(R"({{"stringData":{{"n":"{}"}}}})", i)));
    }
  }
  std::string names(const Value& page) {
    std::string out;
    for (const Value& item : page["items"].items()) out += item["metadata"]["name"].str() + " ";
    return out;
  }
  base::Result<std::unique_ptr<base::Subscription>> watch(const std::string& since,
                                                          const std::string& labels = "") {
    return api->watch(
        system_caller("test"),
        TestApi::request(kube::Verb::kList, "secrets", "w", {}, {},
                         {{"resourceVersion", since}, {"labelSelector", labels}}),
        [this](const kube::WatchEvent& event) {
          const char* kTypes[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"};
          events.push_back(std::string(kTypes[static_cast<int>(event.type)]) + " " +
                           std::string(event.object.name()));
          versions.push_back(std::stoull(std::string(event.object.resource_version())));
        },
        [](const base::Status&) {});
  }

  TestApi api;
  std::vector<std::string> events;
  std::vector<uint64_t> versions;
};

TEST_F(C37, Pages_show_one_moment) {
  const auto first = api.list("secrets", "w", {{"limit", "10"}});
  ASSERT_TRUE(first);
  const Value meta = (*first)["metadata"];
  EXPECT_EQ((*first)["items"].size(), 10U);
  EXPECT_EQ(meta["remainingItemCount"].as_int(), 15);
  ASSERT_TRUE(api.remove("secrets", "w", "c20"));
  ASSERT_TRUE(api.create("secrets", secret(99)));
  const auto second =
      api.list("secrets", "w", {{"limit", "10"}, {"continue", meta["continue"].str()}});
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)["items"].size(), 10U);
  const auto third = api.list(
      "secrets", "w", {{"limit", "10"}, {"continue", (*second)["metadata"]["continue"].str()}});
  ASSERT_TRUE(third);
  EXPECT_EQ(names(*third), "c20 c21 c22 c23 c24 ");
  EXPECT_FALSE((*third)["metadata"].contains("continue"));
  EXPECT_EQ((*second)["metadata"]["resourceVersion"], meta["resourceVersion"]);
  EXPECT_EQ((*third)["metadata"]["resourceVersion"], meta["resourceVersion"]);
}

TEST_F(C37, Pages_of_a_selection_do_not_say_how_many_remain) {
  const auto page = api.list("secrets", "w", {{"limit", "10"}, {"labelSelector", "set=a"}});
  ASSERT_TRUE(page);
  EXPECT_EQ((*page)["items"].size(), 10U);
  EXPECT_FALSE((*page)["metadata"].contains("remainingItemCount"));
  EXPECT_TRUE((*page)["metadata"].contains("continue"));
}

TEST_F(C37, An_expired_token_brings_another_that_goes_on_without_the_moment) {
  const auto first = api.list("secrets", "w", {{"limit", "10"}});
  ASSERT_TRUE(first);
  ASSERT_TRUE(api.remove("secrets", "w", "c20"));
  compact();
  const auto expired = api.list(
      "secrets", "w", {{"limit", "10"}, {"continue", (*first)["metadata"]["continue"].str()}});
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().code, Code::kExpired);
  ASSERT_EQ(expired.error().causes.size(), 1U);
  EXPECT_EQ(expired.error().causes[0].field, "metadata.continue");
  const std::string token = expired.error().causes[0].message;
  const auto rest = api.list("secrets", "w", {{"limit", "10"}, {"continue", token}});
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_EQ(names(*rest), "c10 c11 c12 c13 c14 c15 c16 c17 c18 c19 ");
  const auto last = api.list(
      "secrets", "w", {{"limit", "10"}, {"continue", (*rest)["metadata"]["continue"].str()}});
  ASSERT_TRUE(last);
  EXPECT_EQ(names(*last), "c21 c22 c23 c24 ");
}

TEST_F(C37, Garbage_is_a_bad_request) {
  const auto page = api.list("secrets", "w", {{"limit", "10"}, {"continue", "garbage"}});
  EXPECT_EQ(page.error().code, Code::kBadRequest);
}

TEST_F(C37, A_watch_that_is_too_old_is_told_so) {
  compact();
  const auto subscription = watch("1");
  ASSERT_FALSE(subscription);
  EXPECT_EQ(subscription.error().code, Code::kExpired);
}

TEST_F(C37, A_watch_from_a_list_gets_exactly_what_came_after) {
  const auto first = api.list("secrets", "w", {{"limit", "10"}});
  ASSERT_TRUE(api.remove("secrets", "w", "c20"));
  ASSERT_TRUE(api.create("secrets", secret(99)));
  const auto subscription = watch((*first)["metadata"]["resourceVersion"].str());
  ASSERT_TRUE(subscription);
  api.loop().run_ready();
  EXPECT_THAT(events, ::testing::ElementsAre("DELETED c20", "ADDED c99"));
}

TEST_F(C37, A_thousand_updates_are_a_thousand_events_in_order) {
  const auto subscription = watch(std::to_string(api->revision()));
  ASSERT_TRUE(subscription);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(
        api.patch("secrets", "w", "c01", fmt::format(R"({{"stringData":{{"n":"{}"}}}})", i)));
  }
  api.loop().run_ready();
  EXPECT_EQ(events, std::vector<std::string>(1000, "MODIFIED c01"));
  EXPECT_EQ(std::ranges::adjacent_find(versions, std::greater_equal<>()), versions.end());
}

TEST_F(C37, An_object_that_leaves_the_selection_is_deleted_for_the_watch) {
  const auto subscription = watch(std::to_string(api->revision()), "set=a");
  ASSERT_TRUE(subscription);
  ASSERT_TRUE(api.patch("secrets", "w", "c01", R"({"metadata":{"labels":{"set":"b"}}})"));
  ASSERT_TRUE(api.patch("secrets", "w", "c01", R"({"metadata":{"labels":{"set":"a"}}})"));
  api.loop().run_ready();
  EXPECT_THAT(events, ::testing::ElementsAre("DELETED c01", "ADDED c01"));
}

}  // namespace
}  // namespace tessera::apiserver
