// The plans of the controllers, from tables: no API, no clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/controller_deployment_plan.h"
#include "apiserver/controller_garbage.h"
#include "apiserver/controller_job_plan.h"
#include "apiserver/controller_node_plan.h"
#include "apiserver/controller_replica_set.h"
#include "json/parse.h"

namespace tessera::apiserver::controller {
namespace {

using json::Value;
using kube::Object;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr base::Time kNow{1'767'225'600'000'000'000};

Value parse(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value) << text;
  return value ? *value : Value();
}

struct PodSpec {
  std::string name;
  std::string phase = "Running";
  std::string node = "n1";
  bool ready = true;
  int age_seconds = 100;
  bool deleting = false;
  bool tracked = false;  // carries the finalizer of jobs
  int ended_seconds_ago = 0;
};

Object pod(const PodSpec& spec) {
  Value out = parse(R"({"metadata":{"namespace":"default","labels":{"app":"a"}}})");
  Value& meta = out.ref("metadata");
  meta.set("name", spec.name);
  meta.set("uid", "uid-" + spec.name);
  meta.set("creationTimestamp", base::to_rfc3339(kNow - base::seconds(spec.age_seconds)));
  if (spec.deleting) meta.set("deletionTimestamp", base::to_rfc3339(kNow));
  if (spec.tracked) meta.ref("finalizers").push_back(kJobFinalizer);
  if (!spec.node.empty()) out.ref("spec").set("nodeName", spec.node);
  out.ref("status").set("phase", spec.phase);
  const std::string since = base::to_rfc3339(kNow - base::seconds(spec.age_seconds));
  Value ready = Value::object({{"type", "Ready"}, {"lastTransitionTime", since}});
  ready.set("status", spec.ready && spec.phase == "Running" ? "True" : "False");
  out.ref("status", "conditions").push_back(std::move(ready));
  if (spec.phase == "Failed" || spec.phase == "Succeeded") {
    Value ended;
    ended.ref("state", "terminated")
        .set("finishedAt", base::to_rfc3339(kNow - base::seconds(spec.ended_seconds_ago)));
    out.ref("status", "containerStatuses").push_back(std::move(ended));
  }
  return Object(out);
}

std::vector<std::string> names(const std::vector<Object>& pods) {
  std::vector<std::string> out;
  for (const Object& each : pods) out.emplace_back(each.name());
  return out;
}

kube::ReplicaSet replica_set(int32_t replicas) {
  kube::ReplicaSet set;
  set.replicas = replicas;
  set.selector = *kube::LabelSelector::parse("app=a");
  return set;
}

TEST(ReplicaSetPlan, Makes_what_is_missing_and_counts_neither_finished_nor_terminating_pods) {
  const std::vector<Object> owned = {pod({.name = "a"}), pod({.name = "b", .phase = "Failed"}),
                                     pod({.name = "c", .deleting = true})};
  EXPECT_EQ(plan_replica_set(replica_set(3), owned, {}).create, 2U);
  EXPECT_EQ(plan_replica_set(replica_set(1), owned, {}).create, 0U);
  EXPECT_EQ(plan_replica_set(replica_set(10'000), {}, {}).create, kBurstPods);
  kube::ReplicaSet leaving = replica_set(5);
  leaving.meta.deleted = kNow;
  EXPECT_EQ(plan_replica_set(leaving, owned, {}).create, 0U);
}

TEST(ReplicaSetPlan, Adopts_what_it_selects_and_releases_what_it_no_longer_selects) {
  Value other = pod({.name = "b"}).json();
  other.ref("metadata", "labels").set("app", "b");
  const auto plan = plan_replica_set(replica_set(2), {pod({.name = "a"}), Object(other)},
                                     {pod({.name = "o"}), Object(other)});
  EXPECT_THAT(names(plan.adopt), ElementsAre("o"));
  EXPECT_THAT(names(plan.release), ElementsAre("b"));
  EXPECT_EQ(plan.create, 0U);
}

TEST(ReplicaSetPlan, Deletes_unscheduled_then_pending_then_unready_then_younger_pods) {
  const std::vector<Object> owned = {
      pod({.name = "old", .age_seconds = 900}),
      pod({.name = "young", .age_seconds = 5}),
      pod({.name = "unready", .ready = false}),
      pod({.name = "pending", .phase = "Pending"}),
      pod({.name = "unscheduled", .phase = "Pending", .node = ""}),
  };
  EXPECT_THAT(names(plan_replica_set(replica_set(1), owned, {}).remove),
              ElementsAre("unscheduled", "pending", "unready", "young"));
}

TEST(ReplicaSetStatus, A_pod_is_available_once_it_was_ready_long_enough) {
  kube::ReplicaSet set = replica_set(3);
  set.min_ready_seconds = 60;
  const Value status = replica_set_status(
      set, {}, {pod({.name = "a"}), pod({.name = "b", .age_seconds = 10})}, kNow, "");
  EXPECT_EQ(status["replicas"].as_int(), 2);
  EXPECT_EQ(status["readyReplicas"].as_int(), 2);
  EXPECT_EQ(status["availableReplicas"].as_int(), 1);
}

// A set of `replicas` pods of which `available` are there.
OwnedSet owned_set(const std::string& name, int32_t replicas, int32_t available, bool current,
                   int64_t revision = 1, int32_t desired = 4) {
  OwnedSet out;
  out.set.meta.name = name;
  out.set.meta.created = kNow - base::seconds(1000 - revision);
  out.set.replicas = replicas;
  out.set.status_replicas = replicas;
  out.set.available_replicas = available;
  out.current = current;
  Value object = Value::object();
  Value& notes = object.ref("metadata", "annotations");
  notes.set(kRevision, std::to_string(revision));
  notes.set("deployment.kubernetes.io/desired-replicas", std::to_string(desired));
  notes.set("deployment.kubernetes.io/max-replicas", std::to_string(desired + 1));
  out.object = Object(object);
  return out;
}

kube::Deployment deployment(int32_t replicas, int32_t surge, int32_t unavailable) {
  kube::Deployment out;
  out.replicas = replicas;
  out.surge_max = surge;
  out.unavailable_max = unavailable;
  return out;
}

struct RolloutCase {
  const char* what;
  int32_t surge;
  int32_t unavailable;
  int32_t old_replicas;
  int32_t old_available;
  int32_t new_replicas;  // below 0: no new set yet
  int32_t new_available;
  int32_t create;  // below 0: none
  int32_t new_to;  // below 0: as it is
  int32_t old_to;
};

TEST(DeploymentPlan, Rolls_within_surge_and_unavailable) {
  const RolloutCase cases[] = {
      {"the new set takes the surge", 1, 1, 4, 4, -1, 0, 1, -1, -1},
      {"without surge it starts empty", 0, 1, 4, 4, -1, 0, 0, -1, -1},
      {"then the old set gives way", 0, 1, 4, 4, 0, 0, -1, -1, 3},
      {"and the new one grows", 0, 1, 3, 3, 0, 0, -1, 1, -1},
      {"nothing goes while the new pod is not available", 0, 1, 3, 3, 1, 0, -1, -1, -1},
      {"with surge alone old pods wait for new ones", 1, 0, 4, 4, 1, 0, -1, -1, -1},
      {"and go one by one", 1, 0, 4, 4, 1, 1, -1, -1, 3},
      {"broken old pods go first", 1, 1, 4, 1, 1, 0, -1, -1, 3},
      {"the last old pod goes", 1, 1, 1, 1, 4, 4, -1, -1, 0},
  };
  for (const RolloutCase& c : cases) {
    SCOPED_TRACE(c.what);
    std::vector<OwnedSet> sets = {owned_set("old", c.old_replicas, c.old_available, false, 1)};
    if (c.new_replicas >= 0) {
      sets.push_back(owned_set("new", c.new_replicas, c.new_available, true, 2));
    }
    const auto plan = plan_deployment(deployment(4, c.surge, c.unavailable), sets, true);
    EXPECT_EQ(plan.create.value_or(-1), c.create);
    std::vector<std::pair<size_t, int32_t>> resize;
    if (c.new_to >= 0) resize.emplace_back(1, c.new_to);
    if (c.old_to >= 0) resize.emplace_back(0, c.old_to);
    EXPECT_EQ(plan.resize, resize);
  }
}

TEST(DeploymentPlan, Recreate_waits_for_the_last_old_pod) {
  kube::Deployment recreate = deployment(4, 0, 0);
  recreate.recreate = true;
  EXPECT_THAT(plan_deployment(recreate, {owned_set("old", 4, 4, false)}, true).resize,
              ElementsAre(Pair(0, 0)));
  const std::vector<OwnedSet> empty = {owned_set("old", 0, 0, false)};
  EXPECT_FALSE(plan_deployment(recreate, empty, true).create);
  EXPECT_EQ(plan_deployment(recreate, empty, false).create, 4);
}

TEST(DeploymentPlan, A_change_of_size_during_a_rollout_is_shared) {
  const auto plan =
      plan_deployment(deployment(8, 2, 0),
                      {owned_set("old", 3, 3, false, 1), owned_set("new", 2, 2, true, 2)}, true);
  int32_t total = 0;
  for (const auto& [set, replicas] : plan.resize) total += replicas;
  EXPECT_EQ(total, 10);
  EXPECT_EQ(plan.resize.size(), 2U);
}

TEST(DeploymentPlan, A_paused_one_scales_but_does_not_roll) {
  kube::Deployment paused = deployment(4, 1, 1);
  paused.paused = true;
  EXPECT_FALSE(plan_deployment(paused, {owned_set("old", 4, 4, false)}, true).create);
  EXPECT_THAT(plan_deployment(paused, {owned_set("old", 4, 4, false)}, true).resize, IsEmpty());
  paused.replicas = 6;
  EXPECT_THAT(plan_deployment(paused, {owned_set("old", 4, 4, false)}, true).resize,
              ElementsAre(Pair(0, 6)));
}

TEST(DeploymentPlan, Old_revisions_past_the_limit_go_once_the_rollout_is_complete) {
  kube::Deployment limited = deployment(4, 1, 1);
  limited.revision_history_limit = 1;
  std::vector<OwnedSet> sets = {owned_set("r2", 0, 0, false, 2), owned_set("r1", 0, 0, false, 1),
                                owned_set("r3", 4, 4, true, 3)};
  EXPECT_THAT(plan_deployment(limited, sets, false).remove, ElementsAre(1));
  sets[2].set.available_replicas = 3;
  EXPECT_THAT(plan_deployment(limited, sets, false).remove, IsEmpty());
  EXPECT_EQ(current_revision(sets), 3);
  sets[2].current = false;
  EXPECT_EQ(current_revision(sets), 4);
}

kube::Job job(int32_t parallelism, std::optional<int32_t> completions) {
  kube::Job out;
  out.parallelism = parallelism;
  out.completions = completions;
  out.pod_template = parse(R"({"spec":{"restartPolicy":"Never"}})");
  return out;
}

JobPlan plan_of(const kube::Job& one, const Value& status, const std::vector<Object>& pods) {
  return plan_job(one, status, view_job(one, status, pods), pods, kNow);
}

TEST(JobPlan, Runs_no_more_pods_than_parallelism_or_than_completions_are_missing) {
  EXPECT_EQ(plan_of(job(3, 8), {}, {}).create.size(), 3U);
  EXPECT_EQ(plan_of(job(3, 2), {}, {}).create.size(), 2U);
  EXPECT_EQ(plan_of(job(3, 8), parse(R"({"succeeded":7})"), {}).create.size(), 1U);
  EXPECT_EQ(plan_of(job(3, std::nullopt), {}, {}).create.size(), 3U);
  EXPECT_EQ(plan_of(job(3, 8), {}, {pod({.name = "a"})}).create.size(), 2U);
  kube::Job suspended = job(3, 8);
  suspended.suspend = true;
  EXPECT_THAT(plan_of(suspended, {}, {}).create, IsEmpty());
  EXPECT_THAT(names(plan_of(suspended, {}, {pod({.name = "a"})}).release_remove), ElementsAre("a"));
}

TEST(JobPlan, A_work_queue_ends_with_its_last_pod_and_starts_none_after_a_success) {
  const Value one = parse(R"({"succeeded":1})");
  EXPECT_FALSE(plan_of(job(3, std::nullopt), one, {pod({.name = "a"})}).end);
  EXPECT_THAT(plan_of(job(3, std::nullopt), one, {pod({.name = "a"})}).create, IsEmpty());
  EXPECT_TRUE(plan_of(job(3, std::nullopt), one, {}).end);
}

TEST(JobPlan, A_failure_delays_the_next_pod_and_each_further_one_doubles_the_wait) {
  const auto failed = [](const char* name, int ago) {
    return pod({.name = name, .phase = "Failed", .ended_seconds_ago = ago});
  };
  const auto one = plan_of(job(1, 1), {}, {failed("a", 4)});
  EXPECT_THAT(one.create, IsEmpty());
  EXPECT_EQ(one.again, kNow + base::seconds(6));
  EXPECT_EQ(plan_of(job(1, 1), {}, {failed("a", 10)}).create.size(), 1U);
  EXPECT_EQ(plan_of(job(1, 1), {}, {failed("a", 30), failed("b", 5)}).again,
            kNow + base::seconds(15));
}

TEST(JobPlan, Ends_at_its_limits) {
  kube::Job limited = job(1, 1);
  limited.backoff_limit = 1;
  EXPECT_FALSE(plan_of(limited, parse(R"({"failed":1})"), {}).end);
  const auto over = plan_of(limited, parse(R"({"failed":2})"), {pod({.name = "a"})});
  ASSERT_TRUE(over.end);
  EXPECT_EQ(over.end->reason, "BackoffLimitExceeded");
  EXPECT_THAT(names(over.remove), ElementsAre("a"));
  kube::Job timed = job(1, 1);
  timed.active_deadline_seconds = 10;
  timed.started = kNow - base::seconds(9);
  EXPECT_EQ(plan_of(timed, {}, {}).again, kNow + base::seconds(1));
  timed.started = kNow - base::seconds(10);
  EXPECT_EQ(plan_of(timed, {}, {}).end->reason, "DeadlineExceeded");
}

// Between any two of these steps the controller may be killed.
TEST(JobStatus, Each_pod_is_counted_exactly_once) {
  const kube::Job one = job(2, 2);
  const std::vector<Object> tracked = {pod({.name = "a", .phase = "Succeeded", .tracked = true})};
  const std::vector<Object> released = {pod({.name = "a", .phase = "Succeeded"})};
  const JobView seen = view_job(one, {}, tracked);
  EXPECT_EQ(seen.succeeded, 1);
  const Value first = job_status(one, {}, seen, {}, kNow);
  EXPECT_EQ(first["succeeded"].as_int(), 0);
  EXPECT_EQ(first["uncountedTerminatedPods"]["succeeded"].at(0).as_string(), "uid-a");
  // The finalizer is still on: nothing changes.
  EXPECT_EQ(job_status(one, first, view_job(one, first, tracked), {}, kNow), first);
  // The finalizer is off, or the pod is gone: the uid becomes a number.
  for (const auto& pods : {released, std::vector<Object>()}) {
    const Value second = job_status(one, first, view_job(one, first, pods), {}, kNow);
    EXPECT_EQ(second["succeeded"].as_int(), 1);
    EXPECT_TRUE(second["uncountedTerminatedPods"].empty());
    EXPECT_EQ(job_status(one, second, view_job(one, second, pods), {}, kNow), second);
  }
}

TEST(JobStatus, The_last_word_waits_for_the_last_pod) {
  const kube::Job one = job(1, 1);
  const JobEnd end{true, "CompletionsReached", "done"};
  const auto complete = [&](const std::vector<Object>& pods) {
    const Value status = job_status(one, {}, view_job(one, {}, pods), end, kNow);
    EXPECT_EQ(condition_of(status, "SuccessCriteriaMet")["status"].as_string(), "True");
    return condition_of(status, "Complete")["status"].as_string() == "True";
  };
  EXPECT_FALSE(complete({pod({.name = "a"})}));
  EXPECT_FALSE(complete({pod({.name = "a", .deleting = true})}));
  EXPECT_FALSE(complete({pod({.name = "a", .phase = "Succeeded", .tracked = true})}));
  EXPECT_TRUE(complete({pod({.name = "a", .phase = "Succeeded"})}));
}

TEST(JobIndexes, Read_and_write_as_ranges) {
  for (const char* text : {"", "0", "0,1", "0-2", "1,3-5,7", "0-9,11"}) {
    EXPECT_EQ(format_indexes(parse_indexes(text)), text);
  }
  EXPECT_EQ(format_indexes(parse_indexes("x,2,-1,4-")), "2");
}

TEST(GarbagePlan, An_object_goes_with_its_last_owner) {
  using enum OwnerState;
  using Act = GarbagePlan::Act;
  EXPECT_EQ(plan_garbage({}, false).act, Act::kNothing);
  EXPECT_EQ(plan_garbage({{"a", kSolid}}, false).act, Act::kNothing);
  EXPECT_EQ(plan_garbage({{"a", kGone}}, false).act, Act::kDelete);
  EXPECT_EQ(plan_garbage({{"a", kGoing}}, false).act, Act::kDelete);
  EXPECT_EQ(plan_garbage({{"a", kGoing}}, true).act, Act::kDeleteForeground);
  const auto mixed = plan_garbage({{"a", kSolid}, {"b", kGone}}, true);
  EXPECT_EQ(mixed.act, Act::kDropReferences);
  EXPECT_THAT(mixed.drop, ElementsAre("b"));
}

TEST(NodePlan, Evicts_when_the_shortest_toleration_ends) {
  const Value taints = parse(
      R"([{"key":"node.kubernetes.io/unreachable","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"},
          {"key":"node.kubernetes.io/unreachable","effect":"NoSchedule"}])");
  const auto at = [&](std::string_view tolerations) {
    return eviction_time(taints, parse(tolerations), kNow);
  };
  EXPECT_EQ(at("[]"), kNow);
  EXPECT_EQ(at(R"([{"operator":"Exists"}])"), std::nullopt);
  EXPECT_EQ(at(R"([{"key":"node.kubernetes.io/unreachable","operator":"Exists",
                   "effect":"NoExecute","tolerationSeconds":300}])"),
            kNow + base::seconds(300));
  EXPECT_EQ(at(R"([{"operator":"Exists","effect":"NoSchedule"}])"), kNow);
  EXPECT_EQ(eviction_time(parse("[]"), {}, kNow), std::nullopt);
}

TEST(NodePlan, A_lost_node_turns_unknown_once) {
  const Value status = parse(
      R"({"conditions":[{"type":"Ready","status":"True"},{"type":"MemoryPressure","status":"False"}]})");
  const Value lost = lost_node_status(status, kNow);
  EXPECT_EQ(condition_of(lost, "Ready")["reason"].as_string(), "NodeStatusUnknown");
  EXPECT_EQ(condition_of(lost, "MemoryPressure")["status"].as_string(), "Unknown");
  EXPECT_EQ(condition_of(lost, "PIDPressure")["reason"].as_string(), "NodeStatusNeverUpdated");
  EXPECT_EQ(lost_node_status(lost, kNow + base::seconds(9)), lost);
}

TEST(NodePlan, A_pod_that_turned_ready_after_its_node_was_given_up_stays_ready) {
  const Value node = lost_node_status(parse("{}"), kNow - base::seconds(50));
  const Value before = pod({.name = "a", .age_seconds = 100})["status"];
  const Value after = pod({.name = "a", .age_seconds = 10})["status"];
  EXPECT_EQ(condition_of(lost_pod_status(before, node, kNow), "Ready")["status"].as_string(),
            "False");
  EXPECT_EQ(lost_pod_status(after, node, kNow), after);
}

}  // namespace
}  // namespace tessera::apiserver::controller
