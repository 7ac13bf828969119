#include "apiserver/watch_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using kube::WatchEvent;
using ::testing::ElementsAre;

struct Seen {
  std::vector<std::string> events;  // "ADDED p0", "BOOKMARK"
  std::vector<WatchEvent> all;
  std::optional<base::Status> closed;
  std::unique_ptr<base::Subscription> subscription;
};

std::string word(const WatchEvent& event) {
  const char* words[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
  std::string out = words[static_cast<int>(event.type)];
  if (event.type != WatchEvent::Type::kBookmark) out += " " + std::string(event.object.name());
  return out;
}

base::Status watch(TestApi& api, Seen& seen, const TestApi::Query& query,
                   const char* resource = "pods") {
  auto request = TestApi::request(kube::Verb::kList, resource, "default", {}, {}, query);
  auto started = api->watch(
      system_caller("test"), request,
      [&seen](const WatchEvent& event) {
        seen.events.push_back(word(event));
        seen.all.push_back(event);
      },
      [&seen](const base::Status& why) { seen.closed = why; });
  if (!started) return base::error(started.error());
  seen.subscription = std::move(*started);
  api.loop().run_ready();
  return {};
}

TEST(Watch, Without_a_version_starts_with_what_is_there) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("a")));
  Seen seen;
  ASSERT_TRUE(watch(api, seen, {}));
  ASSERT_TRUE(api.create("pods", TestApi::pod("b")));
  ASSERT_TRUE(api.patch("pods", "default", "a", R"({"metadata":{"labels":{"x":"1"}}})"));
  ASSERT_TRUE(api.remove("pods", "default", "a"));
  EXPECT_THAT(seen.events, ElementsAre("ADDED a", "ADDED b", "MODIFIED a", "DELETED a"));
  EXPECT_EQ(seen.all.back().object.resource_version(), std::to_string(api->revision()));
}

TEST(Watch, Resumes_from_any_version_that_is_kept) {
  TestApi api({.history_events_max = 8});
  ASSERT_TRUE(api.create("pods", TestApi::pod("a")));
  const std::string version = std::to_string(api->revision());
  ASSERT_TRUE(api.create("pods", TestApi::pod("b")));
  ASSERT_TRUE(api.remove("pods", "default", "a"));
  Seen seen;
  ASSERT_TRUE(watch(api, seen, {{"resourceVersion", version}}));
  EXPECT_THAT(seen.events, ElementsAre("ADDED b", "DELETED a"));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(api.create("pods", TestApi::pod(std::to_string(i))));
  const auto late = watch(api, seen, {{"resourceVersion", version}});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kExpired);
  EXPECT_THAT(late.error().message, ::testing::StartsWith("too old resource version: " + version));
  EXPECT_TRUE(watch(api, seen, {{"resourceVersion", "99999"}}));  // waits for it
  EXPECT_EQ(
      watch(api, seen, {{"resourceVersion", "x"}}).error().message,
      "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax");
  EXPECT_EQ(watch(api, seen, {{"labelSelector", "=="}}).error().code, Code::kBadRequest);
}

TEST(Watch, Objects_enter_and_leave_a_selection) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("a")));
  Seen by_label;
  Seen by_field;
  ASSERT_TRUE(watch(api, by_label, {{"labelSelector", "x=1"}}));
  ASSERT_TRUE(watch(api, by_field, {{"fieldSelector", "spec.nodeName=n1"}}));
  ASSERT_TRUE(api.patch("pods", "default", "a", R"({"metadata":{"labels":{"x":"1"}}})"));
  ASSERT_TRUE(api.bind("default", "a", "n1"));
  ASSERT_TRUE(api.patch("pods", "default", "a", R"({"metadata":{"labels":{"x":"2"}}})"));
  EXPECT_THAT(by_label.events, ElementsAre("ADDED a", "MODIFIED a", "DELETED a"));
  EXPECT_THAT(by_field.events, ElementsAre("ADDED a", "MODIFIED a"));
  // The last state that was selected, at the version of the change.
  EXPECT_EQ(by_label.all.back().object.label("x"), "1");
  EXPECT_EQ(by_label.all.back().object.resource_version(), std::to_string(api->revision()));
}

TEST(Watch, Initial_events_end_with_a_bookmark) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("a")));
  Seen seen;
  ASSERT_TRUE(watch(api, seen,
                    {{"sendInitialEvents", "true"},
                     {"resourceVersionMatch", "NotOlderThan"},
                     {"allowWatchBookmarks", "true"}}));
  EXPECT_THAT(seen.events, ElementsAre("ADDED a", "BOOKMARK"));
  EXPECT_EQ(seen.all.back().object.annotation("k8s.io/initial-events-end"), "true");
  EXPECT_EQ(seen.all.back().object.resource_version(), std::to_string(api->revision()));
  EXPECT_EQ(watch(api, seen, {{"sendInitialEvents", "true"}}).error().code, Code::kInvalid);
}

