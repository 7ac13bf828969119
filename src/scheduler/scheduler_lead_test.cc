// Of several schedulers one leads: what a standby may do, how a term begins and ends, and what changes while it runs.

#include <gmock/gmock.h>

#include "scheduler/fake_api_testing.h"
#include "scheduler/scheduler.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using base::millis;
using base::seconds;
using testing::bound;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::node_object;
using testing::pod_object;
using ::testing::SizeIs;
using testing::with;
using testing::yaml;

// The way of one process to the API: its watches may fall behind, and its writes are counted.
class Line : public kube::Client {
 public:
  explicit Line(kube::Client& inner) : inner_(inner) {}
  void call(kube::Request request, std::function<void(kube::Reply)> done) override {
    if (request.verb != kube::Verb::kGet && request.verb != kube::Verb::kList) ++writes;
    inner_.call(std::move(request), std::move(done));
  }
  std::unique_ptr<base::Subscription> watch(kube::Request request,
                                            std::function<void(kube::WatchEvent)> on_event,
                                            std::function<void(base::Status)> on_close) override {
    return inner_.watch(
        std::move(request),
        [this, on_event = std::move(on_event)](const kube::WatchEvent& event) {
          if (!behind) on_event(event);
        },
        std::move(on_close));
  }
  bool behind = false;  // events are on their way, and do not come for now
  int writes = 0;

 private:
  kube::Client& inner_;
};

struct Replica {
  Replica(testing::FakeApi& api, base::ManualLoop& loop, const base::Clock& clock,
          Scheduler::Options options = {})
      : line(api) {
    options.leading = [this] { return leads; };
    scheduler = std::make_unique<Scheduler>(line, loop, clock, base::Random(1), options);
    scheduler->start();
  }
  void lead() {
    leads = true;
    scheduler->lead();
  }
  void lose() {
    leads = false;
    scheduler->stand_by();
  }
  Line line;
  bool leads = false;
  std::unique_ptr<Scheduler> scheduler;
};

class SchedulerLeadTest : public ::testing::Test {
 protected:
  Replica& replica(Scheduler::Options options = {}) {
    replicas.push_back(std::make_unique<Replica>(api, loop, clock, std::move(options)));
    settle();
    return *replicas.back();
  }
  void settle(base::Duration d = millis(300)) { loop.advance(d); }
  void put(const kube::Object& pod) { api.put("pods", pod); }
  void member(const std::string& name, int gpus) {
    put(pod_object(name, "spec: {schedulingGroup: {podGroupName: g}}", gpus));
  }
  void group(int min) {
    api.put("podgroups", kube::Object(yaml(fmt::format(R"(
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {{name: g, namespace: default}}
spec: {{schedulingPolicy: {{gang: {{minCount: {}}}}}}}
)",
                                                       min))));
  }
  // No GPU of a node is in two pods.
  void expect_no_gpu_twice(const std::vector<std::string>& pods) {
    std::set<std::string> taken;
    for (const std::string& name : pods) {
      const kube::Object pod = api.pod(name);
      if (pod.get("spec", "nodeName").as_string().empty()) continue;
      std::string gpus(pod.annotation("tessera.dev/gpus"));
      for (size_t at = 0; at <= gpus.size();) {
        const size_t comma = std::min(gpus.find(',', at), gpus.size());
        EXPECT_TRUE(taken.insert(api.node_of(name) + "/" + gpus.substr(at, comma - at)).second)
            << name << " " << gpus;
        at = comma + 1;
      }
    }
  }

  base::ManualLoop loop;
  base::LoopClock clock{loop};
  testing::FakeApi api{loop};
  std::vector<std::unique_ptr<Replica>> replicas;
};

