#include <gtest/gtest.h>

#include "apiserver/cron_schedule.h"
#include "apiserver/kinds_cases.h"
#include "apiserver/time_zones.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using namespace testing_kinds;

constexpr const char* kCronJob = R"(
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}})";

TEST(CronJob, GetsItsDefaults) {
  const Value spec = stored(kind_of("batch", "CronJob"), kCronJob)["spec"];
  EXPECT_EQ(spec["concurrencyPolicy"].as_string(), "Allow");
  EXPECT_EQ(spec["suspend"], Value(false));
  EXPECT_EQ(spec["successfulJobsHistoryLimit"], Value(3));
  EXPECT_EQ(spec["failedJobsHistoryLimit"], Value(1));
  const Value& job = spec["jobTemplate"]["spec"];
  EXPECT_FALSE(job.contains("completions")) << "the job gets them";
  EXPECT_EQ(job["template"]["spec"]["dnsPolicy"].as_string(), "ClusterFirst");
}

TEST(CronJob, RefusesWhatCannotWork) {
  expect_rules(
      kind_of("batch", "CronJob"), kCronJob,
      {{"{spec: {schedule: \"\"}}", "spec.schedule: Required value"},
       {"{spec: {schedule: every day}}",
        "spec.schedule: Invalid value: \"every day\": expected exactly 5 fields, found 2: [every "
        "day]"},
       {"{spec: {schedule: \"TZ=UTC 0 3 * * *\"}}",
        "spec.schedule: Invalid value: \"TZ=UTC 0 3 * * *\": cannot use TZ or CRON_TZ in schedule, "
        "use timeZone field instead"},
       {"{spec: {timeZone: Europe/Berlin}}", ""},
       {"{spec: {timeZone: \"\"}}",
        "spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string"},
       {"{spec: {timeZone: Mars/Olympus}}",
        "spec.timeZone: Invalid value: \"Mars/Olympus\": unknown time zone Mars/Olympus"},
       {"{spec: {timeZone: ../etc/passwd}}", "unknown time zone ../etc/passwd"},
       {"{spec: {timeZone: LOCAL}}", "timeZone must be an explicit time zone as defined in"},
       {"{spec: {concurrencyPolicy: Maybe}}",
        "spec.concurrencyPolicy: Unsupported value: \"Maybe\": supported values: \"Allow\", "
        "\"Forbid\", \"Replace\""},
       {"{spec: {startingDeadlineSeconds: -1}}", "spec.startingDeadlineSeconds: Invalid value: -1"},
       {"{spec: {successfulJobsHistoryLimit: -1}}",
        "spec.successfulJobsHistoryLimit: Invalid value: -1"},
       {"{spec: {failedJobsHistoryLimit: -1}}", "spec.failedJobsHistoryLimit: Invalid value: -1"},
       {"{spec: {jobTemplate: {spec: {selector: {matchLabels: {a: b}}}}}}",
        "spec.jobTemplate.spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: "
        "`selector` will be auto-generated"},
       {"{spec: {jobTemplate: {spec: {manualSelector: true}}}}",
        "spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "
        "\"nil\", \"false\""},
       {"{spec: {jobTemplate: {spec: {backoffLimit: -1}}}}",
        "spec.jobTemplate.spec.backoffLimit: Invalid value: -1"},
       {"{metadata: {name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeefff}}",
        "must be no more than 52 characters"}});
}

struct CronCase {
  const char* text;
  const char* error;  // "" where it can be read
};

