// CronJobs: plans from tables, and the controller on an Api in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/controller_cron_job_plan.h"
#include "apiserver/controllers_fixture.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using kube::Object;
using testing::ElementsAre;
using testing::IsEmpty;

base::Time at(std::string_view text) {
  const auto time = base::parse_rfc3339(text);
  EXPECT_TRUE(time) << text;
  return time.value_or(base::Time{});
}

Value cron_job(std::string_view schedule, std::string_view created = "2026-01-01T00:00:30Z") {
  Value out = TestApi::parse(
      R"({"apiVersion":"batch/v1","kind":"CronJob",
          "metadata":{"name":"c","namespace":"default","uid":"u1"},
          "spec":{"jobTemplate":{"metadata":{"labels":{"l":"1"}},"spec":{}}}})");
  out.ref("metadata").set("creationTimestamp", created);
  out.ref("spec").set("schedule", schedule);
  Value spec = TestCluster::job("x", 1, 1)["spec"];
  out.ref("spec", "jobTemplate").set("spec", std::move(spec));
  return out;
}

Value job_of(const std::string& name, std::string_view end, std::string_view time) {
  Value out = Value::object({{"kind", "Job"}});
  out.ref("metadata").set("name", name);
  out.ref("metadata").set("uid", "uid-" + name);
  out.ref("status").set("startTime", time);
  if (end.empty()) return out;
  out.ref("status").set("completionTime", time);
  out.ref("status", "conditions").push_back(Value::object({{"type", end}, {"status", "True"}}));
  return out;
}

controller::CronPlan plan_at(const Value& cron, std::string_view now,
                             const std::vector<Value>& jobs = {}) {
  std::vector<Object> all;
  for (const Value& job : jobs) all.emplace_back(job);
  return controller::plan_cron_job(Object(cron), all, {}, at(now));
}

std::string start_of(const controller::CronPlan& plan) {
  return plan.start ? base::to_rfc3339(*plan.start) : "";
}

std::vector<std::string> reasons(const controller::CronPlan& plan) {
  std::vector<std::string> out;
  for (const auto& event : plan.events) out.push_back(event.reason);
  return out;
}

TEST(CronPlan, Starts_the_most_recent_time_that_is_due_and_looks_again_at_the_next) {
  const struct {
    const char* schedule;
    const char* now;
    const char* start;
    const char* look;
  } cases[] = {
      {"* * * * *", "2026-01-01T00:00:59Z", "", "2026-01-01T00:01:00Z"},
      {"* * * * *", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"},
      {"*/5 * * * *", "2026-01-01T00:12:01Z", "2026-01-01T00:10:00Z", "2026-01-01T00:15:00Z"},
      // Guessed from the step between the first two: a time before a longer pause is not found.
      {"0 6 * * 1-5", "2026-01-02T12:00:00Z", "2026-01-02T06:00:00Z", "2026-01-05T06:00:00Z"},
      {"0 6 * * 1-5", "2026-01-04T12:00:00Z", "", "2026-01-05T06:00:00Z"},
      {"@every 90s", "2026-01-01T00:10:00Z", "2026-01-01T00:09:30Z", "2026-01-01T00:11:00Z"},
      {"30 6-16/4 * * 1-5", "2026-01-06T11:00:00Z", "2026-01-06T10:30:00Z", "2026-01-06T14:30:00Z"},
  };
  for (const auto& c : cases) {
    const auto plan = plan_at(cron_job(c.schedule), c.now);
    EXPECT_EQ(start_of(plan), c.start) << c.schedule;
    ASSERT_TRUE(plan.look_at) << c.schedule;
    EXPECT_EQ(*plan.look_at, at(c.look) + base::millis(100)) << c.schedule;
  }
}

TEST(CronPlan, The_zone_of_the_schedule_decides_and_names_the_time_in_it) {
  Value cron = cron_job("30 4 * * *");
  cron.ref("spec").set("timeZone", "Asia/Kolkata");
  const auto plan = plan_at(cron, "2026-01-01T23:00:00Z");
  EXPECT_EQ(start_of(plan), "2026-01-01T23:00:00Z");
  const Value job = controller::cron_job_of(
      Object(cron), *Kinds::builtin().find(kube::Gvr{"batch", "v1", "cronjobs"}), *plan.start);
  EXPECT_EQ(job["metadata"]["name"].as_string(), "c-29455140");
  EXPECT_EQ(
      job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].as_string(),
      "2026-01-02T04:30:00+05:30");
  EXPECT_EQ(job["metadata"]["labels"]["l"].as_string(), "1");
  EXPECT_TRUE(job["metadata"]["ownerReferences"].at(0)["controller"].as_bool());
  cron.ref("spec").set("timeZone", "Mars/Base");
  EXPECT_THAT(reasons(plan_at(cron, "2026-01-01T23:00:00Z")), ElementsAre("UnknownTimeZone"));
}