TEST_F(SchedulerLeadTest, A_standby_writes_nothing_and_begins_at_once_when_it_leads) {
  api.put("nodes", node_object("n", 4));
  group(2);
  Replica& standby = replica();
  member("a", 2);
  member("b", 2);
  put(pod_object("late", "spec: {priority: 7}", 4));
  settle(seconds(90));
  EXPECT_EQ(standby.line.writes, 0);
  EXPECT_FALSE(standby.scheduler->stats().acting);
  EXPECT_EQ(standby.scheduler->stats().waiting, 3U) << "it looks on";
  standby.lead();
  settle();
  EXPECT_TRUE(standby.scheduler->stats().acting);
  EXPECT_EQ(api.node_of("late"), "n");
  EXPECT_THAT(api.why("a"), HasSubstr("nodes are available"));
}

TEST_F(SchedulerLeadTest, What_the_old_leader_bound_unseen_is_given_to_nobody_again) {
  api.put("nodes", node_object("n", 2));
  Replica& standby = replica();
  standby.line.behind = true;
  put(bound(pod_object("old", "{}", 1), "n", "0"));
  api.erase("nodes", "n");
  api.put("nodes", node_object("m", 1));
  put(bound(pod_object("older", "{}", 1), "m", "0"));
  put(pod_object("new", "{}", 1));
  settle();
  standby.lead();
  settle(seconds(5));
  EXPECT_THAT(api.binds, IsEmpty()) << "n has gone and m is full";
  EXPECT_EQ(standby.scheduler->stats().nodes, 1U);
  EXPECT_THAT(api.why("new"), HasSubstr("0/1 nodes"));
}

TEST_F(SchedulerLeadTest, Nothing_is_decided_before_the_lists_of_the_new_term_have_come) {
  api.put("nodes", node_object("n", 1));
  Replica& standby = replica();
  put(pod_object("p", "{}", 1));
  settle();
  bool refuse = true;
  api.refuse = [&](const kube::Request& r) -> std::optional<Code> {
    if (refuse && r.verb == kube::Verb::kList && r.gvr.resource == "pods")
      return Code::kUnavailable;
    return std::nullopt;
  };
  standby.lead();
  settle(seconds(60));
  EXPECT_EQ(standby.line.writes, 0);
  refuse = false;
  settle(seconds(60));
  EXPECT_EQ(api.node_of("p"), "n");
}

TEST_F(SchedulerLeadTest, A_term_that_was_lost_while_it_began_does_not_begin) {
  api.put("nodes", node_object("n", 1));
  api.latency = seconds(1);
  Replica& standby = replica();
  settle(seconds(20));
  put(pod_object("p", "{}", 1));
  standby.lead();
  settle(millis(500));
  standby.lose();
  standby.leads = true;  // the question alone does not do
  settle(seconds(20));
  EXPECT_EQ(standby.line.writes, 0);
  standby.lead();
  settle(seconds(20));
  EXPECT_EQ(api.node_of("p"), "n");
}

TEST_F(SchedulerLeadTest, A_gang_that_the_old_leader_bound_in_part_is_completed) {
  api.put("nodes", node_object("n", 4));
  group(3);
  Replica& old = replica();
  Replica& next = replica();
  old.lead();
  settle();
  int binds = 0;
  api.refuse = [&](const kube::Request& r) -> std::optional<Code> {
    if (r.subresource == "binding" && ++binds > 1) return Code::kUnavailable;
    return std::nullopt;
  };
  for (const char* name : {"a", "b", "c"}) member(name, 1);
  settle(millis(10));
  ASSERT_THAT(api.binds, SizeIs(1));
  old.scheduler.reset();
  api.refuse = nullptr;
  put(pod_object("rival", "spec: {priority: 50}", 2));
  settle();
  ASSERT_THAT(api.binds, SizeIs(1)) << "nobody leads";
  next.lead();
  settle(seconds(5));
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(api.node_of(name), "n") << name;
  EXPECT_EQ(api.node_of("rival"), "");
}

