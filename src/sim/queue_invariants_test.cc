#include "sim/queue_invariants.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "json/yaml.h"

namespace tessera::sim {
namespace {

using Type = kube::WatchEvent::Type;
using ::testing::HasSubstr;

// What the rules say, "" for nothing.
class QueueRules : public ::testing::Test {
 protected:
  struct PodText {
    std::string name;
    std::string group{};
    std::string node{};
    std::string queue = "q";
    int priority = 0;
    std::string gpus = "1";
    std::string phase = "Pending";
    std::string more{};  // of metadata
    bool ready = false;
  };
  static std::string said(const base::Status& status) {
    return status ? std::string() : status.error().message;
  }
  std::string see(const std::string& text, Type type = Type::kModified) {
    auto root = json::parse_yaml(text);
    EXPECT_TRUE(root) << text;
    return root ? said(rules.see({type, kube::Object(*root)}, now)) : "";
  }
  std::string pod(const PodText& p, Type type = Type::kModified) {
    return see(fmt::format(R"(
apiVersion: v1
kind: Pod
metadata: {{name: {0}, namespace: d, uid: u-{0}, labels: {{app: a, scheduling.x-k8s.io/pod-group: '{1}', tessera.dev/queue: {2}}}{3}}}
spec:
  schedulerName: tessera
  nodeName: '{4}'
  priority: {5}
  containers: [{{name: a, resources: {{limits: {{nvidia.com/gpu: "{6}"}}, requests: {{nvidia.com/gpu: "{6}", cpu: "1"}}}}}}]
status: {{phase: {7}, conditions: [{{type: Ready, status: "{8}"}}]}}
)",
                           p.name, p.group, p.queue, p.more, p.node, p.priority, p.gpus, p.phase,
                           p.ready ? "True" : "False"),
               type);
  }
  std::string group(const std::string& name, int least) {
    return see(fmt::format(R"(
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {{name: {}, namespace: d, uid: g}}
spec: {{minMember: {}}}
)",
                           name, least));
  }
  std::string queue(const std::string& name, std::string_view spec = "{}") {
    return see(fmt::format(R"(
apiVersion: tessera.dev/v1alpha1
kind: Queue
metadata: {{name: {}, uid: q}}
spec: {}
)",
                           name, spec));
  }
  std::string event(const std::string& pod, const std::string& reason, const std::string& message) {
    return see(fmt::format(R"(
apiVersion: v1
kind: Event
metadata: {{name: e, namespace: d}}
involvedObject: {{kind: Pod, name: {0}, namespace: d, uid: u-{0}}}
reason: {1}
message: '{2}'
)",
                           pod, reason, message));
  }
  std::string evicted(const std::string& pod) { return said(rules.see_eviction("d/" + pod, now)); }
  std::string pass(int64_t seconds) {
    now = now + base::seconds(seconds);
    return said(rules.tick(now));
  }

  base::Time now{base::seconds(1'000'000).ns};
  QueueInvariants rules{{.news = base::seconds(15), .all_told = true}};
};

TEST_F(QueueRules, A_gang_with_a_part_running_is_whole_or_gone_in_time) {
  group("g", 2);
  queue("q");
  for (const char* name : {"a", "b"}) EXPECT_EQ(pod({.name = name, .group = "g"}), "");
  pass(60);
  EXPECT_EQ(pod({.name = "a", .group = "g", .node = "n"}), "");
  EXPECT_EQ(pass(140), "");
  EXPECT_THAT(pass(20), HasSubstr("has 1 members running and needs 2"));
  EXPECT_EQ(pod({.name = "b", .group = "g", .node = "n"}), "");
  EXPECT_EQ(pass(200), "");
}

TEST_F(QueueRules, Members_that_finish_well_are_not_missed_and_a_raised_minimum_breaks_nothing) {
  group("g", 2);
  queue("q");
  for (const char* name : {"a", "b"}) pod({.name = name, .group = "g"});
  pass(60);
  for (const char* name : {"a", "b"}) EXPECT_EQ(pod({.name = name, .group = "g", .node = "n"}), "");
  group("g", 5);
  EXPECT_EQ(pass(200), "");
  pod({.name = "a", .group = "g", .node = "n", .phase = "Succeeded"});
  EXPECT_EQ(pass(200), "");
}

