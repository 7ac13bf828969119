#include "scheduler/job_allowance.h"

#include <gtest/gtest.h>

#include "scheduler/scheduler_testing.h"

namespace tessera::scheduler {
namespace {

kube::Object job(std::string_view spec, std::string_view allowed = "") {
  json::Value out = testing::yaml("{apiVersion: batch/v1, kind: Job, metadata: {name: j, uid: u}}");
  out.set("spec", testing::yaml(spec));
  if (!allowed.empty()) out.ref("metadata", "annotations", kEvictionsAllowed) = allowed;
  return kube::Object(out);
}

int64_t limit_after(const kube::Object& object, int64_t allowed, int64_t more) {
  const auto patch = allowance_patch(object, allowed, more);
  return patch ? (*patch)["spec"]["backoffLimit"].as_int() : -1;
}

TEST(JobAllowance, Is_added_to_what_the_user_gave) {
  EXPECT_EQ(limit_after(job("{}"), 0, 3), 9) << "6 is the default";
  EXPECT_EQ(limit_after(job("{backoffLimit: 0}"), 0, 1), 1);
  EXPECT_EQ(limit_after(job("{backoffLimit: 9}", "3"), 3, 2), 11);
  EXPECT_EQ(limit_after(job("{backoffLimit: 6}"), 3, 2), 11)
      << "the object is older than the write";
  EXPECT_EQ((*allowance_patch(job("{backoffLimit: 9}", "3"), 3,
                              2))["metadata"]["annotations"][kEvictionsAllowed]
                .as_string(),
            "5");
}

TEST(JobAllowance, Is_not_needed_where_disruptions_are_ignored) {
  EXPECT_EQ(limit_after(job("{podFailurePolicy: {rules: [{action: Ignore, onPodConditions: "
                            "[{type: DisruptionTarget, status: 'True'}]}]}}"),
                        0, 1),
            -1);
  EXPECT_EQ(limit_after(job("{podFailurePolicy: {rules: [{action: FailJob, onPodConditions: "
                            "[{type: DisruptionTarget}]}]}}"),
                        0, 1),
            7);
  EXPECT_EQ(limit_after(kube::Object(), 0, 1), -1);
}

TEST(JobAllowance, Never_passes_what_the_field_holds) {
  EXPECT_EQ(limit_after(job("{backoffLimit: 2147483647}"), 0, 5), 2147483647);
  EXPECT_EQ(limit_after(job("{backoffLimit: 6}", "junk"), 0, 1), 7);
}

}  // namespace
}  // namespace tessera::scheduler
