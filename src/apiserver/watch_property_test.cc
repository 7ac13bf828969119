// What a watch tells adds up to what lists show, at every revision, for any order of operations.
#include <gtest/gtest.h>

#include <map>

#include "apiserver/api_fixture.h"
#include "base/random.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::WatchEvent;
using State = std::map<std::string, std::string>;  // key -> resourceVersion and text

// A client: lists, then watches, and keeps its copy.
struct Mirror {
  TestApi::Query query;
  State state;
  std::string version;
  uint64_t last = 0;
  bool failed = false;
  std::unique_ptr<base::Subscription> subscription;

  void start(TestApi& api) {
    const auto list = api.list("configmaps", "default", query);
    ASSERT_TRUE(list) << list.error().message;
    for (const Value& item : (*list)["items"].items()) {
      state[item["metadata"]["name"].str()] = item.dump();
    }
    version = (*list)["metadata"]["resourceVersion"].str();
    watch(api);
  }
  void watch(TestApi& api) {
    auto request = TestApi::request(kube::Verb::kList, "configmaps", "default", {}, {}, query);
    request.query.emplace_back("resourceVersion", version);
    request.query.emplace_back("allowWatchBookmarks", "true");
    auto started = api->watch(
        system_caller("mirror"), request, [this](const WatchEvent& event) { take(event); },
        [](const base::Status&) {});
    ASSERT_TRUE(started) << started.error().message;
    subscription = std::move(*started);
  }
  void take(const WatchEvent& event) {
    version = std::string(event.object.resource_version());
    const uint64_t revision = std::stoull(version);
    // Never back, and never the same change twice.
    if (revision < last) failed = true;
    if (event.type == WatchEvent::Type::kBookmark) return;
    if (revision == last) failed = true;
    last = revision;
    const std::string name(event.object.name());
    const bool known = state.contains(name);
    if (known == (event.type == WatchEvent::Type::kAdded)) failed = true;
    if (event.type == WatchEvent::Type::kDeleted) {
      state.erase(name);
    } else {
      state[name] = event.object.json().dump();
    }
  }
};

State listed(TestApi& api, TestApi::Query query, uint64_t revision) {
  query.emplace_back("resourceVersion", std::to_string(revision));
  query.emplace_back("resourceVersionMatch", "Exact");
  State out;
  const auto list = api.list("configmaps", "default", query);
  EXPECT_TRUE(list) << list.error().message;
  if (!list) return out;
  for (const Value& item : (*list)["items"].items()) {
    out[item["metadata"]["name"].str()] = item.dump();
  }
  return out;
}

// One random write, whether or not it succeeds; answers come later.
void write_something(TestApi& api, base::Random& random) {
  const std::string name = "m" + std::to_string(random.below(6));
  kube::Request request;
  const std::string side = random.chance(0.5) ? "left" : "right";
  switch (random.below(3)) {
    case 0: {
      Value map = TestApi::config_map(name, std::to_string(random.below(1000)));
      map.ref("metadata", "labels", "side") = side;
      request = TestApi::request(kube::Verb::kCreate, "configmaps", "default", {}, map);
      break;
    }
    case 1:
      request = TestApi::request(
          kube::Verb::kPatch, "configmaps", "default", name,
          TestApi::parse(R"({"metadata":{"labels":{"side":")" + side + R"("}},"data":{"key":")" +
                         std::to_string(random.below(3)) + "\"}}"));
      break;
    default:
      request = TestApi::request(kube::Verb::kDelete, "configmaps", "default", name);
  }
  api->call(system_caller("writer"), std::move(request), [](const ApiReply&) {});
}

void run_seed(uint64_t seed) {
  base::Random random(seed);
  TestApi api({.history_events_max = 5000, .bookmark_period = base::seconds(5)});
  std::vector<std::unique_ptr<Mirror>> mirrors;
  const auto check = [&] {
    for (const auto& mirror : mirrors) {
      ASSERT_FALSE(mirror->failed) << "seed " << seed;
      ASSERT_EQ(mirror->state, listed(api, mirror->query, api->revision())) << "seed " << seed;
      if (mirror->last == 0) continue;
      ASSERT_EQ(mirror->state, listed(api, mirror->query, mirror->last)) << "seed " << seed;
    }
  };
  for (int step = 0; step < 150; ++step) {
    for (uint64_t i = random.below(4); i > 0; --i) write_something(api, random);
    if (random.chance(0.1) && mirrors.size() < 8) {
      mirrors.push_back(std::make_unique<Mirror>());
      if (random.chance(0.5)) mirrors.back()->query = {{"labelSelector", "side=left"}};
      mirrors.back()->start(api);
    }
    if (random.chance(0.1) && !mirrors.empty()) {  // a cut connection: resume from the last seen
      mirrors[random.below(mirrors.size())]->watch(api);
    }
    if (random.chance(0.7)) {
      api.advance(base::seconds(static_cast<int64_t>(random.below(3))));
      check();
    }
  }
}

TEST(WatchProperty, What_a_watch_tells_is_what_lists_show_at_every_revision) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    run_seed(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tessera::apiserver