TEST_F(QueueRules, A_gang_starts_with_members_enough_in_a_queue_that_is_there) {
  group("g", 2);
  queue("q");
  pod({.name = "a", .group = "g"});
  pod({.name = "x", .queue = "nowhere"});
  pass(60);
  EXPECT_THAT(pod({.name = "a", .group = "g", .node = "n"}), HasSubstr("1 members exist and 2"));
  EXPECT_THAT(pod({.name = "x", .node = "n", .queue = "nowhere"}), HasSubstr("does not exist"));
}

TEST_F(QueueRules, A_limit_counts_what_is_bound_in_the_queues_below) {
  queue("top", "{limit: {gpu: 3}}");
  queue("q", "{parent: top}");
  for (const char* name : {"a", "b"}) pod({.name = name, .gpus = "2"});
  pass(60);
  EXPECT_EQ(pod({.name = "a", .node = "n", .gpus = "2"}), "");
  EXPECT_THAT(pod({.name = "b", .node = "n", .gpus = "2"}), HasSubstr("\"top\" to 4000 of gpu"));
}

TEST_F(QueueRules, A_limit_that_was_lowered_a_moment_ago_is_not_exceeded_yet) {
  queue("q", "{limit: {gpu: 4}}");
  pod({.name = "a", .gpus = "4"});
  pass(60);
  queue("q", "{limit: {gpu: 2}}");
  EXPECT_EQ(pod({.name = "a", .node = "n", .gpus = "4"}), "");
}

TEST_F(QueueRules, Daemons_and_pods_of_others_are_not_evicted) {
  pod({.name = "a",
       .node = "n",
       .more = ", ownerReferences: [{kind: DaemonSet, name: x, uid: x, controller: true}]"});
  EXPECT_THAT(evicted("a"), HasSubstr("DaemonSet"));
}

TEST_F(QueueRules, A_budget_is_kept) {
  see("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: d}, spec: "
      "{minAvailable: 1, selector: {matchLabels: {app: a}}}}");
  for (const char* name : {"a", "b"})
    pod({.name = name, .node = "n", .phase = "Running", .ready = true});
  pass(60);
  EXPECT_EQ(evicted("a"), "");
  pod({.name = "a", .node = "n", .phase = "Running", .ready = true}, Type::kDeleted);
  pass(20);
  EXPECT_THAT(evicted("b"), HasSubstr("wants 1 and 0 are left"));
}

TEST_F(QueueRules, An_eviction_says_why_and_for_whom) {
  queue("q");
  pod({.name = "low", .node = "n"});
  pod({.name = "high", .priority = 5});
  pass(100);
  EXPECT_EQ(evicted("low"), "");
  EXPECT_THAT(pass(40), HasSubstr("nobody said why"));
}

TEST_F(QueueRules, Nobody_is_preempted_by_its_equal) {
  queue("q");
  pod({.name = "low", .node = "n"});
  pod({.name = "high"});
  pass(100);
  EXPECT_EQ(evicted("low"), "");
  EXPECT_THAT(event("low", "Preempted", "d/high of priority 0 takes the place of d/low"),
              HasSubstr("was preempted by d/high of priority 0"));
}

TEST_F(QueueRules, Who_others_were_evicted_for_is_bound) {
  queue("q");
  pod({.name = "low", .node = "n"});
  pod({.name = "high", .priority = 5});
  pass(100);
  EXPECT_EQ(evicted("low"), "");
  EXPECT_EQ(event("low", "Preempted", "d/high of priority 5 takes the place of d/low"), "");
  EXPECT_EQ(pass(140), "");
  EXPECT_THAT(pass(20), HasSubstr("d/low was evicted for d/high, which waits"));
}

TEST_F(QueueRules, Two_jobs_do_not_evict_each_other_in_turn) {
  queue("a");
  queue("b");
  pod({.name = "one", .node = "n", .queue = "a"});
  pod({.name = "two", .queue = "b"});
  pass(100);
  EXPECT_EQ(evicted("one"), "");
  EXPECT_EQ(event("one", "Reclaimed", "queue \"b\" takes back its share for d/two; queue"), "");
  pod({.name = "two", .node = "n", .queue = "b"});
  EXPECT_EQ(evicted("two"), "");
  EXPECT_THAT(event("two", "Reclaimed", "queue \"a\" takes back its share for d/one; queue"),
              HasSubstr("evict each other in turn"));
}

}  // namespace
}  // namespace tessera::sim
