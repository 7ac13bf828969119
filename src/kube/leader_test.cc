#include "kube/leader.h"

#include <gtest/gtest.h>

#include <memory>

#include "kube/leader_testing.h"

namespace tessera::kube {
namespace {

using base::Code;
using base::millis;
using base::seconds;

class LeaderTest : public ::testing::Test {
 protected:
  struct Candidate {
    std::string log;  // "+1" a term began, "-" one ended, ">a" a holder was seen
    std::string reason;
    std::unique_ptr<LeaderElection> election;
    bool leading() const { return election->leading(); }
  };

  static LeaderElection::Options options(const std::string& identity) {
    LeaderElection::Options out;
    out.ns = "ns";
    out.name = "l";
    out.identity = identity;
    return out;
  }
  Candidate& add(const std::string& identity) { return add(options(identity)); }
  Candidate& add(LeaderElection::Options with) {
    auto made = std::make_unique<Candidate>();
    Candidate& c = *made;
    all.push_back(std::move(made));
    c.election = std::make_unique<LeaderElection>(
        api, loop, clock, base::Random(all.size()), std::move(with),
        LeaderElection::Handlers{
            .on_started =
                [&c](int64_t epoch) {
                  EXPECT_TRUE(c.leading());
                  EXPECT_EQ(c.election->epoch(), epoch);
                  c.log += "+" + std::to_string(epoch);
                },
            .on_lost =
                [&c](const std::string& why) {
                  EXPECT_FALSE(c.leading());
                  c.log += "-";
                  c.reason = why;
                },
            .on_new_leader = [&c](const std::string& who) { c.log += ">" + who; }});
    EXPECT_TRUE(c.election->start());
    return c;
  }
  // An installation has made the Lease, without a holder.
  void vacant() { api.set("leaseTransitions", 0); }
  void advance(base::Duration d) { loop.advance(d); }

  base::ManualLoop loop;
  testing::JumpyClock clock{loop};
  testing::LeaseApi api{loop};
  std::vector<std::unique_ptr<Candidate>> all;
};

TEST_F(LeaderTest, A_vacant_lease_is_taken_at_once_and_written_as_client_go_does) {
  vacant();
  Candidate& a = add("a");
  EXPECT_FALSE(a.leading());
  advance(millis(50));
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log, ">a+1");
  EXPECT_EQ(a.election->holder(), "a");
  const json::Value& spec = (*api.lease)["spec"];
  EXPECT_EQ(spec.dump(),
            "{\"acquireTime\":\"2026-01-01T00:00:00.020000Z\",\"holderIdentity\":\"a\","
            "\"leaseDurationSeconds\":15,\"leaseTransitions\":1,"
            "\"renewTime\":\"2026-01-01T00:00:00.020000Z\"}");
  advance(seconds(60));
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log, ">a+1");
  EXPECT_EQ(api.record().acquired, "2026-01-01T00:00:00.020000Z");
  EXPECT_GT(api.record().renewed, "2026-01-01T00:00:57");
  EXPECT_EQ(api.record().transitions, 1);
}

TEST_F(LeaderTest, A_missing_lease_is_made_and_has_to_run_out_first) {
  Candidate& a = add("a");
  Candidate& b = add("b");
  advance(seconds(14));
  ASSERT_TRUE(api.lease);
  EXPECT_EQ(api.record().holder, "a");
  EXPECT_FALSE(a.leading() || b.leading());
  advance(seconds(2));
  EXPECT_NE(a.leading(), b.leading());
  EXPECT_EQ(api.record().transitions, 1);
}

TEST_F(LeaderTest, A_standby_takes_over_when_the_leader_dies_within_lease_duration_and_one_retry) {
  vacant();
  Candidate& a = add("a");
  advance(seconds(5));
  Candidate& b = add("b");
  advance(seconds(60));
  EXPECT_EQ(b.log, ">a");
  a.election.reset();
  advance(seconds(12));
  EXPECT_FALSE(b.leading());
  advance(seconds(15 + 2 - 12) + millis(100));
  EXPECT_TRUE(b.leading());
  EXPECT_EQ(b.log, ">a>b+2");
}

