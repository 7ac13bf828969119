// Jobs in full: policies, limits per index, replacement, other controllers. Plans from tables, and the controller on an Api
// in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/controller_job_plan.h"
#include "apiserver/controllers_fixture.h"

namespace tessera::apiserver {
namespace {

using controller::FailureMatch;
using json::Value;
using kube::Object;
using testing::ElementsAre;

constexpr base::Time kNow{1'767'225'600'000'000'000};

kube::Job job_with(std::string_view spec) {
  Value object = TestApi::parse(R"({"metadata":{"name":"j","namespace":"default","uid":"u"}})");
  object.set("spec", TestApi::parse(spec));
  const auto job = kube::decode_job(Object(object));
  EXPECT_TRUE(job);
  return job ? *job : kube::Job();
}

// A pod of index `index`, as `status` says; tracked.
Object pod_of(const std::string& name, std::string_view status, int index = -1,
              bool deleting = false) {
  Value out = TestApi::parse(R"({"metadata":{"namespace":"default"}})");
  Value& meta = out.ref("metadata");
  meta.set("name", name);
  meta.set("uid", "uid-" + name);
  meta.set("creationTimestamp", base::to_rfc3339(kNow - base::seconds(1000)));
  meta.ref("finalizers").push_back(controller::kJobFinalizer);
  if (deleting) meta.set("deletionTimestamp", base::to_rfc3339(kNow));
  if (index >= 0) {
    meta.ref("annotations").set(controller::kCompletionIndex, std::to_string(index));
  }
  out.set("status", TestApi::parse(status));
  return Object(out);
}

TEST(JobPolicy, The_first_rule_that_fits_says_what_a_failure_means) {
  const kube::Job job = job_with(R"({"podFailurePolicy":{"rules":[
      {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]},
      {"action":"FailJob","onExitCodes":{"containerName":"main","operator":"In","values":[42,43]}},
      {"action":"FailIndex","onExitCodes":{"operator":"In","values":[5]}},
      {"action":"Count","onExitCodes":{"operator":"NotIn","values":[7]}},
      {"action":"FailJob","onExitCodes":{"operator":"In","values":[7]}}]}})");
  const auto match = [&](std::string_view containers, std::string_view more = "") {
    return controller::match_failure(
        job, pod_of("p", fmt::format(R"({{"phase":"Failed",{}"containerStatuses":[{}]}})", more,
                                     containers)));
  };
  const auto ended = [](std::string_view name, int code) {
    return fmt::format(R"({{"name":"{}","state":{{"terminated":{{"exitCode":{}}}}}}})", name, code);
  };
  EXPECT_EQ(match(ended("main", 42)).fail_job,
            "Container main for pod default/p failed with exit code 42 matching FailJob rule at "
            "index 1");
  EXPECT_EQ(match(ended("side", 42)).fail_job, "");
  EXPECT_TRUE(match(ended("side", 42)).counts);
  EXPECT_TRUE(match(ended("side", 5)).fail_index);
  EXPECT_EQ(match(ended("main", 7)).fail_job,
            "Container main for pod default/p failed with exit code 7 matching FailJob rule at "
            "index 4");
  EXPECT_TRUE(match(ended("main", 0)).counts);
  const char* disrupted = R"("conditions":[{"type":"DisruptionTarget","status":"True"}],)";
  EXPECT_FALSE(match(ended("main", 42), disrupted).counts);
  EXPECT_TRUE(match("").counts);
}