TEST_F(SchedulerLeadTest,
       Lost_in_the_middle_of_a_batch_the_rest_is_not_sent_and_comes_in_the_next_term) {
  api.put("nodes", node_object("n", 8));
  Scheduler::Options options;
  options.writes_in_flight_max = 2;
  options.events = false;
  Replica& first = replica(options);
  Replica& second = replica(options);
  first.lead();
  settle();
  api.latency = millis(200);
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) names.push_back(fmt::format("p{}", i));
  for (const std::string& name : names) put(pod_object(name, "{}", 1));
  settle(millis(50));
  ASSERT_THAT(api.binds, SizeIs(2));
  first.lose();
  settle(seconds(10));
  EXPECT_THAT(api.binds, SizeIs(2));
  EXPECT_EQ(first.scheduler->stats().assumed, 0U);
  EXPECT_EQ(first.scheduler->stats().waiting, 4U);
  second.lead();
  settle(seconds(10));
  EXPECT_THAT(api.binds, SizeIs(6));
  second.lose();
  first.lead();
  settle(seconds(2));
  put(pod_object("q", "{}", 2));
  settle(seconds(10));
  EXPECT_EQ(api.node_of("q"), "n");
  names.emplace_back("q");
  expect_no_gpu_twice(names);
}

TEST_F(SchedulerLeadTest, Lost_by_the_clock_alone_nothing_more_is_sent) {
  api.put("nodes", node_object("n", 8));
  Scheduler::Options options;
  options.writes_in_flight_max = 1;
  Replica& one = replica(options);
  one.lead();
  settle();
  api.latency = millis(200);
  for (int i = 0; i < 4; ++i) put(pod_object(fmt::format("p{}", i), "{}", 1));
  settle(millis(50));
  ASSERT_THAT(api.binds, SizeIs(1));
  const int writes = one.line.writes;
  one.leads = false;  // and no word of it yet
  settle(seconds(30));
  EXPECT_EQ(one.line.writes, writes);
  one.lose();
  settle(seconds(1));
  one.lead();
  settle(seconds(30));
  EXPECT_THAT(api.binds, SizeIs(4));
}

TEST_F(SchedulerLeadTest, A_write_without_an_answer_is_given_up_and_settled_by_reading) {
  api.put("nodes", node_object("n", 1));
  Replica& one = replica();
  one.lead();
  settle();
  api.latency = seconds(6);  // beyond the timeout of a write
  put(pod_object("p", "{}", 1));
  settle(seconds(5));
  EXPECT_EQ(one.scheduler->stats().bind_errors, 1U);
  settle(seconds(30));
  EXPECT_THAT(api.binds, SizeIs(1)) << "it was bound all the same";
}

TEST_F(SchedulerLeadTest, A_bind_of_an_earlier_term_is_not_sent_again) {
  api.put("nodes", node_object("n", 1));
  Replica& one = replica();
  one.lead();
  settle();
  api.refuse = [](const kube::Request& r) -> std::optional<Code> {
    if (r.subresource == "binding") return Code::kUnavailable;
    return std::nullopt;
  };
  put(pod_object("p", "{}", 1));
  settle(millis(500));  // it is to be sent again
  one.lose();
  put(bound(pod_object("q", "{}", 1), "n", "0"));
  settle(millis(100));
  one.lead();
  api.refuse = nullptr;
  settle(seconds(30));
  EXPECT_THAT(api.binds, IsEmpty()) << "another has given the place away";
  EXPECT_EQ(one.scheduler->stats().assumed, 0U);
}

TEST_F(SchedulerLeadTest, Evictions_that_were_not_sent_are_dropped_with_the_term) {
  api.put("nodes", node_object("n", 2));
  Replica& first = replica();
  first.lead();
  settle();
  put(pod_object("low", "{}", 2));
  settle(seconds(10));
  api.refuse = [](const kube::Request& r) -> std::optional<Code> {
    if (r.subresource == "eviction") return Code::kUnavailable;
    return std::nullopt;
  };
  put(pod_object("high", "spec: {priority: 10}", 2));
  settle(millis(500));
  first.lose();
  api.refuse = nullptr;
  settle(seconds(60));
  EXPECT_THAT(api.evictions, IsEmpty());
  first.lead();
  settle(seconds(2));
  EXPECT_THAT(api.evictions, ElementsAre("low")) << "decided anew, at once";
}