TEST_F(LeaderTest, After_stop_a_standby_takes_over_within_one_retry) {
  vacant();
  Candidate& a = add("a");
  advance(seconds(1));
  Candidate& b = add("b");
  advance(seconds(20));
  bool done = false;
  a.election->stop([&] { done = true; });
  EXPECT_FALSE(a.leading());
  EXPECT_FALSE(done);
  advance(seconds(2) + millis(100));
  EXPECT_TRUE(done);
  EXPECT_TRUE(b.leading());
  EXPECT_EQ(a.log, ">a+1") << "who stops is not told that it has lost";
  EXPECT_EQ(b.log, ">a>b+2");
}

TEST_F(LeaderTest, Giving_up_leaves_the_record_as_client_go_does) {
  vacant();
  Candidate& a = add("a");
  advance(seconds(1));
  a.election->stop();
  advance(millis(100));
  EXPECT_EQ(api.record().holder, "");
  EXPECT_EQ(api.record().duration_seconds, 1);
  EXPECT_EQ(api.record().transitions, 1);
  const size_t calls = api.asked.size();
  advance(seconds(60));
  EXPECT_EQ(api.asked.size(), calls) << "nothing is asked any more";
  EXPECT_TRUE(a.election->start());
  advance(seconds(1));
  EXPECT_EQ(a.log, ">a+1+2") << "a new term has a number of its own";
}

TEST_F(LeaderTest, Stop_in_the_middle_of_a_renewal_or_of_a_take_still_gives_up) {
  for (const int after_ms : {25, 35, 1950}) {
    api.lease.reset();
    vacant();
    Candidate& a = add("a" + std::to_string(after_ms));
    advance(millis(after_ms));
    bool done = false;
    a.election->stop([&] { done = true; });
    for (int i = 0; i < 400; ++i) {
      EXPECT_FALSE(a.leading());
      advance(millis(10));
    }
    EXPECT_TRUE(done);
    EXPECT_EQ(api.record().holder, "");
  }
}

TEST_F(LeaderTest, Without_release_the_lease_stays_until_it_has_run_out) {
  vacant();
  LeaderElection::Options keep = options("a");
  keep.release_on_stop = false;
  Candidate& a = add(keep);
  advance(seconds(1));
  bool done = false;
  a.election->stop([&] { done = true; });
  EXPECT_TRUE(done);
  EXPECT_FALSE(a.leading());
  Candidate& b = add("b");
  advance(seconds(14));
  EXPECT_FALSE(b.leading());
  advance(seconds(3));
  EXPECT_TRUE(b.leading());
}

TEST_F(LeaderTest, A_release_that_nobody_answers_ends_after_the_lease_duration) {
  vacant();
  Candidate& a = add("a");
  advance(seconds(1));
  api.swallow = [](const Request&) { return true; };
  api.refuse = [](const Request&) { return Code::kUnavailable; };
  bool done = false;
  a.election->stop([&] { done = true; });
  EXPECT_EQ(a.election->start().error().code, Code::kBusy);
  advance(seconds(25));
  EXPECT_TRUE(done);
  api.refuse = nullptr;
  api.swallow = nullptr;
  EXPECT_TRUE(a.election->start());
  EXPECT_EQ(a.election->start().error().code, Code::kBusy);
}

TEST_F(LeaderTest, The_deadline_counts_from_when_the_last_good_renewal_was_sent) {
  vacant();
  api.latency = seconds(1);
  Candidate& a = add("a");
  advance(seconds(4));
  ASSERT_TRUE(a.leading());  // read 0 s to 2 s, taken 2 s to 4 s
  api.refuse = [](const Request& r) {
    return r.verb == Verb::kUpdate ? std::optional(Code::kForbidden) : std::nullopt;
  };
  advance(millis(7999));
  EXPECT_TRUE(a.leading());
  advance(millis(1));
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(a.log, ">a+1-");
  EXPECT_EQ(a.reason, "the lease could not be renewed within 10s: refused by the test");
}

TEST_F(LeaderTest, A_process_that_was_stopped_does_not_lead_when_it_wakes) {
  vacant();
  Candidate& a = add("a");
  advance(seconds(5));
  ASSERT_TRUE(a.leading());
  clock.passed = seconds(10);
  EXPECT_FALSE(a.leading()) << "before any callback ran";
  EXPECT_FALSE(a.election->epoch());
  EXPECT_EQ(a.log, ">a+1");
  advance(seconds(3));
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log, ">a+1-+2") << "nobody took it meanwhile: a new term";
}

