#include "apiserver/local_client.h"

#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"
#include "kube/informer.h"

namespace tessera::apiserver {
namespace {

TEST(LocalClient, Answers_on_the_executor_it_was_made_with) {
  TestApi api;
  base::ManualLoop mine;
  LocalClient client(*api, mine, system_caller("test"));
  int answers = 0;
  client.create(kube::core_v1("pods"), "default", TestApi::pod("x"), [&](const kube::Reply& reply) {
    EXPECT_TRUE(reply);
    ++answers;
  });
  client.get(kube::core_v1("nodes"), "", "none", [&](const kube::Reply& reply) {
    EXPECT_EQ(reply.error().code, base::Code::kNotFound);
    ++answers;
  });
  api.loop().run_ready();
  EXPECT_EQ(answers, 0);
  mine.run_ready();
  EXPECT_EQ(answers, 2);
}

TEST(LocalClient, A_dropped_watch_says_nothing_of_what_is_on_its_way) {
  TestApi api;
  base::ManualLoop mine;
  LocalClient client(*api, mine, system_caller("test"));
  int events = 0;
  auto watch = client.watch(
      TestApi::request(kube::Verb::kList, "pods", ""), [&](const kube::WatchEvent&) { ++events; },
      [](const base::Status&) {});
  api.loop().run_ready();
  ASSERT_TRUE(api.create("pods", TestApi::pod("x")));
  mine.run_ready();
  EXPECT_EQ(events, 1);
  ASSERT_TRUE(api.create("pods", TestApi::pod("y")));
  watch.reset();
  mine.run_ready();
  EXPECT_EQ(events, 1);
}

TEST(LocalClient, A_watch_that_cannot_start_closes_with_the_reason) {
  TestApi api;
  base::ManualLoop mine;
  LocalClient client(*api, mine, system_caller("test"));
  auto request = TestApi::request(kube::Verb::kList, "pods", "");
  request.query = {{"labelSelector", "=="}};
  base::Code code = base::Code::kInternal;
  const auto watch = client.watch(
      request, [](const kube::WatchEvent&) {},
      [&](const base::Status& why) { code = why.error().code; });
  mine.run_ready();
  EXPECT_EQ(code, base::Code::kBadRequest);
}

TEST(LocalClient, Carries_an_informer) {
  TestApi api;
  LocalClient client(*api, api.loop(), system_caller("test"));
  ASSERT_TRUE(api.create("pods", TestApi::pod("x")));
  int changes = 0;
  bool synced = false;
  kube::Informer informer(
      client, api.loop(), base::Random(1), {kube::core_v1("pods"), "", "", ""},
      {[&](const kube::Object&, const kube::Object&) { ++changes; }, [&] { synced = true; }});
  informer.start();
  api.loop().run_ready();
  EXPECT_TRUE(synced);
  ASSERT_TRUE(api.bind("default", "x", "n1"));
  EXPECT_EQ(informer.find("default/x")["spec"]["nodeName"].as_string(), "n1");
  ASSERT_TRUE(api.remove("pods", "default", "x", R"({"gracePeriodSeconds":0})"));
  EXPECT_TRUE(informer.objects().empty());
  EXPECT_EQ(changes, 3);
}

}  // namespace
}  // namespace tessera::apiserver
