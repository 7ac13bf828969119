#include "kube/informer.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/random.h"

namespace tessera::kube {
namespace {

using base::Code;

json::Value pod(std::string_view name, int64_t version, std::string_view uid = "") {
  json::Value out;
  out.ref("metadata", "namespace") = "ns";
  out.ref("metadata", "name") = name;
  out.ref("metadata", "uid") = uid.empty() ? name : uid;
  out.ref("metadata", "resourceVersion") = std::to_string(version);
  return out;
}

json::Value list_of(std::initializer_list<json::Value> items, int64_t version,
                    std::string_view more = "") {
  json::Value out = json::Value::object({{"kind", "PodList"}, {"apiVersion", "v1"}});
  out.ref("metadata", "resourceVersion") = std::to_string(version);
  if (!more.empty()) out.ref("metadata", "continue") = more;
  out.set("items", json::Value::array(items));
  return out;
}

// Answers each list with the next reply prepared and keeps the watch's callbacks for the test to call.
class FakeClient : public Client {
 public:
  explicit FakeClient(base::ManualLoop& loop) : loop_(loop) {}

  std::deque<Reply> lists;
  std::vector<Request> asked;
  std::vector<Request> watched;
  std::function<void(WatchEvent)> on_event;
  std::function<void(base::Status)> on_close;
  int open = 0;

  void call(Request request, std::function<void(Reply)> done) override {
    asked.push_back(std::move(request));
    Reply reply = base::error(Code::kUnavailable, "nothing prepared");
    if (!lists.empty()) {
      reply = lists.front();
      lists.pop_front();
    }
    loop_.post([done = std::move(done), reply = std::move(reply)] { done(reply); });
  }
  std::unique_ptr<base::Subscription> watch(Request request, std::function<void(WatchEvent)> event,
                                            std::function<void(base::Status)> close) override {
    struct Open : base::Subscription {
      explicit Open(int& n) : count(n) { ++count; }
      ~Open() override { --count; }
      int& count;
    };
    watched.push_back(std::move(request));
    on_event = std::move(event);
    on_close = std::move(close);
    return std::make_unique<Open>(open);
  }

 private:
  base::ManualLoop& loop_;
};

class InformerTest : public testing::Test {
 protected:
  void start(Informer::Options options = {core_v1("pods"), "", "", ""}) {
    informer = std::make_unique<Informer>(
        client, loop, base::Random(1), std::move(options),
        Informer::Handlers{[this](const Object& before, const Object& after) {
                             log += before ? "-" + std::string(before.name()) +
                                                 std::string(before.resource_version())
                                           : "";
                             log += after ? "+" + std::string(after.name()) +
                                                std::string(after.resource_version())
                                          : "";
                             log += " ";
                           },
                           [this] { log += "synced "; }});
    informer->start();
    loop.run_ready();
  }
  std::string seen() {
    std::string out = std::exchange(log, {});
    if (!out.empty()) out.pop_back();
    return out;
  }
  void event(WatchEvent::Type type, json::Value object) {
    client.on_event({type, Object(std::move(object))});
    loop.run_ready();
  }
  void close(base::Status status = {}) {
    auto callback = client.on_close;
    callback(std::move(status));
    loop.run_ready();
  }

