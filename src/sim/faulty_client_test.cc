#include "sim/faulty_client.h"

#include <gtest/gtest.h>

namespace tessera::sim {
namespace {

using base::Code;

// Answers every call with its body and lets the test speak for the server's watches.
class EchoClient : public kube::Client {
 public:
  void call(kube::Request request, std::function<void(kube::Reply)> done) override {
    ++calls;
    done(request.body);
  }
  std::unique_ptr<base::Subscription> watch(kube::Request,
                                            std::function<void(kube::WatchEvent)> event,
                                            std::function<void(base::Status)> close) override {
    struct Open : base::Subscription {
      explicit Open(int& n) : count(n) { ++count; }
      ~Open() override { --count; }
      int& count;
    };
    on_event = std::move(event);
    on_close = std::move(close);
    return std::make_unique<Open>(open);
  }
  int calls = 0;
  int open = 0;
  std::function<void(kube::WatchEvent)> on_event;
  std::function<void(base::Status)> on_close;
};

class FaultyClientTest : public ::testing::Test {
 protected:
  // The code of each answer, or nothing for a good one.
  std::optional<Code> ask(kube::Verb verb) {
    kube::Request request;
    request.verb = verb;
    std::optional<kube::Reply> reply;
    client.call(request, [&](kube::Reply r) { reply = std::move(r); });
    loop.advance(base::seconds(10));
    EXPECT_TRUE(reply) << "every call is answered";
    return !reply || *reply ? std::nullopt : std::optional(reply->error().code);
  }

  base::ManualLoop loop;
  EchoClient inner;
  NetworkFaults faults;
  FaultyClient client{inner, loop, base::Random(7), faults};
};

TEST_F(FaultyClientTest, Without_faults_it_passes_everything_on) {
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(ask(kube::Verb::kPatch));
  EXPECT_EQ(inner.calls, 50);
  EXPECT_EQ(client.injected(), 0U);
}

TEST_F(FaultyClientTest, A_refused_call_never_reaches_the_server) {
  faults.refuse = 1;
  EXPECT_EQ(ask(kube::Verb::kGet), Code::kUnavailable);
  EXPECT_EQ(inner.calls, 0);
  EXPECT_EQ(client.injected(), 1U);
}

TEST_F(FaultyClientTest, A_lost_reply_is_a_timeout_after_the_call_happened) {
  faults.lose_reply = 1;
  int acknowledged = 0;
  client.on_acknowledged = [&](const kube::Request&, const json::Value&) { ++acknowledged; };
  EXPECT_EQ(ask(kube::Verb::kCreate), Code::kTimeout);
  EXPECT_EQ(inner.calls, 1);
  EXPECT_EQ(acknowledged, 1);
}

TEST_F(FaultyClientTest, Conflicts_hit_writes_of_what_is_there_only) {
  faults.conflict = 1;
  EXPECT_EQ(ask(kube::Verb::kPatch), Code::kConflict);
  EXPECT_EQ(ask(kube::Verb::kUpdate), Code::kConflict);
  EXPECT_FALSE(ask(kube::Verb::kGet));
  EXPECT_FALSE(ask(kube::Verb::kCreate));
}

TEST_F(FaultyClientTest, Answers_take_their_time) {
  faults.delay_max = base::seconds(1);
  bool done = false;
  client.call({}, [&](const kube::Reply&) { done = true; });
  loop.run_ready();
  EXPECT_FALSE(done);
  loop.advance(base::seconds(2));
  EXPECT_TRUE(done);
}

TEST_F(FaultyClientTest, A_broken_watch_ends_once_and_says_nothing_after) {
  faults.break_watch = 1;
  int events = 0;
  int closes = 0;
  auto watch = client.watch(
      {}, [&](const kube::WatchEvent&) { ++events; },
      [&](const base::Status& status) {
        ++closes;
        EXPECT_EQ(status.error().code, Code::kUnavailable);
      });
  inner.on_event({});
  inner.on_event({});
  loop.run_ready();
  inner.on_event({});
  EXPECT_EQ(events, 0);
  EXPECT_EQ(closes, 1);
  EXPECT_EQ(inner.open, 0);
}

TEST_F(FaultyClientTest, A_dropped_watch_is_silent_and_the_servers_end_is_passed_on) {
  int events = 0;
  int closes = 0;
  auto on_event = [&](const kube::WatchEvent&) { ++events; };
  auto on_close = [&](const base::Status&) { ++closes; };
  auto dropped = client.watch({}, on_event, on_close);
  inner.on_event({});
  EXPECT_EQ(events, 1);
  dropped.reset();
  EXPECT_EQ(inner.open, 0);
  inner.on_event({});
  inner.on_close({});
  EXPECT_EQ(events, 1);
  EXPECT_EQ(closes, 0);
  auto ended = client.watch({}, on_event, on_close);
  inner.on_close(base::error(Code::kExpired, "too old"));
  EXPECT_EQ(closes, 1);
}

TEST_F(FaultyClientTest, The_same_seed_makes_the_same_faults) {
  auto run = [](uint64_t seed) {
    base::ManualLoop own_loop;
    EchoClient own_inner;
    NetworkFaults some{.refuse = 0.2,
                       .lose_reply = 0.2,
                       .conflict = 0.2,
                       .break_watch = 0,
                       .delay_max = base::millis(50)};
    FaultyClient own(own_inner, own_loop, base::Random(seed), some);
    std::string out;
    for (int i = 0; i < 100; ++i) {
      kube::Request request;
      request.verb = kube::Verb::kPatch;
      own.call(request, [&](const kube::Reply& reply) {
        out += fmt::format("{}{};", reply ? 0 : static_cast<int>(reply.error().code),
                           own_loop.now().ns);
      });
    }
    own_loop.advance(base::seconds(5));
    return out;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

}  // namespace
}  // namespace tessera::sim
