// Candidates for one Lease on a bad network, by seed: paused, killed, restarted, stopped, robbed, with clocks that jump. Never
// do two lead at one moment, and what the last one wrote has been given up before the next begins.
//
// TESSERA_LEADER_SEEDS=N runs N seeds instead of the few that every run takes.

#include "kube/leader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "apiserver/api.h"
#include "apiserver/local_client.h"
#include "base/loop_clock.h"
#include "kube/lease.h"
#include "sim/faulty_client.h"
#include "sim/process_testing.h"

namespace tessera::sim {
namespace {

using base::Duration;
using base::millis;
using base::seconds;

class WallClock : public base::Clock {
 public:
  WallClock(const base::Clock& real, const Duration& jump) : real_(real), jump_(jump) {}
  base::Time now() const override { return real_.now() + jump_; }
  base::Duration monotonic() const override { return real_.monotonic(); }

 private:
  const base::Clock& real_;
  const Duration& jump_;
};

struct Machine {
  explicit Machine(base::ManualLoop& loop) : process(loop) {}
  std::string identity;
  Process process;
  Duration jump;
  std::unique_ptr<WallClock> clock;
  NetworkFaults faults;
  std::unique_ptr<apiserver::LocalClient> local;
  std::unique_ptr<FaultyClient> client;
  std::unique_ptr<kube::LeaderElection> election;
  bool stopping = false;
  bool term = false;  // between on_started and on_lost
  Duration led_last = seconds(-1000);
  bool leading() const { return election && election->leading(); }
};

class Contest {
 public:
  Contest(uint64_t seed, int machines) : random_(seed) {
    apiserver::Api::Options options;
    options.clock = &clock_;
    options.executor = &loop_;
    api_ = std::move(*apiserver::Api::open(std::move(options)));
    user_ =
        std::make_unique<apiserver::LocalClient>(*api_, loop_, apiserver::system_caller("user"));
    for (int i = 0; i < machines; ++i) {
      auto m = std::make_unique<Machine>(loop_);
      m->identity = "m" + std::to_string(i);
      m->clock = std::make_unique<WallClock>(clock_, m->jump);
      m->local = std::make_unique<apiserver::LocalClient>(*api_, m->process,
                                                          apiserver::system_caller(m->identity));
      m->client = std::make_unique<FaultyClient>(*m->local, m->process, random_.fork(), m->faults);
      machines_.push_back(std::move(m));
    }
    // Two processes may have been given one name.
    if (machines > 2 && random_.chance(0.2)) machines_[1]->identity = machines_[0]->identity;
    if (random_.chance(0.7)) make_vacant();
    for (const auto& m : machines_) start(*m);
  }

  // One more thing goes wrong, and some time passes.
  void turn() {
    Machine& m = *machines_[random_.below(machines_.size())];
    switch (random_.below(14)) {
      case 0:
        m.process.pause();
        break;
      case 1:
        m.election.reset();
        m.term = false;
        break;
      case 2:
        stop(m);
        break;
      case 3:
        m.jump = seconds(static_cast<int64_t>(random_.below(200)) - 100);
        break;
      case 4:
        m.faults = {.refuse = random_.unit() * 0.5,
                    .lose_reply = random_.unit() * 0.5,
                    .conflict = random_.unit() * 0.5,
                    .break_watch = 0,
                    .delay_max = millis(static_cast<int64_t>(random_.below(6000)))};
        break;
      case 5:
        m.faults = {.refuse = 1};
        break;
      case 6:
        m.faults = {.lose_reply = 1};
        break;
      case 7:
        remove_lease();
        break;
      case 8:
        edit();
        break;
      case 9:
        m.faults = {};
        break;
      default:
        start(m);  // or goes on
        m.process.resume();
        break;
    }
    pass(millis(static_cast<int64_t>(random_.below(random_.chance(0.2) ? 25'000 : 3'000))));
  }

  void pass(Duration time) {
    const Duration until = loop_.now() + time;
    check();
    while (loop_.now() < until) {
      loop_.advance(millis(10));
      check();
    }
  }
  void heal() {
    for (const auto& m : machines_) {
      m->faults = {};
      m->process.resume();
      start(*m);
    }
  }
  void kill_leader() {
    for (const auto& m : machines_) {
      if (m->leading()) m->election.reset();
    }
  }
  size_t leaders() const {
    size_t out = 0;
    for (const auto& m : machines_) out += m->leading() ? 1 : 0;
    return out;
  }
  uint64_t terms() const { return terms_; }
  std::string trace() const { return trace_; }

 private:
  static Duration request_timeout() { return kube::LeaderElection::Options().request_timeout; }

  void start(Machine& m) {
    if (m.election && !m.stopping) return;
    m.stopping = false;
    m.term = false;
    kube::LeaderElection::Options options;
    options.ns = "default";
    options.name = "l";
    options.identity = m.identity;
    m.election = std::make_unique<kube::LeaderElection>(
        *m.client, m.process, *m.clock, random_.fork(), options,
        kube::LeaderElection::Handlers{.on_started = [this, &m](int64_t epoch) { began(m, epoch); },
                                       .on_lost =
                                           [&m](const std::string&) {
                                             EXPECT_TRUE(m.term);
                                             EXPECT_FALSE(m.leading());
                                             m.term = false;
                                           },
                                       .on_new_leader = {}});
    EXPECT_TRUE(m.election->start());
  }