TEST(JobPolicy, A_success_rule_is_met_by_its_indexes_or_by_enough_of_them) {
  const auto met = [](std::string_view rules, std::string_view succeeded) {
    const kube::Job job = job_with(fmt::format(
        R"({{"completions":10,"completionMode":"Indexed","successPolicy":{{"rules":[{}]}}}})",
        rules));
    return controller::match_success(job, controller::parse_indexes(succeeded)).value_or("");
  };
  EXPECT_EQ(met(R"({"succeededCount":2})", "4"), "");
  EXPECT_EQ(met(R"({"succeededCount":2})", "4,7"), "Matched rules at index 0");
  EXPECT_EQ(met(R"({"succeededIndexes":"0,2-3"})", "0,2,9"), "");
  EXPECT_EQ(met(R"({"succeededIndexes":"0,2-3"})", "0-3"), "Matched rules at index 0");
  EXPECT_EQ(met(R"({"succeededIndexes":"0-4","succeededCount":2})", "1,3"),
            "Matched rules at index 0");
  EXPECT_EQ(met(R"({"succeededIndexes":"0"},{"succeededCount":1})", "8"),
            "Matched rules at index 1");
  EXPECT_EQ(met(R"({"succeededCount":0})", ""), "");
}

TEST(JobPlanPolicies, Only_ended_pods_are_replaced_where_the_job_asks_so) {
  for (const char* policy : {"TerminatingOrFailed", "Failed"}) {
    const kube::Job job = job_with(
        fmt::format(R"({{"parallelism":2,"completions":2,"podReplacementPolicy":"{}"}})", policy));
    const std::vector<Object> pods = {pod_of("a", R"({"phase":"Running"})"),
                                      pod_of("b", R"({"phase":"Running"})", -1, true)};
    const auto view = controller::view_job(job, {}, pods);
    EXPECT_EQ(view.terminating, 1);
    const bool soon = std::string_view(policy) == "TerminatingOrFailed";
    EXPECT_EQ(view.failed, soon ? 1 : 0);
    const auto plan = controller::plan_job(job, {}, view, pods, kNow + base::seconds(10));
    EXPECT_EQ(plan.create.size(), soon ? 1U : 0U);
  }
}

TEST(JobPlanPolicies, The_wait_after_a_failure_outlives_the_pod) {
  const kube::Job job = job_with(R"({"parallelism":1,"completions":1})");
  controller::JobHistory history;
  history.note(job, {pod_of("a", R"({"phase":"Running"})", -1, true)});
  const auto plan =
      controller::plan_job(job, {}, controller::view_job(job, {}, {}), {}, kNow, history);
  EXPECT_EQ(plan.create.size(), 0U);
  EXPECT_EQ(plan.again, kNow + base::seconds(10));
}

TEST(JobPlanPolicies, An_index_waits_for_itself_and_passes_its_failures_on) {
  const kube::Job job = job_with(
      R"({"parallelism":3,"completions":3,"completionMode":"Indexed","backoffLimitPerIndex":2,
          "backoffLimit":2147483647})");
  Value failed = pod_of("a", R"({"phase":"Failed","containerStatuses":[]})", 1).json();
  failed.ref("metadata", "annotations").set("batch.kubernetes.io/job-index-failure-count", "1");
  failed.ref("metadata").set("creationTimestamp", base::to_rfc3339(kNow - base::seconds(5)));
  const std::vector<Object> pods = {Object(failed)};
  const auto view = controller::view_job(job, {}, pods);
  EXPECT_EQ(view.failed, 1);
  EXPECT_TRUE(view.to_release.empty());  // until its successor is there
  const auto plan = controller::plan_job(job, {}, view, pods, kNow);
  EXPECT_THAT(plan.create, ElementsAre(0, 2));
  EXPECT_EQ(plan.again, kNow + base::seconds(15));
  base::Random random(1);
  const Value next = controller::job_pod(
      Object(TestApi::parse(R"({"metadata":{"name":"j","namespace":"default"}})")), job,
      *Kinds::builtin().find(kube::Gvr{"batch", "v1", "jobs"}), 1, view.delayed.at(1), random);
  EXPECT_EQ(
      next["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"].as_string(),
      "2");
  EXPECT_EQ(next["spec"]["hostname"].as_string(), "j-1");
}

