#include "scheduler/runtime_history.h"

#include <gtest/gtest.h>

#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

using kube::Object;
using testing::yaml;

Run run(int start, int seconds) {
  const base::Time begin{base::seconds(1'000'000 + start).ns};
  return {begin, begin + base::seconds(seconds)};
}

std::optional<int64_t> seconds_of(const std::optional<base::Duration>& length) {
  return length ? std::optional(length->ns / 1'000'000'000) : std::nullopt;
}

TEST(RuntimeHistory, names_are_the_same_but_for_numbers_and_hashes_at_their_end) {
  EXPECT_EQ(stem_of("train"), "train");
  EXPECT_EQ(stem_of("train-28934710"), "train");
  EXPECT_EQ(stem_of("train-7f9c4"), "train");
  EXPECT_EQ(stem_of("train-xkcdz"), "train");
  EXPECT_EQ(stem_of("train12"), "train");
  EXPECT_EQ(stem_of("web-5d4f8c7b9d-2"), "web");
  EXPECT_EQ(stem_of("train-large"), "train-large");
  EXPECT_EQ(stem_of("123"), "123");
  EXPECT_EQ(stem_of("-1"), "-");
  EXPECT_EQ(stem_of(""), "");
}

TEST(RuntimeHistory, an_estimate_is_the_average_of_the_last_two_in_whatever_order_they_are_told) {
  const RunKeys keys{"o", "a"};
  RuntimeHistory history;
  EXPECT_FALSE(history.estimate(keys));
  history.add(keys, "g1", run(0, 5000));
  EXPECT_EQ(seconds_of(history.estimate(keys)), 5000);
  history.add(keys, "g3", run(20'000, 300));
  history.add(keys, "g2", run(10'000, 100));
  EXPECT_EQ(seconds_of(history.estimate(keys)), 200);
}

TEST(RuntimeHistory, the_members_of_a_gang_are_one_run_and_the_longest_counts) {
  const RunKeys keys{"o", "a"};
  RuntimeHistory history;
  history.add(keys, "g1", run(0, 1000));
  history.add(keys, "g2", run(5000, 200));
  history.add(keys, "g2", run(5000, 400));
  history.add(keys, "g2", run(5000, 300));
  EXPECT_EQ(seconds_of(history.estimate(keys)), 700);
}

TEST(RuntimeHistory, who_has_no_runs_is_expected_to_take_as_long_as_those_that_ask_for_the_same) {
  RuntimeHistory history;
  history.add({"o", "a"}, "g1", run(0, 1000));
  EXPECT_EQ(seconds_of(history.estimate({"other", "a"})), 1000);
  EXPECT_FALSE(history.estimate({"other", "b"}));
}

TEST(RuntimeHistory, estimates_stay_within_bounds_and_so_do_the_names_that_are_remembered) {
  RuntimeHistory history(4);
  history.add({"o1", "a1"}, "g1", run(0, 1));
  EXPECT_EQ(history.estimate({"o1", ""}), kEstimateMin);
  history.add({"o2", "a2"}, "g2", run(0, 100 * 86'400));
  EXPECT_EQ(history.estimate({"o2", ""}), kEstimateMax);
  history.add({"o3", "a3"}, "g3", run(0, 1000));
  EXPECT_EQ(history.size(), 4U);
  EXPECT_FALSE(history.estimate({"o1", "a1"})) << "the oldest is forgotten";
  EXPECT_TRUE(history.estimate({"o2", ""}));
}

Object finished(std::string_view more) {
  return Object(yaml(fmt::format(
      "{{metadata: {{name: train-x7k2p, namespace: ns, ownerReferences: [{{kind: Job, name: "
      "train-12, controller: true}}]}}, spec: {{containers: [{{resources: {{limits: "
      "{{nvidia.com/gpu: 2}}}}}}]}}, {}}}",
      more)));
}

constexpr const char* kTimes =
    "conditions: [{type: PodScheduled, status: \"True\", lastTransitionTime: "
    "\"2026-01-01T10:00:00Z\"}], containerStatuses: [{state: {terminated: {finishedAt: "
    "\"2026-01-01T10:20:00Z\"}}}, {state: {terminated: {finishedAt: \"2026-01-01T10:30:00Z\"}}}]";

TEST(RuntimeHistory,
     a_run_is_from_the_binding_to_the_last_container_of_a_pod_that_ended_by_itself) {
  const auto of = [&](std::string_view phase, std::string_view more = "") {
    return run_of(finished(fmt::format("status: {{phase: {}, {}{}}}", phase, kTimes, more)));
  };
  ASSERT_TRUE(of("Succeeded"));
  EXPECT_EQ(of("Succeeded")->end - of("Succeeded")->start, base::seconds(1800));
  EXPECT_TRUE(of("Failed"));
  EXPECT_FALSE(of("Running"));
  EXPECT_FALSE(run_of(finished("status: {phase: Succeeded}")));
  const Object evicted = finished(
      "status: {phase: Failed, conditions: [{type: DisruptionTarget, status: \"True\"}, {type: "
      "PodScheduled, status: \"True\", lastTransitionTime: \"2026-01-01T10:00:00Z\"}], "
      "containerStatuses: [{state: {terminated: {finishedAt: \"2026-01-01T10:20:00Z\"}}}]}");
  EXPECT_FALSE(run_of(evicted));
}

TEST(RuntimeHistory, keys_tell_namespaces_queues_owners_and_asks_apart) {
  const Object pod = finished("status: {}");
  EXPECT_EQ(run_keys(pod, "q").owner, "ns/q/owner/train");
  EXPECT_NE(run_keys(pod, "q").ask, run_keys(pod, "r").ask);
  const Object alike(
      yaml("{metadata: {name: other, namespace: ns}, spec: {containers: [{resources: {limits: "
           "{nvidia.com/gpu: 2}}}]}}"));
  const Object larger(
      yaml("{metadata: {name: other, namespace: ns}, spec: {containers: [{resources: {limits: "
           "{nvidia.com/gpu: 4}}}]}}"));
  EXPECT_EQ(run_keys(pod, "q").ask, run_keys(alike, "q").ask);
  EXPECT_NE(run_keys(pod, "q").ask, run_keys(larger, "q").ask);
  EXPECT_EQ(run_keys(alike, "q").owner, "ns/q/owner/other");
}

}  // namespace
}  // namespace tessera::scheduler