TEST_F(SchedulerLeadTest, Victims_that_are_going_are_waited_for_and_no_others_are_asked) {
  api.put("nodes", node_object("n", 2));
  api.put("nodes", node_object("m", 2));
  Replica& first = replica();
  Replica& second = replica();
  first.lead();
  settle();
  put(pod_object("x", "{}", 2));
  settle(seconds(20));
  put(pod_object("y", "{}", 2));
  settle(seconds(20));
  put(pod_object("high", "spec: {priority: 10}", 2));
  settle(seconds(1));
  ASSERT_THAT(api.evictions, ElementsAre("y")) << "it has lost less";
  first.scheduler.reset();
  // Had y run for longer by now, x would be the cheaper one of the two.
  put(with(api.pod("x"),
           R"(metadata: {annotations: {tessera.dev/checkpointed-at: "2026-01-01T00:00:41Z"}})"));
  settle();
  second.lead();
  settle(seconds(20));
  EXPECT_THAT(api.evictions, ElementsAre("y"));
  const std::string room = api.node_of("y");
  api.erase("pods", "default/y");
  settle();
  EXPECT_EQ(api.node_of("high"), room);
}

TEST_F(SchedulerLeadTest, A_reason_that_stands_there_already_is_not_written_again) {
  api.put("nodes", node_object("n", 1));
  Replica& first = replica();
  Replica& second = replica();
  first.lead();
  put(pod_object("p", "{}", 2));
  settle(seconds(30));
  const std::string why = api.why("p");
  ASSERT_THAT(why, HasSubstr("Insufficient"));
  const size_t events = api.events.size();
  first.lose();
  second.lead();
  settle(seconds(30));
  EXPECT_EQ(second.line.writes, 0);
  EXPECT_EQ(api.events.size(), events);
  api.put("nodes", node_object("m", 1));
  settle(seconds(30));
  EXPECT_THAT(api.why("p"), HasSubstr("0/2"));
}

TEST_F(SchedulerLeadTest, Two_shards_of_a_cluster_leave_each_other_alone) {
  Scheduler::Options options;
  options.shard_key = "pool";
  options.shard_value = "a";
  options.events = false;
  Replica& a = replica(options);
  options.shard_value = "b";
  Replica& b = replica(options);
  options.shard_value = "";
  Replica& rest = replica(options);
  for (Replica* one : {&a, &b, &rest}) one->lead();
  api.put("nodes", node_object("na", 2, "metadata: {labels: {pool: a}}"));
  api.put("nodes", node_object("nb", 2, "metadata: {labels: {pool: b}}"));
  settle();
  put(pod_object("pa", "metadata: {labels: {pool: a}}", 2));
  put(pod_object("pb", "metadata: {labels: {pool: b}}", 2));
  put(pod_object("p", "{}", 1));
  put(pod_object("pa2", "{metadata: {labels: {pool: a}}, spec: {priority: 9}}", 4));
  settle(seconds(5));
  EXPECT_THAT(api.binds, ::testing::UnorderedElementsAre("pa>na", "pb>nb"));
  EXPECT_THAT(api.evictions, IsEmpty()) << "two nodes would do, and one of them is b's";
  EXPECT_THAT(api.why("p"), HasSubstr("no nodes available"));
  EXPECT_EQ(a.scheduler->stats().nodes, 1U);
  put(pod_object("pb2", "{metadata: {labels: {pool: b}}, spec: {priority: 9}}", 2));
  settle(seconds(5));
  EXPECT_THAT(api.evictions, ElementsAre("pb"));
  // A node passes over.
  api.put("nodes", node_object("n", 2, "metadata: {labels: {pool: a}}"));
  settle(seconds(1));
  EXPECT_EQ(a.scheduler->stats().nodes, 2U);
  api.put("nodes", node_object("n", 2));
  settle(seconds(1));
  EXPECT_EQ(a.scheduler->stats().nodes, 1U);
  EXPECT_EQ(api.node_of("p"), "n");
}