TEST_F(LeaderTest, A_wall_clock_that_jumps_forward_ends_the_term_and_back_does_not) {
  vacant();
  Candidate& a = add("a");
  Candidate& b = add("b");
  advance(seconds(5));
  ASSERT_TRUE(a.leading());
  clock.wall_jump = seconds(-86'400);
  EXPECT_TRUE(a.leading());
  advance(seconds(30));
  EXPECT_EQ(a.log, ">a+1");
  EXPECT_FALSE(b.leading()) << "old times in a record make nobody take it";
  clock.wall_jump = seconds(86'400);
  EXPECT_FALSE(a.leading());
  advance(seconds(5));
  EXPECT_EQ(a.log, ">a+1-+2");
  EXPECT_FALSE(b.leading());
}

TEST_F(LeaderTest, A_renewal_whose_answer_was_lost_is_recognised) {
  vacant();
  Candidate& a = add("a");
  advance(seconds(1));
  int lost = 0;
  api.swallow = [&](const Request& r) { return r.verb == Verb::kUpdate && ++lost == 1; };
  advance(seconds(40));
  EXPECT_GT(lost, 2);
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log, ">a+1");
}

TEST_F(LeaderTest, A_take_whose_answer_was_lost_is_not_yet_a_term) {
  vacant();
  int lost = 0;
  api.swallow = [&](const Request& r) { return r.verb == Verb::kUpdate && ++lost == 1; };
  Candidate& a = add("a");
  advance(seconds(3));
  EXPECT_EQ(api.record().holder, "a");
  EXPECT_FALSE(a.leading());
  advance(seconds(5));
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log, ">a+2");
}

TEST_F(LeaderTest, Stop_after_a_take_whose_answer_was_lost_gives_it_up) {
  vacant();
  api.swallow = [&](const Request& r) { return r.verb == Verb::kUpdate; };
  Candidate& a = add("a");
  advance(seconds(1));
  ASSERT_EQ(api.record().holder, "a");
  api.swallow = nullptr;
  a.election->stop();
  advance(seconds(10));
  EXPECT_EQ(api.record().holder, "");
}

TEST_F(LeaderTest, Conflicts_alone_do_not_end_a_term) {
  vacant();
  Candidate& a = add("a");
  advance(seconds(1));
  int calls = 0;
  api.refuse = [&](const Request& r) {
    return r.verb == Verb::kUpdate && ++calls % 3 != 0 ? std::optional(Code::kConflict)
                                                       : std::nullopt;
  };
  advance(seconds(120));
  EXPECT_EQ(a.log, ">a+1");
  // Somebody writes into the metadata all the time.
  api.refuse = nullptr;
  for (int i = 0; i < 100; ++i) {
    json::Value touched = *api.lease;
    touched.ref("metadata", "labels", "n") = std::to_string(i);
    api.write(touched);
    advance(millis(700));
  }
  EXPECT_EQ(a.log, ">a+1");
  EXPECT_EQ(Object(*api.lease).label("n"), "99") << "and it is kept";
}

TEST_F(LeaderTest, Whoever_is_robbed_stops_at_its_next_renewal) {
  vacant();
  Candidate& a = add("a");
  advance(seconds(1));
  api.set("holderIdentity", "robber");
  advance(seconds(2) + millis(100));
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(a.log, ">a+1>robber-");
  EXPECT_EQ(a.reason, "robber has taken the lease");
  advance(seconds(17));
  EXPECT_EQ(a.log, ">a+1>robber->a+2");
  api.set("holderIdentity", "");
  advance(seconds(2) + millis(100));
  EXPECT_EQ(a.reason, "somebody emptied the lease");
}