  base::ManualLoop loop;
  FakeClient client{loop};
  std::unique_ptr<Informer> informer;
  std::string log;
};

TEST_F(InformerTest, Lists_in_pages_then_watches_from_there) {
  client.lists = {list_of({pod("a", 1)}, 5, "next"), list_of({pod("b", 2)}, 5)};
  start({core_v1("pods"), "ns", "app=x", "spec.nodeName=n"});
  EXPECT_EQ(seen(), "+a1 +b2 synced");
  EXPECT_TRUE(informer->synced());
  EXPECT_EQ(client.asked[0].option("labelSelector"), "app=x");
  EXPECT_EQ(client.asked[0].option("fieldSelector"), "spec.nodeName=n");
  EXPECT_EQ(client.asked[1].option("continue"), "next");
  ASSERT_EQ(client.watched.size(), 1U);
  EXPECT_EQ(client.watched[0].option("resourceVersion"), "5");
  EXPECT_EQ(client.watched[0].option("allowWatchBookmarks"), "true");
  EXPECT_EQ(informer->find("ns/a").kind(), "Pod");
  EXPECT_EQ(informer->find("ns/a").api_version(), "v1");
}

TEST_F(InformerTest, Reports_every_change_in_order) {
  client.lists = {list_of({pod("a", 1)}, 5)};
  start();
  seen();
  event(WatchEvent::Type::kAdded, pod("b", 6));
  event(WatchEvent::Type::kModified, pod("a", 7));
  event(WatchEvent::Type::kDeleted, pod("b", 8));
  EXPECT_EQ(seen(), "+b6 -a1+a7 -b6");
  EXPECT_EQ(informer->objects().size(), 1U);
}

TEST_F(InformerTest, A_closed_watch_resumes_from_the_last_version_seen) {
  client.lists = {list_of({}, 5)};
  start();
  event(WatchEvent::Type::kAdded, pod("a", 6));
  event(WatchEvent::Type::kBookmark, pod("", 9));
  close();
  ASSERT_EQ(client.watched.size(), 2U);
  EXPECT_EQ(client.watched[1].option("resourceVersion"), "9");
  EXPECT_EQ(client.asked.size(), 1U);
  EXPECT_EQ(client.open, 1);
}

TEST_F(InformerTest, Expired_lists_again_and_reports_the_differences) {
  client.lists = {list_of({pod("a", 1), pod("b", 2), pod("c", 3), pod("d", 4, "old")}, 5)};
  start();
  seen();
  client.lists = {list_of({pod("a", 1), pod("b", 12), pod("d", 13, "new"), pod("e", 14)}, 20)};
  event(WatchEvent::Type::kError,
        json::Value::object({{"code", 410}, {"reason", "Expired"}, {"message", "too old"}}));
  EXPECT_EQ(seen(), "-c3 -b2+b12 -d4 +d13 +e14");
  EXPECT_EQ(client.watched.back().option("resourceVersion"), "20");

  client.lists = {list_of({}, 30)};
  close(base::error(Code::kExpired, "too old"));
  loop.advance(base::seconds(60));
  EXPECT_EQ(informer->objects().size(), 0U);
}

TEST_F(InformerTest, Failed_lists_back_off_and_never_end_it) {
  start();
  EXPECT_EQ(client.asked.size(), 1U);
  loop.advance(base::millis(99));
  EXPECT_EQ(client.asked.size(), 1U);
  loop.advance(base::millis(101));
  EXPECT_EQ(client.asked.size(), 2U);
  loop.advance(base::seconds(600));
  const size_t tries = client.asked.size();
  EXPECT_GE(tries, 20U);
  EXPECT_LE(tries, 60U);
  EXPECT_FALSE(informer->synced());
  client.lists = {list_of({pod("a", 1)}, 5)};
  loop.advance(base::seconds(31));
  EXPECT_EQ(seen(), "+a1 synced");
}

TEST_F(InformerTest, A_server_that_only_closes_is_not_hammered) {
  client.lists = {list_of({}, 5)};
  start();
  for (int i = 0; i < 100; ++i) {
    close(base::error(Code::kUnavailable, "cut"));
    loop.advance(base::millis(10));
  }
  EXPECT_LE(client.watched.size(), 6U);
}

TEST_F(InformerTest, Late_callbacks_of_an_old_watch_are_ignored) {
  client.lists = {list_of({}, 5)};
  start();
  const auto old_event = client.on_event;
  close();
  seen();
  old_event({WatchEvent::Type::kAdded, Object(pod("a", 6))});
  EXPECT_EQ(seen(), "");
}

TEST_F(InformerTest, Nothing_runs_after_destruction) {
  client.lists = {list_of({}, 5)};
  start();
  const auto late_event = client.on_event;
  const auto late_close = client.on_close;
  informer.reset();
  EXPECT_EQ(client.open, 0);
  seen();
  late_event({WatchEvent::Type::kAdded, Object(pod("a", 6))});
  late_close({});
  loop.advance(base::seconds(100));
  EXPECT_EQ(seen(), "");
  EXPECT_EQ(client.watched.size(), 1U);
}

TEST_F(InformerTest, May_be_destroyed_from_its_own_handler) {
  client.lists = {list_of({pod("a", 1), pod("b", 2)}, 5)};
  informer = std::make_unique<Informer>(client, loop, base::Random(1),
                                        Informer::Options{core_v1("pods"), "", "", ""},
                                        Informer::Handlers{[this](const Object&, const Object&) {
                                                             log += "x ";
                                                             informer.reset();
                                                           },
                                                           [this] { log += "synced "; }});
  informer->start();
  loop.advance(base::seconds(1));
  EXPECT_EQ(seen(), "x");
}

TEST_F(InformerTest, Only_what_is_kept_of_objects_is_held_and_reported) {
  client.lists = {list_of({pod("a", 1), pod("b", 2)}, 5)};
  Informer::Options options{core_v1("pods"), "", "", ""};
  options.page_size = 7;
  options.keep = [](const Object& object) {
    if (object.label("hidden") == "yes" || object.name() == "b") return Object();
    json::Value root = object.json();
    root.erase("spec");
    return Object(root);
  };
  start(std::move(options));
  EXPECT_EQ(client.asked[0].option("limit"), "7");
  EXPECT_EQ(seen(), "+a1 synced");
  json::Value changed = pod("a", 6);
  changed.ref("spec", "x") = 1;
  event(WatchEvent::Type::kModified, changed);
  EXPECT_EQ(seen(), "-a1+a6");
  EXPECT_FALSE(informer->find("ns/a").json().contains("spec"));
  event(WatchEvent::Type::kModified, pod("b", 7));
  EXPECT_EQ(seen(), "");
  changed.ref("metadata", "labels", "hidden") = "yes";
  event(WatchEvent::Type::kModified, changed);
  EXPECT_EQ(seen(), "-a6");
  event(WatchEvent::Type::kModified, pod("a", 9));
  EXPECT_EQ(seen(), "+a9");
  close();
  EXPECT_EQ(client.watched.back().option("resourceVersion"), "9");
}

TEST_F(InformerTest, Failures_are_told_but_no_expired_version) {
  std::vector<Code> told;
  Informer::Handlers handlers;
  handlers.on_error = [&](const base::Error& error) {
    told.push_back(error.code);
    if (told.size() == 3) informer.reset();
  };
  client.lists = {base::error(Code::kForbidden, "no"), list_of({}, 5), list_of({}, 6)};
  informer = std::make_unique<Informer>(client, loop, base::Random(1),
                                        Informer::Options{core_v1("pods"), "", "", ""}, handlers);
  informer->start();
  loop.advance(base::seconds(1));
  EXPECT_EQ(told, (std::vector<Code>{Code::kForbidden}));
  close(base::error(Code::kExpired, "too old"));
  loop.advance(base::seconds(1));
  close();
  EXPECT_EQ(told.size(), 1U);
  loop.advance(base::seconds(1));
  close(base::error(Code::kNotFound, "gone"));
  loop.advance(base::seconds(60));
  close(base::error(Code::kNotFound, "gone"));
  EXPECT_EQ(told, (std::vector<Code>{Code::kForbidden, Code::kNotFound, Code::kNotFound}));
  EXPECT_FALSE(informer);  // which its own handler may end
}

TEST_F(InformerTest, Bookkeeping_is_what_managers_and_kubectl_wrote_down) {
  json::Value object = pod("a", 1);
  const Object plain(object);
  EXPECT_TRUE(without_bookkeeping(plain).json().same_node(plain.json()));
  object.ref("metadata", "annotations", "mine") = "x";
  const json::Value wanted = object;
  object.ref("metadata", "managedFields") = json::Value::array({1});
  object.ref("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration") = "{}";
  EXPECT_EQ(without_bookkeeping(Object(object)).json(), wanted);
}

// Whatever happens on the way, the copy ends up as the server's state.
TEST_F(InformerTest, Ends_with_the_truth_after_any_sequence_of_faults) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    base::Random random(seed);
    std::map<std::string, json::Value> truth;
    int64_t version = 1;
    client.lists = {list_of({}, version)};
    start();
    const auto change = [&](bool tell) {
      const std::string name(1, static_cast<char>('a' + random.below(5)));
      ++version;
      const bool known = truth.contains(name);
      const bool remove = known && random.chance(0.4);
      json::Value object = pod(name, version,
                               known && !remove ? truth[name].get("metadata", "uid").str()
                                                : name + std::to_string(version));
      if (remove)
        truth.erase(name);
      else
        truth[name] = object;
      if (!tell) return;
      event(remove ? WatchEvent::Type::kDeleted
                   : (known ? WatchEvent::Type::kModified : WatchEvent::Type::kAdded),
            object);
    };
    for (int step = 0; step < 60; ++step) {
      if (random.chance(0.8)) {
        change(true);
        continue;
      }
      for (uint64_t missed = random.below(4); missed > 0; --missed) change(false);
      client.lists.clear();
      if (random.chance(0.5)) client.lists.push_back(base::error(Code::kTimeout, "no answer"));
      json::Value all = list_of({}, version);
      for (const auto& [name, object] : truth) all.ref("items").push_back(object);
      client.lists.push_back(all);
      close(base::error(Code::kExpired, "too old"));
      loop.advance(base::seconds(120));
    }
    ASSERT_EQ(informer->objects().size(), truth.size()) << "seed " << seed;
    for (const auto& [name, object] : truth) {
      ASSERT_EQ(informer->find("ns/" + name).uid(), object.get("metadata", "uid").as_string())
          << "seed " << seed;
    }
    informer.reset();
  }
}

}  // namespace
}  // namespace tessera::kube