class SchedulerReconfigureTest : public SchedulerLeadTest {
 protected:
  void start() {
    scheduler = std::make_unique<Scheduler>(api, loop, clock, base::Random(1), options);
    scheduler->start();
    settle();
  }
  Scheduler::Options options;
  std::unique_ptr<Scheduler> scheduler;
};

TEST_F(SchedulerReconfigureTest, Without_evictions_nobody_is_made_to_leave_and_with_them_again) {
  api.put("nodes", node_object("n", 2));
  options.engine.evictions = false;
  options.engine.broken_after = seconds(10);
  group(2);
  start();
  member("a", 1);
  member("b", 1);
  settle(seconds(5));
  put(pod_object("high", "spec: {priority: 10}", 2));
  settle(seconds(60));
  api.erase("pods", "default/b");
  settle(seconds(60));
  EXPECT_THAT(api.evictions, IsEmpty()) << "nor is a gang released that is broken";
  options.engine.evictions = true;
  scheduler->reconfigure(options);
  settle(seconds(20));
  EXPECT_THAT(api.evictions, ElementsAre("a"));
}

TEST_F(SchedulerReconfigureTest, Turned_off_they_end_what_was_asked_for_and_not_granted) {
  api.put("nodes", node_object("n", 2));
  start();
  put(pod_object("low", "{}", 2));
  settle(seconds(10));
  api.refuse = [](const kube::Request& r) -> std::optional<Code> {
    if (r.subresource == "eviction") return Code::kUnavailable;
    return std::nullopt;
  };
  put(pod_object("high", "spec: {priority: 10}", 2));
  settle(millis(500));
  options.engine.evictions = false;
  scheduler->reconfigure(options);
  settle();
  api.refuse = nullptr;
  settle(seconds(600));
  EXPECT_THAT(api.evictions, IsEmpty());
}

TEST_F(SchedulerReconfigureTest, Binds_in_flight_and_the_period_of_reasons_change_while_it_runs) {
  api.put("nodes", node_object("n", 8));
  options.binds_in_flight_max = 1;
  options.explain_period = seconds(1000);
  options.events = false;
  start();
  api.latency = seconds(1);
  for (int i = 0; i < 6; ++i) put(pod_object(fmt::format("p{}", i), "{}", 1));
  settle(millis(500));
  ASSERT_THAT(api.binds, SizeIs(1));
  options.binds_in_flight_max = 100;
  options.explain_period = seconds(1);
  scheduler->reconfigure(options);
  settle(millis(100));
  EXPECT_THAT(api.binds, SizeIs(6));
  api.latency = {};
  put(pod_object("w", "{}", 8));
  settle(seconds(5));
  ASSERT_THAT(api.why("w"), HasSubstr("0/1"));
  api.put("nodes", node_object("m", 1));
  settle(seconds(5));
  EXPECT_THAT(api.why("w"), HasSubstr("0/2"));
}

TEST_F(SchedulerReconfigureTest, Names_and_shard_stay_as_they_were) {
  api.put("nodes", node_object("n", 8));
  options.names = {"volcano", "kai-scheduler"};
  start();
  Scheduler::Options other = options;
  other.names = {"tessera"};
  other.shard_key = "pool";
  other.shard_value = "x";
  scheduler->reconfigure(other);
  settle();
  put(pod_object("v", "spec: {schedulerName: volcano}", 1));
  put(pod_object("k", "spec: {schedulerName: kai-scheduler}", 1));
  put(pod_object("t", "{}", 1));
  settle(seconds(1));
  EXPECT_THAT(api.binds, ::testing::UnorderedElementsAre("v>n", "k>n"));
}

}  // namespace
}  // namespace tessera::scheduler