TEST_F(LeaderTest, A_deleted_lease_ends_the_term_and_is_made_again) {
  vacant();
  Candidate& a = add("a");
  Candidate& b = add("b");
  advance(seconds(20));
  ASSERT_TRUE(a.leading());
  api.lease.reset();
  advance(seconds(2) + millis(100));
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(a.reason, "the lease was deleted");
  EXPECT_TRUE(api.lease);
  advance(seconds(12));
  EXPECT_FALSE(a.leading() || b.leading());
  advance(seconds(3));
  EXPECT_NE(a.leading(), b.leading());
  EXPECT_EQ(api.record().transitions, 2) << "the numbers go on";
}

TEST_F(LeaderTest, A_lease_deleted_and_made_anew_without_holder_is_not_taken_at_once) {
  vacant();
  Candidate& a = add("a");
  Candidate& b = add("b");
  advance(seconds(20));
  api.refuse = [](const Request& r) {
    return Object(r.body).get("spec", "holderIdentity").as_string() == "a"
               ? std::optional(Code::kUnavailable)
               : std::nullopt;
  };
  api.lease.reset();
  vacant();
  for (int i = 0; i < 140; ++i) {
    advance(millis(100));
    EXPECT_FALSE(b.leading());
  }
  EXPECT_FALSE(a.leading());
  advance(seconds(4));
  EXPECT_TRUE(b.leading());
}

TEST_F(LeaderTest, Two_with_one_identity_never_lead_together) {
  vacant();
  Candidate& a = add("same");
  Candidate& b = add("same");
  for (int i = 0; i < 600; ++i) {
    advance(millis(100));
    EXPECT_FALSE(a.leading() && b.leading());
  }
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(b.log, ">same");
  // A process that comes back under its old name waits as any other.
  a.election.reset();
  advance(seconds(10));
  EXPECT_FALSE(b.leading());
  advance(seconds(8));
  EXPECT_TRUE(b.leading());
}

TEST_F(LeaderTest, Nonsense_in_the_lease_is_waited_out) {
  const char* specs[] = {"holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime",
                         "acquireTime"};
  const json::Value values[] = {-5,     1e300, "x", json::Value::array({1}), json::Value::object(),
                                nullptr};
  for (const char* field : specs) {
    for (const json::Value& value : values) {
      all.clear();
      api.lease.reset();
      api.set("holderIdentity", "gone");
      api.set(field, value);
      Candidate& a = add("a");
      advance(seconds(18));
      EXPECT_TRUE(a.leading()) << field << " " << value.dump();
      EXPECT_GE(api.record().transitions, 1);
    }
  }
}

