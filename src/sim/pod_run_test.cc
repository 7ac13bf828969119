#include "sim/pod_run.h"

#include <gmock/gmock.h>

#include "json/yaml.h"
#include "kube/pod.h"

namespace tessera::sim {
namespace {

using base::Duration;
using base::millis;
using base::seconds;
using base::Time;
using ::testing::HasSubstr;

constexpr Time kStart{1'767'225'600'000'000'000};

kube::Pod pod_of(std::string_view annotations, std::string_view spec) {
  auto root = json::parse_yaml(fmt::format(
      "{{metadata: {{name: p, namespace: d, generation: 2, annotations: {}}}, spec: {}}}",
      annotations, spec));
  EXPECT_TRUE(root) << root.error().message;
  auto pod = kube::decode_pod(kube::Object(*root));
  EXPECT_TRUE(pod) << pod.error().message;
  return *pod;
}

// Runs a pod on virtual time and writes down what it does.
class Bench {
 public:
  Bench(std::string_view annotations, std::string_view spec) {
    auto run = PodRun::make(pod_of(annotations, spec), RunTimes{});
    EXPECT_TRUE(run) << run.error().message;
    run_ = std::move(*run);
    run_.admit({}, "10.1.0.2", "10.128.0.0", kStart);
    step();
  }
  // Makes every step within the time from now.
  Bench& advance(Duration d) {
    const Time end = now_ + d;
    while (next_ && *next_ <= end) {
      now_ = std::max(now_, *next_);
      step();
    }
    now_ = end;
    return *this;
  }
  void stop(Duration grace) {
    run_.stop(grace, now_);
    step();
  }
  void crash() {
    run_.crash(now_);
    step();
  }
  std::string phase() const { return std::string(run_.phase()); }
  json::Value container(std::string_view name) const {
    for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
      const json::Value status = run_.status();
      for (const json::Value& one : status[list].items()) {
        if (one["name"].as_string() == name) return one;
      }
    }
    return {};
  }
  // "run", "wait:CrashLoopBackOff", "end:0".
  std::string state(std::string_view name) const {
    const json::Value one = container(name);
    if (one["state"].contains("running")) return "run";
    if (one["state"].contains("waiting")) return "wait:" + one["state"]["waiting"]["reason"].str();
    return fmt::format("end:{}", one["state"]["terminated"]["exitCode"].as_int());
  }
  std::string condition(std::string_view type) const {
    const json::Value status = run_.status();
    for (const json::Value& one : status["conditions"].items()) {
      if (one["type"].as_string() == type) return one["status"].str();
    }
    return "";
  }
  PodRun& run() { return run_; }
  Duration now() const { return now_ - kStart; }
  std::optional<Time> next() const { return next_; }