TEST(CronPlan, A_clock_that_skips_or_repeats_an_hour) {
  Value cron = cron_job("30 2 * * *", "2026-03-28T12:00:00Z");
  cron.ref("spec").set("timeZone", "Europe/Berlin");
  // 02:30 does not come on the 29th of March.
  EXPECT_EQ(start_of(plan_at(cron, "2026-03-29T12:00:00Z")), "");
  EXPECT_EQ(start_of(plan_at(cron, "2026-03-30T12:00:00Z")), "2026-03-30T00:30:00Z");
  // And comes twice on the 25th of October.
  cron.ref("metadata").set("creationTimestamp", "2026-10-24T12:00:00Z");
  EXPECT_EQ(start_of(plan_at(cron, "2026-10-25T00:45:00Z")), "2026-10-25T00:30:00Z");
  EXPECT_EQ(start_of(plan_at(cron, "2026-10-25T01:45:00Z")), "2026-10-25T01:30:00Z");
}

TEST(CronPlan, Gives_up_what_is_later_than_the_deadline) {
  Value cron = cron_job("0 * * * *");
  cron.ref("spec").set("startingDeadlineSeconds", 100);
  EXPECT_EQ(start_of(plan_at(cron, "2026-01-01T05:01:39Z")), "2026-01-01T05:00:00Z");
  const auto late = plan_at(cron, "2026-01-01T05:01:41Z");
  EXPECT_EQ(start_of(late), "");
  EXPECT_EQ(*late.look_at, at("2026-01-01T06:00:00Z") + base::millis(100));
}

TEST(CronPlan, Says_that_very_many_were_missed) {
  const Value cron = cron_job("* * * * *");
  EXPECT_THAT(reasons(plan_at(cron, "2026-01-01T01:40:00Z")), IsEmpty());
  const auto plan = plan_at(cron, "2026-01-01T01:42:00Z");
  EXPECT_THAT(reasons(plan), ElementsAre("TooManyMissedTimes"));
  EXPECT_EQ(start_of(plan), "2026-01-01T01:42:00Z");
}

TEST(CronPlan, No_time_is_served_twice_whatever_the_clock_does) {
  Value cron = cron_job("* * * * *");
  cron.ref("status").set("lastScheduleTime", "2026-01-01T00:05:00Z");
  EXPECT_EQ(start_of(plan_at(cron, "2026-01-01T00:05:30Z")), "");
  // The clock was put back: nothing before it has caught up.
  const auto back = plan_at(cron, "2025-12-31T00:00:00Z");
  EXPECT_EQ(start_of(back), "");
  EXPECT_EQ(*back.look_at, at("2026-01-01T00:06:00Z") + base::millis(100));
  // And forward: one job, of the last time.
  EXPECT_EQ(start_of(plan_at(cron, "2030-01-01T00:00:10Z")), "2030-01-01T00:00:00Z");
}

TEST(CronPlan, A_schedule_without_a_date_says_so_and_a_suspended_one_nothing) {
  const auto never = plan_at(cron_job("0 0 31 2 *"), "2027-01-01T00:00:00Z");
  EXPECT_THAT(reasons(never), ElementsAre("InvalidSchedule"));
  EXPECT_FALSE(never.look_at);
  Value cron = cron_job("* * * * *");
  cron.ref("spec").set("suspend", true);
  const auto plan = plan_at(cron, "2026-01-01T01:00:00Z");
  EXPECT_FALSE(plan.start || plan.look_at);
}

TEST(CronPlan, Keeps_the_newest_of_each_end_and_notes_the_last_success) {
  Value cron = cron_job("0 0 1 1 *");
  cron.ref("spec").set("successfulJobsHistoryLimit", 1);
  cron.ref("spec").set("failedJobsHistoryLimit", 0);
  const std::vector<Value> jobs = {job_of("b", "Complete", "2026-01-01T02:00:00Z"),
                                   job_of("a", "Complete", "2026-01-01T01:00:00Z"),
                                   job_of("f", "Failed", "2026-01-01T01:00:00Z"),
                                   job_of("r", "", "2026-01-01T03:00:00Z")};
  const auto plan = plan_at(cron, "2026-01-01T04:00:00Z", jobs);
  std::vector<std::string> gone;
  for (const Object& job : plan.expired) gone.emplace_back(job.name());
  EXPECT_THAT(gone, ElementsAre("a", "f"));
  EXPECT_EQ(plan.status["lastSuccessfulTime"].as_string(), "2026-01-01T02:00:00Z");
  EXPECT_THAT(reasons(plan), ElementsAre("UnexpectedJob"));
}

