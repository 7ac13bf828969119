// Many threads write and read while others watch: for the thread sanitizer, and to see that nothing is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

#include "apiserver/api_fixture.h"
#include "apiserver/local_client.h"
#include "base/file.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::WatchEvent;

// Counts down to what the test waits for.
class Countdown {
 public:
  explicit Countdown(int count) : count_(count) {}
  void hit() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) done_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return count_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  int count_;
};

struct World {
  base::SystemClock clock;
  base::TempDir dir;
  base::LoopThread server{"server"};
  std::unique_ptr<Api> api;

  World() {
    Api::Options options;
    options.data_dir = dir.path();
    options.clock = &clock;
    options.executor = &server;
    api = std::move(*Api::open(std::move(options)));
  }
  ~World() {
    api.reset();
    server.stop();
  }
};

TEST(ApiConcurrency, Writers_on_many_threads_lose_nothing_and_the_watch_sees_all) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  World world;
  base::LoopThread watching("watching");
  std::map<std::string, std::string> seen;  // on `watching`
  LocalClient watcher(*world.api, watching, system_caller("watcher"));
  kube::Request request = TestApi::request(kube::Verb::kList, "configmaps", "default");
  auto subscription = watcher.watch(
      request,
      [&](const WatchEvent& event) {
        const std::string name(event.object.name());
        if (event.type == WatchEvent::Type::kDeleted) {
          seen.erase(name);
        } else {
          seen[name] = event.object["data"]["key"].str();
        }
      },
      [](const base::Status&) {});
  std::vector<std::unique_ptr<base::LoopThread>> threads;
  std::vector<std::unique_ptr<LocalClient>> clients;
  Countdown left(kThreads * kRounds * 3);
  std::atomic<int> created{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.push_back(std::make_unique<base::LoopThread>("writer"));
    clients.push_back(
        std::make_unique<LocalClient>(*world.api, *threads.back(), system_caller("writer")));
    threads.back()->post([&, t, client = clients.back().get()] {
      for (int i = 0; i < kRounds; ++i) {
        const std::string name = "m" + std::to_string(i);
        client->create(kube::core_v1("configmaps"), "default",
                       TestApi::config_map(name, std::to_string(t)), [&](const kube::Reply& r) {
                         if (r) ++created;
                         left.hit();
                       });
        client->merge_patch(kube::core_v1("configmaps"), "default", name,
                            TestApi::parse(R"({"data":{"key":")" + std::to_string(t) + "\"}}"),
                            [&](const kube::Reply&) { left.hit(); });
        if (i % 3 == t % 3) {
          client->remove(kube::core_v1("configmaps"), "default", name,
                         [&](const kube::Reply&) { left.hit(); });
        } else {
          client->list(kube::core_v1("configmaps"), "default",
                       [&](const kube::Reply&) { left.hit(); });
        }
      }
    });
  }
  left.wait();
  EXPECT_GE(created, kRounds);
  std::map<std::string, std::string> listed;
  Countdown checked(1);
  watcher.list(kube::core_v1("configmaps"), "default", [&](const kube::Reply& list) {
    for (const Value& item : (*list)["items"].items()) {
      listed[item["metadata"]["name"].str()] = item["data"]["key"].str();
    }
    // The events of all writes above are on their way to this thread already, or came before.
    world.server.post([&] { watching.post([&] { checked.hit(); }); });
  });
  checked.wait();
  EXPECT_EQ(seen, listed);
  watching.post([&] { subscription.reset(); });
  watching.stop();
  for (auto& thread : threads) thread->stop();
}

TEST(ApiConcurrency, Watches_come_and_go_under_load) {
  World world;
  base::LoopThread writing("writing");
  base::LoopThread watching("watching");
  LocalClient writer(*world.api, writing, system_caller("writer"));
  LocalClient watcher(*world.api, watching, system_caller("watcher"));
  Countdown left(400);
  writing.post([&] {
    for (int i = 0; i < 200; ++i) {
      writer.create(kube::core_v1("configmaps"), "default",
                    TestApi::config_map("m" + std::to_string(i), "1"),
                    [&](const kube::Reply&) { left.hit(); });
    }
  });
  std::atomic<int> events{0};
  for (int i = 0; i < 200; ++i) {
    watching.post([&] {
      auto request = TestApi::request(kube::Verb::kList, "configmaps", "default");
      auto held = std::make_shared<std::unique_ptr<base::Subscription>>();
      *held =
          watcher.watch(request, [&](const WatchEvent&) { ++events; }, [](const base::Status&) {});
      watching.post([&, held] {
        held->reset();
        left.hit();
      });
    });
  }
  left.wait();
  writing.stop();
  watching.stop();
}

}  // namespace
}  // namespace tessera::apiserver