 private:
  void step() { next_ = run_.step(now_); }
  PodRun run_;
  Time now_ = kStart;
  std::optional<Time> next_;
};

constexpr const char* kOne = "{restartPolicy: Never, containers: [{name: a}]}";

TEST(PodRun, Runs_its_time_and_succeeds) {
  Bench pod("{tessera.dev/run-for: 60s}", kOne);
  EXPECT_EQ(pod.phase(), "Pending");
  EXPECT_EQ(pod.state("a"), "wait:ContainerCreating");
  pod.advance(millis(200));
  EXPECT_EQ(pod.phase(), "Running");
  EXPECT_EQ(pod.condition("Ready"), "True");
  pod.advance(millis(59'999));
  EXPECT_EQ(pod.phase(), "Running");
  pod.advance(millis(1));
  EXPECT_EQ(pod.phase(), "Succeeded");
  EXPECT_EQ(pod.state("a"), "end:0");
  EXPECT_TRUE(pod.run().over());
  EXPECT_FALSE(pod.next());
}

TEST(PodRun, Without_a_run_time_it_runs_until_stopped) {
  Bench pod("{}", kOne);
  pod.advance(seconds(1'000'000));
  EXPECT_EQ(pod.phase(), "Running");
  EXPECT_FALSE(pod.next()) << "nothing is due";
}

TEST(PodRun, Restart_policies_decide_on_exit_codes) {
  struct Case {
    const char* policy;
    const char* exit_code;
    const char* phase;
    const char* state;
  };
  for (const Case& c :
       {Case{"Never", "0", "Succeeded", "end:0"}, Case{"Never", "3", "Failed", "end:3"},
        Case{"OnFailure", "0", "Succeeded", "end:0"},
        Case{"OnFailure", "1", "Running", "wait:CrashLoopBackOff"},
        Case{"Always", "0", "Running", "wait:CrashLoopBackOff"},
        Case{"Always", "255", "Running", "wait:CrashLoopBackOff"}}) {
    Bench pod(fmt::format("{{tessera.dev/run-for: 5s, tessera.dev/exit-code: '{}'}}", c.exit_code),
              fmt::format("{{restartPolicy: {}, containers: [{{name: a}}]}}", c.policy));
    pod.advance(seconds(6));
    EXPECT_EQ(pod.phase(), c.phase) << c.policy << c.exit_code;
    EXPECT_EQ(pod.state("a"), c.state) << c.policy << c.exit_code;
  }
}

TEST(PodRun, Back_off_doubles_to_five_minutes_and_is_forgotten_after_ten_good_ones) {
  Bench pod("{tessera.dev/run-for: 1s, tessera.dev/exit-code: '1'}",
            "{restartPolicy: Always, containers: [{name: a}]}");
  pod.advance(millis(1200));
  for (const int64_t wait : {10, 20, 40, 80, 160, 300, 300}) {
    EXPECT_EQ(pod.state("a"), "wait:CrashLoopBackOff");
    pod.advance(millis(wait * 1000 - 1));
    EXPECT_EQ(pod.state("a"), "wait:CrashLoopBackOff") << wait;
    pod.advance(millis(1));
    EXPECT_EQ(pod.state("a"), "run") << wait;
    pod.advance(seconds(1));
  }
  EXPECT_EQ(pod.container("a")["restartCount"].as_int(), 8);
  EXPECT_EQ(pod.container("a")["lastState"]["terminated"]["exitCode"].as_int(), 1);

  Bench lasting("{tessera.dev/run-for: 700s}", "{restartPolicy: Always, containers: [{name: a}]}");
  for (int i = 0; i < 4; ++i) {
    lasting.advance(millis(i == 0 ? 700'200 : 700'000));
    EXPECT_EQ(lasting.state("a"), "wait:CrashLoopBackOff");
    lasting.advance(seconds(10));
    EXPECT_EQ(lasting.state("a"), "run") << i;
  }
}

TEST(PodRun, Init_containers_run_one_after_the_other_and_sidecars_stay) {
  Bench pod("{tessera.dev/init-run-for: 10s, tessera.dev/run-for: 30s}", R"({
    restartPolicy: Never,
    initContainers: [{name: i1}, {name: s, restartPolicy: Always}, {name: i2}],
    containers: [{name: a}, {name: b}]})");
  pod.advance(seconds(5));
  EXPECT_EQ(pod.phase(), "Pending");
  EXPECT_EQ(pod.state("i1"), "run");
  EXPECT_EQ(pod.state("s"), "wait:PodInitializing");
  EXPECT_EQ(pod.condition("Initialized"), "False");
  EXPECT_EQ(pod.condition("PodReadyToStartContainers"), "True");
  pod.advance(seconds(10));
  EXPECT_EQ(pod.state("i1"), "end:0");
  EXPECT_EQ(pod.state("s"), "run");
  EXPECT_EQ(pod.state("i2"), "run");
  EXPECT_EQ(pod.state("a"), "wait:PodInitializing");
  pod.advance(seconds(6));
  EXPECT_EQ(pod.phase(), "Running");
  EXPECT_EQ(pod.condition("Initialized"), "True");
  EXPECT_EQ(pod.state("a"), "run");
  pod.advance(seconds(40));
  EXPECT_EQ(pod.phase(), "Succeeded");
  EXPECT_EQ(pod.state("s"), "end:0") << "a sidecar does not keep a finished pod";
  // 0.2 s start, twice 10 s init, 30 s run: exactly.
  EXPECT_EQ(pod.container("a")["state"]["terminated"]["finishedAt"].as_string(),
            "2026-01-01T00:00:50Z");
}

TEST(PodRun, A_stop_waits_for_the_process_up_to_the_grace_and_then_kills) {
  struct Case {
    const char* stop_after;
    int64_t grace;
    int64_t over_after_ms;
    const char* state;
  };
  for (const Case& c : {Case{"{}", 30, 100, "end:143"},
                        Case{"{tessera.dev/stop-after: 10s}", 30, 10'000, "end:143"},
                        Case{"{tessera.dev/stop-after: 60s}", 30, 30'000, "end:137"},
                        Case{"{tessera.dev/stop-after: 60s}", 0, 0, "end:137"},
                        Case{"{tessera.dev/stop-after: 0s}", 0, 0, "end:143"}}) {
    Bench pod(c.stop_after, kOne);
    pod.advance(seconds(5));
    pod.stop(seconds(c.grace));
    if (c.over_after_ms > 0) {
      pod.advance(millis(c.over_after_ms - 1));
      EXPECT_EQ(pod.phase(), "Running") << c.stop_after;
      pod.advance(millis(1));
    }
    EXPECT_TRUE(pod.run().over()) << c.stop_after;
    EXPECT_EQ(pod.phase(), "Failed");
    EXPECT_EQ(pod.state("a"), c.state);
  }
}

TEST(PodRun, A_second_stop_can_only_make_it_sooner) {
  Bench pod("{tessera.dev/stop-after: 100s}", kOne);
  pod.advance(seconds(1));
  pod.stop(seconds(60));
  pod.advance(seconds(1));
  pod.stop(seconds(5));
  pod.advance(millis(4999));
  EXPECT_FALSE(pod.run().over());
  pod.stop(seconds(500));
  pod.advance(millis(1));
  EXPECT_TRUE(pod.run().over());
}

TEST(PodRun, A_process_that_ends_by_itself_during_the_grace_keeps_its_exit_code) {
  Bench pod("{tessera.dev/run-for: 10s, tessera.dev/stop-after: 60s}", kOne);
  pod.advance(seconds(8));
  pod.stop(seconds(30));
  pod.advance(seconds(30));
  EXPECT_EQ(pod.phase(), "Succeeded");
  EXPECT_EQ(pod.state("a"), "end:0");
}

TEST(PodRun, Stopped_before_its_containers_started_it_failed) {
  Bench pod("{}", kOne);
  pod.stop(seconds(30));
  EXPECT_TRUE(pod.run().over());
  EXPECT_EQ(pod.phase(), "Failed");
  Bench backing_off("{tessera.dev/run-for: 1s}",
                    "{restartPolicy: Always, containers: [{name: a}]}");
  backing_off.advance(seconds(5));
  backing_off.stop(seconds(30));
  EXPECT_TRUE(backing_off.run().over());
}

TEST(PodRun, The_deadline_ends_it_within_its_grace) {
  Bench pod("{tessera.dev/stop-after: 60s}",
            "{restartPolicy: Always, activeDeadlineSeconds: 20, terminationGracePeriodSeconds: 5, "
            "containers: [{name: a}]}");
  pod.advance(seconds(20));
  EXPECT_EQ(pod.phase(), "Running");
  pod.advance(seconds(5));
  EXPECT_EQ(pod.phase(), "Failed");
  EXPECT_EQ(pod.run().status()["reason"].as_string(), "DeadlineExceeded");
  EXPECT_EQ(pod.state("a"), "end:137");
}

TEST(PodRun, A_crash_of_the_node_restarts_what_may_restart) {
  Bench always("{}", "{restartPolicy: Always, containers: [{name: a}]}");
  always.advance(seconds(5));
  always.crash();
  EXPECT_EQ(always.phase(), "Running");
  EXPECT_EQ(always.state("a"), "wait:ContainerCreating");
  EXPECT_EQ(always.condition("Ready"), "False");
  always.advance(seconds(1));
  EXPECT_EQ(always.state("a"), "run");
  EXPECT_EQ(always.container("a")["restartCount"].as_int(), 1);
  EXPECT_EQ(always.container("a")["lastState"]["terminated"]["exitCode"].as_int(), 137);

  Bench never("{}", kOne);
  never.advance(seconds(5));
  never.crash();
  never.advance(seconds(1));
  EXPECT_EQ(never.phase(), "Failed");
  EXPECT_EQ(never.state("a"), "end:137");

  Bench init("{tessera.dev/init-run-for: 60s}",
             "{restartPolicy: Never, initContainers: [{name: i}], containers: [{name: a}]}");
  init.advance(seconds(30));
  init.crash();
  init.advance(seconds(59));
  EXPECT_EQ(init.state("i"), "run") << "from the start again";
  init.advance(seconds(2));
  EXPECT_EQ(init.state("a"), "run");

  Bench stopping("{tessera.dev/stop-after: 20s}",
                 "{restartPolicy: Always, containers: [{name: a}]}");
  stopping.advance(seconds(5));
  stopping.stop(seconds(30));
  stopping.crash();
  EXPECT_TRUE(stopping.run().over());
}

TEST(PodRun, What_ran_before_the_kubelet_started_is_taken_up_as_after_a_crash) {
  auto root = json::parse_yaml(R"(
metadata: {name: p, namespace: d}
spec: {restartPolicy: Always, containers: [{name: a}, {name: b}]}
status:
  phase: Running
  startTime: "2025-12-31T00:00:00Z"
  containerStatuses:
    - {name: a, restartCount: 3, state: {running: {startedAt: "2025-12-31T00:00:01Z"}}}
    - {name: b, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}}
)");
  ASSERT_TRUE(root);
  const kube::Object object(*root);
  auto run = PodRun::make(*kube::decode_pod(object), RunTimes{});
  ASSERT_TRUE(run);
  run->admit({}, "10.1.0.2", "10.128.0.0", kStart);
  run->recover(object, kStart);
  EXPECT_EQ(run->phase(), "Running") << "a phase never goes back";
  run->step(kStart + seconds(1));
  const json::Value status = run->status();
  EXPECT_EQ(status["containerStatuses"].at(0)["restartCount"].as_int(), 4);
  EXPECT_EQ(status["containerStatuses"].at(0)["lastState"]["terminated"]["startedAt"].as_string(),
            "2025-12-31T00:00:01Z");
  EXPECT_EQ(status["containerStatuses"].at(1)["restartCount"].as_int(), 1);
  EXPECT_EQ(status["startTime"].as_string(), "2025-12-31T00:00:00Z");
}

TEST(PodRun, A_refused_pod_failed_with_the_reason_and_held_nothing) {
  auto run = PodRun::make(pod_of("{}", kOne), RunTimes{});
  ASSERT_TRUE(run);
  run->reject("OutOfcpu", "Node didn't have enough resource: cpu", kStart);
  run->step(kStart);
  EXPECT_TRUE(run->over());
  const json::Value status = run->status();
  EXPECT_EQ(status["phase"].as_string(), "Failed");
  EXPECT_EQ(status["reason"].as_string(), "OutOfcpu");
  EXPECT_FALSE(status.contains("containerStatuses"));
}

TEST(PodRun, Its_status_says_what_kubectl_shows) {
  Bench pod("{tessera.dev/run-for: 60s}",
            R"({initContainers: [{name: i}], containers: [{name: a, image: "x:1"}]})");
  pod.advance(seconds(1));
  const json::Value status = pod.run().status();
  EXPECT_EQ(status["podIP"].as_string(), "10.1.0.2");
  EXPECT_EQ(status["hostIP"].as_string(), "10.128.0.0");
  EXPECT_EQ(status["podIPs"].at(0)["ip"].as_string(), "10.1.0.2");
  EXPECT_EQ(status["startTime"].as_string(), "2026-01-01T00:00:00Z");
  EXPECT_EQ(status["observedGeneration"].as_int(), 2);
  EXPECT_TRUE(status["reason"].is_null());
  EXPECT_EQ(status["initContainerStatuses"].at(0)["ready"].as_bool(), true);
  const json::Value container = status["containerStatuses"].at(0);
  EXPECT_EQ(container["image"].as_string(), "x:1");
  EXPECT_TRUE(container["started"].as_bool());
  EXPECT_TRUE(container["ready"].as_bool());
}

TEST(PodRun, Every_change_that_shows_counts_the_revision_up) {
  Bench pod("{tessera.dev/run-for: 5s}", kOne);
  uint64_t last = pod.run().revision();
  json::Value status = pod.run().status();
  for (int i = 0; i < 100; ++i) {
    pod.advance(millis(100));
    EXPECT_EQ(pod.run().revision() != last, !(pod.run().status() == status)) << i;
    last = pod.run().revision();
    status = pod.run().status();
  }
}

TEST(PodRun, Annotations_that_cannot_be_read_are_named) {
  struct Case {
    const char* annotations;
    const char* says;
  };
  for (const Case& c :
       {Case{"{tessera.dev/run-for: soon}",
             "annotation tessera.dev/run-for: \"soon\" is not a duration; write it as 90s"},
        Case{"{tessera.dev/run-for: '60'}", "tessera.dev/run-for"},
        Case{"{tessera.dev/run-for: -5s}", "tessera.dev/run-for"},
        Case{"{tessera.dev/exit-code: '256'}",
             "tessera.dev/exit-code: \"256\" is not a whole number from 0 to 255"},
        Case{"{tessera.dev/exit-code: x}", "tessera.dev/exit-code"},
        Case{"{tessera.dev/stop-after: ''}", "tessera.dev/stop-after"},
        Case{"{tessera.dev/share-milli: '2000'}", "tessera.dev/share-milli"},
        Case{"{tessera.dev/share-milli: '5', tessera.dev/share-gpus: '99'}",
             "tessera.dev/share-gpus"}}) {
    auto run = PodRun::make(pod_of(c.annotations, kOne), RunTimes{});
    ASSERT_FALSE(run) << c.annotations;
    EXPECT_THAT(run.error().message, HasSubstr(c.says));
  }
}

TEST(PodRun, Times_without_bounds_overflow_nothing) {
  Bench pod("{}",
            "{activeDeadlineSeconds: 9223372036854775807, terminationGracePeriodSeconds: "
            "9223372036854775807, containers: [{name: a}]}");
  pod.advance(seconds(100));
  EXPECT_EQ(pod.phase(), "Running");
}

}  // namespace
}  // namespace tessera::sim