TEST(CronSchedule, SaysWhatIsWrong) {
  const CronCase cases[] = {
      {"*/5 * * * *", ""},
      {"0 3 1,15 * mon-fri", ""},
      {"0 3 ? JAN,dec 0/2", ""},
      {"@daily", ""},
      {"@every 1h30m", ""},
      {"TZ=Europe/Berlin 0 3 * * *", ""},
      {"CRON_TZ=UTC @hourly", ""},
      {"TZ=UTC", "schedule is missing after the time zone: TZ=UTC"},
      {"TZ=Nowhere 0 3 * * *", "provided bad location Nowhere: unknown time zone Nowhere"},
      {"@sometimes", "unrecognized descriptor: @sometimes"},
      {"@every soon", "failed to parse duration @every soon: "},
      {"60 * * * *", "end of range (60) above maximum (59): 60"},
      {"* * 0 * *", "beginning of range (0) below minimum (1): 0"},
      {"9-5 * * * *", "beginning of range (9) beyond end of range (5): 9-5"},
      {"*/0 * * * *", "step of range should be a positive number: */0"},
      {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
      {"1/2/3 * * * *", "too many slashes: 1/2/3"},
      {"a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"},
      {"99999999999999999999 * * * *", "value out of range"},
      {"* * * * */-2", "negative number (-2) not allowed: -2"},
      {"* * * *", "expected exactly 5 fields, found 4: [* * * *]"},
      {"", "empty spec string"},
  };
  for (const CronCase& c : cases) {
    const auto parsed = CronSchedule::parse(c.text);
    if (std::string_view(c.error).empty()) {
      EXPECT_TRUE(parsed) << c.text << ": " << (parsed ? "" : parsed.error().message);
    } else {
      ASSERT_FALSE(parsed) << c.text;
      EXPECT_THAT(parsed.error().message, testing::HasSubstr(c.error)) << c.text;
    }
  }
}

TEST(CronSchedule, ReadsItsMasks) {
  const auto schedule = CronSchedule::parse("*/15 3 1,15 feb mon-fri");
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule->minutes, (1ULL << 0) | (1ULL << 15) | (1ULL << 30) | (1ULL << 45));
  EXPECT_EQ(schedule->hours, 1ULL << 3);
  EXPECT_EQ(schedule->days, (1ULL << 1) | (1ULL << 15));
  EXPECT_EQ(schedule->months, 1ULL << 2);
  EXPECT_EQ(schedule->weekdays, 0b111110U);
  EXPECT_FALSE(schedule->any_day);
  EXPECT_TRUE(CronSchedule::parse("* * * * *")->any_weekday);
  EXPECT_FALSE(CronSchedule::parse("* * */2 * *")->any_day);
  EXPECT_EQ(CronSchedule::parse("@every 90s")->every, base::seconds(90));
  EXPECT_EQ(CronSchedule::parse("@every 10ms")->every, base::seconds(1));
}

TEST(TimeZones, AreThoseOfTheDatabase) {
  for (const char* name : {"UTC", "Europe/Berlin", "America/Argentina/ComodRivadavia", "Zulu"}) {
    EXPECT_TRUE(is_time_zone(name)) << name;
  }
  for (const char* name : {"", "utc", "Europe", "Europe/Berlin/", " UTC"}) {
    EXPECT_FALSE(is_time_zone(name)) << name;
  }
}

constexpr const char* kIndexed = R"(
metadata: {name: train}
spec:
  completionMode: Indexed
  completions: 5
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}})";

TEST(Job, ChecksItsSuccessPolicy) {
  expect_rules(
      kind_of("batch", "Job"), kIndexed,
      {{"{spec: {successPolicy: {rules: [{succeededIndexes: \"0,2-3\", succeededCount: 2}]}}}", ""},
       {"{spec: {successPolicy: {rules: []}}}",
        "spec.successPolicy.rules: Required value: at least one rules must be specified when the "
        "successPolicy is specified"},
       {"{spec: {successPolicy: {rules: [{}]}}}",
        "spec.successPolicy.rules[0]: Required value: at least one of succeededCount or "
        "succeededIndexes must be specified"},
       {"{spec: {successPolicy: {rules: [{succeededCount: 6}]}}}",
        "spec.successPolicy.rules[0].succeededCount: Invalid value: 6: must be less than or equal "
        "to 5 (the number of specified completions)"},
       {"{spec: {successPolicy: {rules: [{succeededCount: -1}]}}}",
        "must be greater than or equal"},
       {"{spec: {successPolicy: {rules: [{succeededIndexes: \"0-1\", succeededCount: 3}]}}}",
        "must be less than or equal to 2 (the number of indexes in the specified "
        "succeededIndexes field)"},
       {"{spec: {successPolicy: {rules: [{succeededIndexes: \"0-5\"}]}}}",
        "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"0-5\": error parsing "
        "succeededIndexes: too large index: \"5\""},
       {"{spec: {successPolicy: {rules: [{succeededIndexes: \"1,\"}]}}}",
        "cannot convert string to integer for index: \"\""},
       {"{spec: {successPolicy: {rules: [{succeededIndexes: \"1-2-3\"}]}}}",
        "the fragment \"1-2-3\" violates the requirement"},
       {"{spec: {successPolicy: {rules: [{succeededIndexes: \"3-1\"}]}}}",
        "non-increasing order, previous: 3, current: 1"},
       {"{spec: {successPolicy: {rules: [{succeededIndexes: \"2,2\"}]}}}",
        "non-increasing order, previous: 2, current: 2"},
       {"{spec: {completionMode: NonIndexed, successPolicy: {rules: [{succeededCount: 1}]}}}",
        "requires indexed completion mode"}});
}