std::string condition(const Value& object, std::string_view type, const char* field = "status") {
  for (const Value& each : object["status"]["conditions"].items()) {
    if (each["type"].as_string() == type) return each[field].str();
  }
  return {};
}

std::string index_at(const Value& pod) {
  return pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"].str();
}

Value indexed_job(int parallelism, int completions) {
  Value job = TestCluster::job("j", parallelism, completions);
  job.ref("spec").set("completionMode", "Indexed");
  return job;
}

Value run_job(TestCluster& cluster, const Value& job, int seconds) {
  EXPECT_TRUE(cluster.api.create("jobs.batch", job));
  cluster.run(base::seconds(seconds));
  return cluster.get("jobs.batch", "j");
}

TEST(Jobs, An_exit_code_can_end_the_job) {
  TestCluster cluster;
  cluster.ends = [](const Value& pod) { return index_at(pod) == "1" ? "Failed" : ""; };
  cluster.exit_code = [](const Value&) { return 42; };
  Value job = indexed_job(3, 3);
  job.ref("spec").set(
      "podFailurePolicy",
      TestApi::parse(
          R"({"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[42]}}]})"));
  job = run_job(cluster, job, 20);
  EXPECT_EQ(condition(job, "Failed", "reason"), "PodFailurePolicy") << job.dump();
  EXPECT_EQ(condition(job, "FailureTarget", "reason"), "PodFailurePolicy");
  EXPECT_THAT(condition(job, "Failed", "message"), testing::HasSubstr("rule at index 0"));
  EXPECT_EQ(job["status"]["failed"].as_int(), 3);
  EXPECT_EQ(job["status"]["terminating"].as_int(), 0);
  EXPECT_FALSE(job["status"].contains("active"));
}

TEST(Jobs, Ignored_failures_do_not_count) {
  TestCluster cluster;
  int left = 4;
  cluster.ends = [&](const Value&) { return left-- > 0 ? "Failed" : "Succeeded"; };
  Value job = TestCluster::job("j", 1, 1);
  job.ref("spec").set("backoffLimit", 0);
  job.ref("spec").set(
      "podFailurePolicy",
      TestApi::parse(
          R"({"rules":[{"action":"Ignore","onExitCodes":{"operator":"NotIn","values":[9]}}]})"));
  job = run_job(cluster, job, 300);
  EXPECT_EQ(condition(job, "Complete"), "True") << job.dump();
  EXPECT_EQ(job["status"]["failed"].as_int(), 0);
  EXPECT_EQ(cluster.list("pods").size(), 5U);
}

TEST(Jobs, Each_index_has_its_own_limit) {
  TestCluster cluster;
  cluster.ends = [](const Value& pod) { return index_at(pod) == "1" ? "Failed" : "Succeeded"; };
  Value job = indexed_job(3, 4);
  job.ref("spec").set("backoffLimitPerIndex", 1);
  job = run_job(cluster, job, 60);
  EXPECT_EQ(job["status"]["completedIndexes"].as_string(), "0,2,3") << job.dump();
  EXPECT_EQ(job["status"]["failedIndexes"].as_string(), "1");
  EXPECT_EQ(job["status"]["failed"].as_int(), 2);
  EXPECT_EQ(condition(job, "Failed", "reason"), "FailedIndexes");
  for (const Value& pod : cluster.list("pods")) EXPECT_TRUE(pod["metadata"]["finalizers"].empty());
}

TEST(Jobs, Too_many_failed_indexes_end_the_job_at_once) {
  TestCluster cluster;
  cluster.ends = [](const Value& pod) { return index_at(pod) < "2" ? "Failed" : ""; };
  Value job = indexed_job(4, 4);
  job.ref("spec").set("backoffLimitPerIndex", 3);
  job.ref("spec").set("maxFailedIndexes", 1);
  job.ref("spec").set(
      "podFailurePolicy",
      TestApi::parse(
          R"({"rules":[{"action":"FailIndex","onExitCodes":{"operator":"In","values":[1]}}]})"));
  job = run_job(cluster, job, 20);
  EXPECT_EQ(condition(job, "Failed", "reason"), "MaxFailedIndexesExceeded") << job.dump();
  EXPECT_EQ(job["status"]["failedIndexes"].as_string(), "0,1");
}