TEST_F(LeaderTest, A_holder_who_asked_for_longer_gets_it_up_to_an_hour) {
  api.set("holderIdentity", "slow");
  api.set("leaseDurationSeconds", 60);
  Candidate& a = add("a");
  advance(seconds(59));
  EXPECT_FALSE(a.leading());
  advance(seconds(4));
  EXPECT_TRUE(a.leading());
  a.election.reset();
  api.set("holderIdentity", "slow");
  api.set("leaseDurationSeconds", 2'147'483'647);
  Candidate& b = add("b");
  advance(seconds(3590));
  EXPECT_FALSE(b.leading());
  advance(seconds(20));
  EXPECT_TRUE(b.leading());
}

TEST_F(LeaderTest, Terms_past_the_last_number_begin_again) {
  api.set("leaseTransitions", 2'147'483'646);
  Candidate& a = add("a");
  advance(seconds(1));
  EXPECT_EQ(a.election->epoch(), 2'147'483'647);
  clock.passed = seconds(10);
  advance(seconds(3));
  EXPECT_EQ(a.election->epoch(), 0);
  clock.passed = seconds(20);
  advance(seconds(3));
  EXPECT_EQ(a.election->epoch(), 1);
}

TEST_F(LeaderTest, Whatever_the_answers_are_nobody_leads_on_them) {
  vacant();
  const json::Value empty = json::Value::object();
  api.tamper = [&](const Request&, Reply& reply) { reply = empty; };
  Candidate& a = add("a");
  advance(seconds(30));
  EXPECT_FALSE(a.leading());
  // A webhook that takes the mark off: the write happened, the term does not begin.
  api.tamper = [&](const Request& r, Reply& reply) {
    if (r.verb == Verb::kUpdate) reply->ref("spec", "holderIdentity") = "other";
  };
  advance(seconds(30));
  EXPECT_FALSE(a.leading());
  api.tamper = nullptr;
  advance(seconds(30));
  EXPECT_TRUE(a.leading());
  api.tamper = [&](const Request& r, Reply& reply) {
    if (r.verb == Verb::kUpdate) reply = empty;
  };
  advance(seconds(11));
  EXPECT_FALSE(a.leading());
}

TEST_F(LeaderTest, Forbidden_for_ever_is_asked_about_once_a_retry_period) {
  api.refuse = [](const Request&) { return Code::kForbidden; };
  Candidate& a = add("a");
  advance(seconds(60));
  EXPECT_FALSE(a.leading());
  EXPECT_GE(api.asked.size(), 29U);
  EXPECT_LE(api.asked.size(), 41U);
  api.refuse = nullptr;
  vacant();
  advance(seconds(3));
  EXPECT_TRUE(a.leading());
}

TEST_F(LeaderTest, Answers_that_never_come_are_not_waited_for) {
  vacant();
  Candidate& a = add("a");
  advance(seconds(1));
  api.swallow = [](const Request&) { return true; };
  advance(seconds(9));
  EXPECT_TRUE(a.leading());
  advance(seconds(3));
  EXPECT_FALSE(a.leading());
  api.swallow = nullptr;
  advance(seconds(8));
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.log, ">a+1-+2");
}

TEST_F(LeaderTest, Handlers_may_stop_or_destroy_the_election) {
  for (const std::string at : {"started", "lost", "seen"}) {
    for (const bool destroys : {true, false}) {
      api.lease.reset();
      vacant();
      std::unique_ptr<LeaderElection> election;
      const auto act = [&](std::string_view when) {
        if (when != at || !election) return;
        if (destroys) {
          election.reset();
        } else {
          election->stop();
        }
      };
      election = std::make_unique<LeaderElection>(
          api, loop, clock, base::Random(9), options("a"),
          LeaderElection::Handlers{[&](int64_t) { act("started"); },
                                   [&](const std::string&) { act("lost"); },
                                   [&](const std::string&) { act("seen"); }});
      ASSERT_TRUE(election->start());
      advance(seconds(1));
      if (at == "lost") {
        api.set("holderIdentity", "b");
        advance(seconds(3));
      }
      EXPECT_FALSE(election && election->leading());
      EXPECT_EQ(api.record().holder, at == "lost" ? "b" : destroys ? "a" : "") << at;
      const size_t calls = api.asked.size();
      advance(seconds(60));
      EXPECT_EQ(api.asked.size(), calls);
    }
  }
}

TEST(LeaderOptions, Say_what_is_wrong_with_them) {
  LeaderElection::Options good;
  good.ns = "ns";
  good.name = "l";
  good.identity = "a";
  EXPECT_TRUE(validate(good));
  const auto refused = [&](auto&& change, std::string_view message) {
    LeaderElection::Options bad = good;
    change(bad);
    const base::Status status = validate(bad);
    ASSERT_FALSE(status) << message;
    EXPECT_EQ(status.error().code, Code::kInvalid);
    EXPECT_EQ(status.error().message, message);
  };
  using O = LeaderElection::Options;
  refused([](O& o) { o.identity.clear(); },
          "leader election needs the lease's namespace and name and an identity");
  refused([](O& o) { o.lease_duration = millis(15'500); },
          "lease duration 15.5s must be whole seconds, 1s to 1h");
  refused([](O& o) { o.lease_duration = {INT64_MAX}; },
          "lease duration 2562047h47m16.854775807s must be whole seconds, 1s to 1h");
  refused([](O& o) { o.retry_period = {}; },
          "retry period 0s, request timeout 4s and renew deadline 10s must be above 0");
  refused(
      [](O& o) { o.request_timeout = seconds(5); },
      "renew deadline 10s and request timeout 5s must together be below the lease duration 15s");
  refused([](O& o) { o.renew_deadline = {INT64_MAX}; },
          "renew deadline 2562047h47m16.854775807s and request timeout 4s must together be below "
          "the lease duration 15s");
  refused([](O& o) { o.retry_period = seconds(6); },
          "retry period 6s and request timeout 4s must together be below the renew deadline 10s");
}

}  // namespace
}  // namespace tessera::kube