TEST(Watch, Bookmarks_come_by_time_to_those_who_asked) {
  TestApi api({.bookmark_period = base::seconds(60)});
  Seen with;
  Seen without;
  ASSERT_TRUE(watch(api, with, {{"allowWatchBookmarks", "true"}}));
  ASSERT_TRUE(watch(api, without, {}));
  EXPECT_THAT(with.events, ElementsAre("BOOKMARK"));  // that of the initial events
  ASSERT_TRUE(api.create("configmaps", TestApi::config_map("a", "1")));
  api.advance(base::seconds(61));
  EXPECT_THAT(with.events, ElementsAre("BOOKMARK", "BOOKMARK"));
  EXPECT_EQ(with.all[1].object.resource_version(), std::to_string(api->revision()));
  EXPECT_TRUE(without.events.empty());
  with.subscription.reset();
  api.advance(base::seconds(600));
  EXPECT_EQ(with.events.size(), 2U);
}

TEST(Watch, Ends_by_time_by_drop_and_at_the_close_of_the_api) {
  TestApi api;
  Seen timed;
  Seen dropped;
  Seen open;
  ASSERT_TRUE(watch(api, timed, {{"timeoutSeconds", "5"}}));
  ASSERT_TRUE(watch(api, dropped, {}));
  ASSERT_TRUE(watch(api, open, {}));
  api.advance(base::seconds(6));
  ASSERT_TRUE(timed.closed);
  EXPECT_TRUE(*timed.closed);
  dropped.subscription.reset();
  ASSERT_TRUE(api.create("pods", TestApi::pod("a")));
  EXPECT_TRUE(dropped.events.empty());
  EXPECT_FALSE(dropped.closed);
  api->close();
  api.loop().run_ready();
  ASSERT_TRUE(open.closed);
  EXPECT_EQ(open.closed->error().code, Code::kUnavailable);
  EXPECT_EQ(api.create("pods", TestApi::pod("b")).error().code, Code::kUnavailable);
}

TEST(Watch, From_a_version_of_the_future_waits_for_it) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("first")));  // and the account it needs
  Seen seen;
  ASSERT_TRUE(watch(api, seen, {{"resourceVersion", std::to_string(api->revision() + 1)}}));
  ASSERT_TRUE(api.create("pods", TestApi::pod("a")));  // has that version, so nothing is told
  ASSERT_TRUE(api.create("pods", TestApi::pod("b")));
  EXPECT_THAT(seen.events, ElementsAre("ADDED b"));
}

TEST(Watch, That_asks_for_no_initial_events_begins_now) {
  TestApi api;
  ASSERT_TRUE(api.create("pods", TestApi::pod("a")));
  Seen seen;
  ASSERT_TRUE(
      watch(api, seen, {{"sendInitialEvents", "false"}, {"resourceVersionMatch", "NotOlderThan"}}));
  ASSERT_TRUE(api.create("pods", TestApi::pod("b")));
  EXPECT_THAT(seen.events, ElementsAre("ADDED b"));
}

TEST(Watch, Tells_where_it_stands_before_its_time_is_over) {
  TestApi api;
  Seen seen;
  ASSERT_TRUE(watch(api, seen,
                    {{"allowWatchBookmarks", "true"},
                     {"resourceVersion", std::to_string(api->revision())},
                     {"timeoutSeconds", "5"}}));
  api.advance(base::seconds(3));
  EXPECT_THAT(seen.events, ElementsAre("BOOKMARK"));
  EXPECT_FALSE(seen.closed);
  api.advance(base::seconds(2));
  EXPECT_TRUE(seen.closed);
}

TEST(Watch, Can_be_dropped_from_its_own_event) {
  TestApi api;
  Seen seen;
  auto request = TestApi::request(kube::Verb::kList, "pods", "default");
  int count = 0;
  std::unique_ptr<base::Subscription> subscription;
  auto started = api->watch(
      system_caller("test"), request,
      [&](const WatchEvent&) {
        ++count;
        subscription.reset();
      },
      [](const base::Status&) {});
  subscription = std::move(*started);
  api.loop().run_ready();
  ASSERT_TRUE(api.create("pods", TestApi::pod("a")));
  ASSERT_TRUE(api.create("pods", TestApi::pod("b")));
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace tessera::apiserver