TEST(Jobs, Pods_that_go_with_a_job_that_failed_give_up_no_index) {
  TestCluster cluster;
  cluster.ends = [](const Value& pod) { return index_at(pod) == "2" ? "Failed" : ""; };
  Value job = indexed_job(3, 3);
  job.ref("spec").set("backoffLimitPerIndex", 0);
  job.ref("spec").set("maxFailedIndexes", 0);
  job = run_job(cluster, job, 20);
  EXPECT_EQ(condition(job, "Failed", "reason"), "MaxFailedIndexesExceeded") << job.dump();
  EXPECT_EQ(job["status"]["failedIndexes"].as_string(), "2");
  EXPECT_EQ(job["status"]["failed"].as_int(), 3);
}

TEST(Jobs, A_success_policy_ends_the_job_and_stops_the_rest) {
  TestCluster cluster;
  cluster.ends = [](const Value& pod) { return index_at(pod) == "0" ? "Succeeded" : ""; };
  Value job = indexed_job(3, 3);
  job.ref("spec").set("successPolicy", TestApi::parse(R"({"rules":[{"succeededIndexes":"0"}]})"));
  job = run_job(cluster, job, 20);
  EXPECT_EQ(condition(job, "SuccessCriteriaMet", "reason"), "SuccessPolicy") << job.dump();
  EXPECT_EQ(condition(job, "Complete", "message"), "Matched rules at index 0");
  EXPECT_EQ(job["status"]["succeeded"].as_int(), 1);
  EXPECT_EQ(job["status"]["failed"].as_int(), 0);
  EXPECT_EQ(cluster.list("pods").size(), 1U);
}

TEST(Jobs, An_indexed_job_grows_and_shrinks) {
  TestCluster cluster;
  cluster.ends = [](const Value&) { return std::string(); };
  run_job(cluster, indexed_job(4, 4), 5);
  const auto resize = [&](int size) {
    ASSERT_TRUE(cluster.api.patch(
        "jobs.batch", "default", "j",
        fmt::format(R"({{"spec":{{"parallelism":{},"completions":{}}}}})", size, size)));
    cluster.run(base::seconds(5));
    std::set<std::string> indexes;
    for (const Value& pod : cluster.list("pods")) indexes.insert(index_at(pod));
    EXPECT_EQ(indexes.size(), static_cast<size_t>(size));
    EXPECT_EQ(*indexes.rbegin(), std::to_string(size - 1));
  };
  resize(2);
  resize(5);
  cluster.ends = [](const Value&) { return std::string("Succeeded"); };
  cluster.run(base::seconds(10));
  const Value job = cluster.get("jobs.batch", "j");
  EXPECT_EQ(job["status"]["completedIndexes"].as_string(), "0-4");
  EXPECT_EQ(job["status"]["failed"].as_int(), 0);
}

TEST(Jobs, What_another_controller_manages_is_left_alone) {
  TestCluster cluster;
  Value job = TestCluster::job("j", 1, 1);
  job.ref("spec").set("managedBy", "example.com/other");
  job = run_job(cluster, job, 10);
  EXPECT_TRUE(cluster.list("pods").empty());
  EXPECT_TRUE(job["status"].empty()) << job.dump();
}