  // As told to: it stops writing, waits for its own answers, and then gives up the Lease.
  void stop(Machine& m) {
    if (!m.election || m.stopping || m.process.paused()) return;
    m.stopping = true;
    m.election->stop();
    EXPECT_FALSE(m.election->leading());
    m.led_last = seconds(-1000);  // its writes are done: what may be taken at once
    m.term = false;
  }

  void began(Machine& m, int64_t epoch) {
    EXPECT_FALSE(m.term);
    m.term = true;
    ++terms_;
    trace_ += fmt::format("{}{}:{};", m.identity, epoch, loop_.now().millis());
    for (const auto& other : machines_) {
      if (other.get() == &m) continue;
      EXPECT_FALSE(other->leading()) << m.identity << " and " << other->identity;
      EXPECT_GT(loop_.now() - other->led_last, request_timeout())
          << other->identity << " may have writes under way when " << m.identity << " begins";
    }
    if (!recount_) {
      EXPECT_GT(epoch, epoch_last_);
    }
    epoch_last_ = epoch;
    // Whoever begins sooner has taken the one that is gone.
    if (loop_.now() - deleted_at_ >= seconds(15)) recount_ = false;
  }

  void check() {
    ASSERT_LE(leaders(), 1U);
    for (const auto& m : machines_) {
      if (m->leading()) m->led_last = loop_.now();
    }
  }

  kube::Reply ask(kube::Verb verb, json::Value body = {}) {
    kube::Request request;
    request.verb = verb;
    request.gvr = kube::leases_v1();
    request.ns = "default";
    if (verb != kube::Verb::kCreate) request.name = "l";
    request.body = std::move(body);
    kube::Reply out = base::error(base::Code::kTimeout, "no answer");
    user_->call(std::move(request), [&out](const kube::Reply& reply) { out = reply; });
    loop_.run_ready();
    return out;
  }
  void make_vacant() {
    (void)ask(kube::Verb::kCreate,
              json::Value::object({{"apiVersion", "coordination.k8s.io/v1"},
                                   {"kind", "Lease"},
                                   {"metadata", json::Value::object({{"name", "l"}})}}));
  }
  void remove_lease() {
    (void)ask(kube::Verb::kDelete);
    recount_ = true;  // nobody may be left who knows the last number
    deleted_at_ = loop_.now();
  }
  // Somebody who means well. Emptying the holder's name by hand is the one thing that must not be done.
  void edit() {
    const kube::Reply now = ask(kube::Verb::kGet);
    if (!now) return;
    json::Value lease = *now;
    switch (random_.below(4)) {
      case 0:
        lease.ref("metadata", "labels", "touched") = std::to_string(random_.below(100));
        break;
      case 1:
        if (lease.get("spec", "holderIdentity").as_string().empty()) return;
        lease.ref("spec", "holderIdentity") = "robber";
        break;
      case 2:
        lease.ref("metadata").erase("annotations");
        break;
      default:
        lease.ref("spec", "renewTime") = "2040-01-01T00:00:00.000000Z";
        break;
    }
    (void)ask(kube::Verb::kUpdate, lease);  // a candidate may have been faster
  }

  base::Random random_;
  base::ManualLoop loop_;
  base::LoopClock clock_{loop_};
  std::unique_ptr<apiserver::Api> api_;
  std::unique_ptr<apiserver::LocalClient> user_;
  std::vector<std::unique_ptr<Machine>> machines_;
  uint64_t terms_ = 0;
  int64_t epoch_last_ = -1;
  bool recount_ = true;
  Duration deleted_at_ = seconds(-1000);
  std::string trace_;
};

uint64_t seeds() {
  const char* text = std::getenv("TESSERA_LEADER_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 150;
}

TEST(LeaderContest, Never_do_two_lead_and_a_healed_contest_has_one_leader) {
  uint64_t terms = 0;
  for (uint64_t seed = 1; seed <= seeds(); ++seed) {
    SCOPED_TRACE(seed);
    Contest contest(seed, 2 + static_cast<int>(seed % 2));
    for (int i = 0; i < 60; ++i) {
      contest.turn();
      if (::testing::Test::HasFailure()) return;
    }
    // Whatever happened, one leads after the longest wait there is: a Lease seen late, and one retry.
    contest.heal();
    contest.pass(seconds(15 + 2 + 4 + 2));
    EXPECT_EQ(contest.leaders(), 1U);
    contest.kill_leader();
    contest.pass(seconds(15 + 2) + millis(100));
    EXPECT_EQ(contest.leaders(), 1U) << "within the lease duration and one retry";
    terms += contest.terms();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(terms, seeds() * 3) << "there was something to see";
}

TEST(LeaderContest, A_seed_is_the_same_run) {
  const auto run = [](uint64_t seed) {
    Contest contest(seed, 3);
    for (int i = 0; i < 40; ++i) contest.turn();
    return contest.trace();
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

}  // namespace
}  // namespace tessera::sim