size_t job_count(TestCluster& cluster) {
  return cluster.list("jobs.batch").size();
}

Value make_cron(TestCluster& cluster, std::string_view policy) {
  Value cron = cron_job("* * * * *");
  cron.ref("metadata").erase("creationTimestamp");
  cron.ref("metadata").erase("uid");
  cron.ref("spec").set("concurrencyPolicy", policy);
  EXPECT_TRUE(cluster.api.create("cronjobs.batch", cron));
  return cron;
}

TEST(CronJobs, Run_at_their_times_and_keep_a_short_history) {
  TestCluster cluster;
  make_cron(cluster, "Allow");
  cluster.run(base::seconds(50));
  EXPECT_EQ(job_count(cluster), 0U);
  cluster.run(base::seconds(15));
  EXPECT_EQ(job_count(cluster), 1U);
  cluster.run(base::seconds(600), base::seconds(1));
  EXPECT_EQ(job_count(cluster), 3U);
  const Value cron = cluster.get("cronjobs.batch", "c");
  EXPECT_EQ(cron["status"]["lastScheduleTime"].as_string(), "2026-01-01T00:11:00Z") << cron.dump();
  EXPECT_GE(cron["status"]["lastSuccessfulTime"].as_string(), "2026-01-01T00:11:00Z");
  EXPECT_TRUE(cron["status"]["active"].empty());
}

TEST(CronJobs, Their_policy_says_what_becomes_of_the_job_before) {
  for (const char* policy : {"Allow", "Forbid", "Replace"}) {
    TestCluster cluster;
    cluster.ends = [](const Value&) { return std::string(); };
    make_cron(cluster, policy);
    cluster.run(base::seconds(200), base::seconds(1));
    const bool all = std::string_view(policy) == "Allow";
    EXPECT_EQ(job_count(cluster), all ? 3U : 1U) << policy;
    const Value cron = cluster.get("cronjobs.batch", "c");
    ASSERT_EQ(cron["status"]["active"].size(), all ? 3U : 1U) << policy;
    const bool first = std::string_view(policy) == "Forbid";
    EXPECT_EQ(cron["status"]["lastScheduleTime"].as_string(),
              first ? "2026-01-01T00:01:00Z" : "2026-01-01T00:03:00Z");
    const Value& active = cron["status"]["active"];
    EXPECT_EQ(active.at(active.size() - 1)["name"].as_string(),
              first ? "c-29453761" : "c-29453763");
  }
}

TEST(CronJobs, A_suspended_one_starts_nothing_and_goes_on_when_resumed) {
  TestCluster cluster;
  make_cron(cluster, "Allow");
  const auto suspend = [&](const char* patch) {
    ASSERT_TRUE(cluster.api.patch("cronjobs.batch", "default", "c", patch));
  };
  suspend(R"({"spec":{"suspend":true}})");
  cluster.run(base::seconds(150), base::seconds(1));
  EXPECT_EQ(job_count(cluster), 0U);
  suspend(R"({"spec":{"suspend":false}})");
  cluster.run(base::seconds(5));
  EXPECT_EQ(job_count(cluster), 1U);
}

// Whatever the network loses and whenever the controllers die: each minute has at most one job.
TEST(CronJobs, No_minute_has_two_jobs_on_a_bad_network_and_over_restarts) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    TestCluster cluster(seed, 0.04);
    base::Random random(seed);
    Value cron = make_cron(cluster, seed % 2 == 0 ? "Replace" : "Allow");
    ASSERT_TRUE(cluster.api.patch("cronjobs.batch", "default", "c",
                                  R"({"spec":{"successfulJobsHistoryLimit":100}})"));
    cluster.check = [&] {
      if (random.chance(0.02)) cluster.restart();
    };
    cluster.run(base::seconds(300), base::seconds(1));
    cluster.flaky.faults = 0;
    cluster.run(base::seconds(120), base::seconds(1));
    std::set<std::string> times;
    for (const Value& job : cluster.list("jobs.batch")) {
      EXPECT_TRUE(
          times
              .insert(
                  job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
                      .str())
              .second);
    }
    EXPECT_LE(times.size(), 7U);
    EXPECT_GE(times.size(), 3U);
    EXPECT_TRUE(cluster.get("cronjobs.batch", "c")["status"]["active"].empty());
  }
}

}  // namespace
}  // namespace tessera::apiserver