TEST(Job, ChecksItsFailurePolicy) {
  const auto rule = [](const char* text) {
    return std::string("{spec: {podFailurePolicy: {rules: [").append(text).append("]}}}");
  };
  const std::string lines[][2] = {
      {rule("{action: FailJob, onExitCodes: {operator: In, values: [1, 2]}}"), ""},
      {rule("{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}"), ""},
      {rule("{onExitCodes: {operator: In, values: [1]}}"),
       "rules[0].action: Required value: valid values: [\"Count\" \"FailIndex\" \"FailJob\" "
       "\"Ignore\"]"},
      {rule("{action: Stop, onExitCodes: {operator: In, values: [1]}}"),
       "rules[0].action: Unsupported value: \"Stop\""},
      {rule("{action: FailIndex, onExitCodes: {operator: In, values: [1]}}"),
       "rules[0].action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be "
       "set"},
      {rule("{action: FailJob}"), "specifying one of OnExitCodes and OnPodConditions is required"},
      {rule("{action: FailJob, onExitCodes: {operator: In, values: [1]}, onPodConditions: [{type: "
            "A}]}"),
       "specifying both OnExitCodes and OnPodConditions is not supported"},
      {rule("{action: FailJob, onExitCodes: {values: [1]}}"), "operator: Required value"},
      {rule("{action: FailJob, onExitCodes: {operator: X, values: [1]}}"),
       "operator: Unsupported value: \"X\""},
      {rule("{action: FailJob, onExitCodes: {operator: In, values: []}}"),
       "values: Invalid value: []: at least one value is required"},
      {rule("{action: FailJob, onExitCodes: {operator: In, values: [0]}}"),
       "values[0]: Invalid value: 0: must not be 0 for the In operator"},
      {rule("{action: FailJob, onExitCodes: {operator: In, values: [2, 1, 2]}}"),
       "values[2]: Duplicate value: 2"},
      {rule("{action: FailJob, onExitCodes: {operator: In, values: [2, 1]}}"),
       "values: Invalid value: [2,1]: must be ordered"},
      {rule("{action: FailJob, onExitCodes: {containerName: d, operator: In, values: [1]}}"),
       "onExitCodes.containerName: Invalid value: \"d\": must be one of the container or "
       "initContainer names in the pod template"},
      {rule("{action: FailJob, onPodConditions: [{type: A, status: Maybe}]}"),
       "onPodConditions[0].status: Unsupported value: \"Maybe\""},
      {rule("{action: FailJob, onPodConditions: [{type: \"a b\"}]}"),
       "onPodConditions[0].type: Invalid value: \"a b\""},
  };
  for (const auto& line : lines) {
    expect_rules(kind_of("batch", "Job"), kIndexed, {{line[0].c_str(), line[1].c_str()}});
  }
  std::string many = "{spec: {podFailurePolicy: {rules: [";
  for (int i = 0; i < 21; ++i) many += "{action: Ignore, onPodConditions: [{type: A}]},";
  many.back() = ']';
  many += "}}}";
  expect_rules(kind_of("batch", "Job"), kIndexed,
               {{many.c_str(), "rules: Too many: 21: must have at most 20 items"}});
}

TEST(Job, ChecksNamesManagerAndNumberOfIndexes) {
  expect_rules(
      kind_of("batch", "Job"), kIndexed,
      {{"{spec: {managedBy: acme.io/batch}}", ""},
       {"{spec: {managedBy: acme}}",
        "spec.managedBy: Invalid value: \"acme\": must be a domain-prefixed path (such as "
        "\"acme.io/foo\")"},
       {"{spec: {managedBy: \"a.b/c d\"}}", "spec.managedBy: Invalid value: \"c d\": Invalid path"},
       {"{metadata: {name: a.b}}",
        "metadata.name: Invalid value: \"a.b\": will not able to create pod with invalid DNS "
        "label: a.b-4"},
       {"{spec: {completions: 100001, backoffLimitPerIndex: 1}}",
        "spec.maxFailedIndexes: Required value: must be specified when completions is above "
        "100000"},
       {"{spec: {completions: 100001, backoffLimitPerIndex: 1, maxFailedIndexes: 1, parallelism: "
        "10001}}",
        "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when "
        "completions are above 100000"}});
}

}  // namespace
}  // namespace tessera::apiserver