TEST(Jobs, An_adopted_pod_counts) {
  TestCluster cluster;
  cluster.ends = [](const Value&) { return std::string(); };
  Value job = TestCluster::job("j", 1, 1);
  job.ref("spec").set("manualSelector", true);
  job.ref("spec", "selector", "matchLabels").set("app", "j");
  Value pod = TestApi::pod("orphan");
  pod.ref("metadata", "labels").set("app", "j");
  pod.ref("spec").set("restartPolicy", "Never");
  ASSERT_TRUE(cluster.api.create("pods", pod));
  run_job(cluster, job, 5);
  pod = cluster.get("pods", "orphan");
  EXPECT_EQ(cluster.list("pods").size(), 1U);
  EXPECT_EQ(pod["metadata"]["finalizers"].at(0).as_string(), "batch.kubernetes.io/job-tracking");
  cluster.ends = [](const Value&) { return std::string("Succeeded"); };
  cluster.run(base::seconds(5));
  EXPECT_EQ(condition(cluster.get("jobs.batch", "j"), "Complete"), "True");
}

TEST(Jobs, A_disrupted_pod_is_replaced_without_a_failure_where_the_policy_says_so) {
  TestCluster cluster;
  cluster.ends = [](const Value&) { return std::string(); };
  Value job = TestCluster::job("j", 1, 1);
  job.ref("spec").set("backoffLimit", 0);
  job.ref("spec").set(
      "podFailurePolicy",
      TestApi::parse(
          R"({"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]})"));
  run_job(cluster, job, 5);
  const std::string first = cluster.list("pods")[0]["metadata"]["name"].str();
  auto evict = TestApi::request(
      kube::Verb::kCreate, "pods", "default", first,
      TestApi::parse(R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{}})"));
  evict.subresource = "eviction";
  ASSERT_TRUE(cluster.api.reply(std::move(evict)).result);
  // The kubelet says how it ended.
  ASSERT_TRUE(cluster.api.patch("pods", "default", first, R"({"status":{"phase":"Failed"}})",
                                kube::PatchType::kMerge, "status"));
  cluster.run(base::seconds(30));
  job = cluster.get("jobs.batch", "j");
  EXPECT_EQ(job["status"]["failed"].as_int(), 0) << job.dump();
  EXPECT_EQ(job["status"]["active"].as_int(), 1);
  EXPECT_EQ(condition(job, "Failed"), "");
}

// Every index has at most one pod at work, and ends as its code says, whatever the network does and whenever the
// controllers die.
TEST(Jobs, Indexes_end_as_they_must_on_a_bad_network_and_over_restarts) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    TestCluster cluster(seed, 0.04);
    base::Random random(seed);
    cluster.ends = [](const Value& pod) { return index_at(pod) == "3" ? "Failed" : "Succeeded"; };
    Value job = indexed_job(3, 6);
    job.ref("spec").set("backoffLimitPerIndex", seed % 2);
    ASSERT_TRUE(cluster.api.create("jobs.batch", job));
    cluster.check = [&] {
      std::set<std::string> busy;
      for (const Value& pod : cluster.list("pods")) {
        const std::string phase = pod["status"]["phase"].str();
        if (phase == "Succeeded" || phase == "Failed" ||
            pod["metadata"].contains("deletionTimestamp")) {
          continue;
        }
        EXPECT_TRUE(busy.insert(index_at(pod)).second) << index_at(pod);
      }
      EXPECT_LE(busy.size(), 3U);
      if (random.chance(0.01)) cluster.restart();
    };
    cluster.run(base::seconds(120));
    cluster.flaky.faults = 0;
    cluster.run(base::seconds(120));
    job = cluster.get("jobs.batch", "j");
    EXPECT_EQ(job["status"]["completedIndexes"].as_string(), "0-2,4,5") << job.dump();
    EXPECT_EQ(job["status"]["failedIndexes"].as_string(), "3");
    EXPECT_EQ(job["status"]["failed"].as_int(), static_cast<int64_t>(seed % 2) + 1);
    EXPECT_EQ(condition(job, "Failed", "reason"), "FailedIndexes");
  }
}

}  // namespace
}  // namespace tessera::apiserver
