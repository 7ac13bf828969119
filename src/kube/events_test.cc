#include "kube/events.h"

#include <gtest/gtest.h>

#include <map>

#include "base/executor.h"
#include "json/patch.h"

namespace tessera::kube {
namespace {

// Keeps the Events that are created and patched; refuses with NotFound what is not there.
class EventStore : public Client {
 public:
  explicit EventStore(base::ManualLoop& loop) : loop_(loop) {}
  std::map<std::string, json::Value> events;
  int writes = 0;
  int asked = 0;

  void call(Request request, std::function<void(Reply)> done) override {
    ++asked;
    loop_.post(
        [this, request = std::move(request), done = std::move(done)] { done(write(request)); });
  }
  std::unique_ptr<base::Subscription> watch(Request, std::function<void(WatchEvent)>,
                                            std::function<void(base::Status)>) override {
    return nullptr;
  }

 private:
  Reply write(const Request& request) {
    ++writes;
    if (request.verb == Verb::kCreate) {
      return events[request.body.get("metadata", "name").str()] = request.body;
    }
    const auto found = events.find(request.name);
    if (found == events.end()) return base::error(base::Code::kNotFound, "gone");
    return found->second = json::apply_merge_patch(found->second, request.body);
  }
  base::ManualLoop& loop_;
};

Object pod(std::string_view name) {
  json::Value out = json::Value::object({{"apiVersion", "v1"}, {"kind", "Pod"}});
  out.ref("metadata", "namespace") = "ns";
  out.ref("metadata", "name") = name;
  out.ref("metadata", "uid") = name;
  return Object(out);
}

class EventsTest : public testing::Test {
 protected:
  base::ManualLoop loop;
  base::ManualClock clock;
  EventStore store{loop};
  EventRecorder recorder{store, clock, base::Random(1), "tessera-scheduler", "n1"};
};

TEST_F(EventsTest, An_event_is_written_whole) {
  recorder.normal(pod("p"), "Scheduled", "Successfully assigned ns/p to n1");
  loop.run_ready();
  ASSERT_EQ(store.events.size(), 1U);
  const json::Value& event = store.events.begin()->second;
  EXPECT_TRUE(event.get("metadata", "name").as_string().starts_with("p."));
  EXPECT_EQ(event.get("metadata", "namespace").as_string(), "ns");
  EXPECT_EQ(event.get("involvedObject", "kind").as_string(), "Pod");
  EXPECT_EQ(event["type"].as_string(), "Normal");
  EXPECT_EQ(event["count"].as_int(), 1);
  EXPECT_EQ(event.get("source", "component").as_string(), "tessera-scheduler");
  EXPECT_EQ(event["firstTimestamp"].as_string(), "2026-01-01T00:00:00Z");
}

TEST_F(EventsTest, Repeats_raise_the_count_of_one_event) {
  for (int i = 0; i < 5; ++i) {
    recorder.warning(pod("p"), "FailedScheduling", "0/3 nodes are available");
    loop.run_ready();
    clock.advance(base::seconds(60));
  }
  ASSERT_EQ(store.events.size(), 1U);
  EXPECT_EQ(store.events.begin()->second["count"].as_int(), 5);
  EXPECT_EQ(store.events.begin()->second["lastTimestamp"].as_string(), "2026-01-01T00:04:00Z");
  EXPECT_EQ(store.events.begin()->second["firstTimestamp"].as_string(), "2026-01-01T00:00:00Z");
  clock.advance(base::seconds(601));
  recorder.warning(pod("p"), "FailedScheduling", "0/3 nodes are available");
  loop.run_ready();
  EXPECT_EQ(store.events.size(), 2U);
}

TEST_F(EventsTest, Repeats_during_a_write_become_one_more_write) {
  for (int i = 0; i < 20; ++i) recorder.normal(pod("p"), "Pulled", "image there");
  loop.run_ready();
  EXPECT_EQ(store.writes, 2);
  EXPECT_EQ(store.events.begin()->second["count"].as_int(), 20);
}

TEST_F(EventsTest, Many_texts_of_one_reason_are_folded) {
  for (int i = 0; i < 20; ++i) {
    recorder.warning(pod("p"), "Failed", fmt::format("text {}", i));
    loop.run_ready();
  }
  EXPECT_EQ(store.events.size(), 11U);
  int combined = 0;
  for (const auto& [name, event] : store.events) {
    if (!event["message"].as_string().starts_with("(combined from similar events): ")) continue;
    ++combined;
    EXPECT_EQ(event["count"].as_int(), 10);
    EXPECT_TRUE(event["message"].as_string().ends_with("text 19"));
  }
  EXPECT_EQ(combined, 1);
}

TEST_F(EventsTest, One_object_cannot_flood_and_does_not_silence_others) {
  for (int i = 0; i < 100; ++i) recorder.normal(pod("p"), "R", fmt::format("{}", i % 3));
  loop.run_ready();
  EXPECT_EQ(recorder.dropped(), 75U);
  recorder.normal(pod("q"), "R", "x");
  EXPECT_EQ(recorder.dropped(), 75U);
  clock.advance(base::seconds(300));
  recorder.normal(pod("p"), "R", "0");
  EXPECT_EQ(recorder.dropped(), 75U);
  recorder.normal(pod("p"), "R", "0");
  EXPECT_EQ(recorder.dropped(), 76U);
}

TEST_F(EventsTest, An_event_that_has_gone_is_written_anew) {
  recorder.normal(pod("p"), "R", "x");
  loop.run_ready();
  store.events.clear();
  recorder.normal(pod("p"), "R", "x");
  loop.run_ready();
  ASSERT_EQ(store.events.size(), 1U);
  EXPECT_EQ(store.events.begin()->second["count"].as_int(), 2);
}

TEST_F(EventsTest, A_burst_is_written_a_few_at_a_time_and_what_is_over_is_dropped) {
  for (int i = 0; i < 5000; ++i) recorder.normal(pod(fmt::format("p{}", i)), "R", "x");
  EXPECT_LE(store.asked, 8);
  EXPECT_LE(recorder.dropped(), 904U);
  loop.run_ready();
  EXPECT_EQ(store.events.size() + recorder.dropped(), 5000U);
}

TEST_F(EventsTest, Long_messages_are_cut_between_characters) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "é";
  recorder.normal(pod("p"), "R", text);
  loop.run_ready();
  const std::string message = store.events.begin()->second["message"].str();
  EXPECT_LE(message.size(), 1024U);
  EXPECT_TRUE(message.ends_with("é..."));
}

}  // namespace
}  // namespace tessera::kube
