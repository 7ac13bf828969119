// cases/C39: which GPU amounts are legal in a pod.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/kinds_fixture.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using testing::HasSubstr;
using testing::StartsWith;
using namespace testing_kinds;

std::string pod_yaml(std::string_view resources) {
  return fmt::format(R"(
apiVersion: v1
kind: Pod
metadata: {{name: q}}
spec:
  restartPolicy: Never
  containers:
    - name: c0
      image: registry.example/x:1
      resources: {}
)",
                     resources);
}

Outcome pod_with(std::string_view resources) {
  return create(kind_of("", "Pod"), from_yaml(pod_yaml(resources)));
}

const Value& resources_of(const Outcome& outcome) {
  return outcome.object["spec"]["containers"].at(0)["resources"];
}

struct Legal {
  int row;
  const char* resources;
  const char* amount;
};

TEST(C39, C39_LegalAmountsAreAcceptedAndReadBackCanonically) {
  const Legal rows[] = {
      {1, "{limits: {nvidia.com/gpu: 1}}", "1"},
      {2, "{limits: {nvidia.com/gpu: \"2\"}}", "2"},
      {3, "{limits: {nvidia.com/gpu: 3000m}}", "3"},
      {4, "{limits: {nvidia.com/gpu: 3Ki}}", "3Ki"},
      {5, "{limits: {nvidia.com/gpu: \"1e1\"}}", "10"},
      {6, "{limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 2}}", "2"},
      {7, "{limits: {nvidia.com/gpu: 0}}", "0"},
  };
  for (const Legal& row : rows) {
    const Outcome outcome = pod_with(row.resources);
    EXPECT_TRUE(outcome.accepted()) << row.row << ": " << outcome.text();
    EXPECT_EQ(resources_of(outcome)["limits"]["nvidia.com/gpu"].as_string(), row.amount) << row.row;
    EXPECT_EQ(resources_of(outcome)["requests"]["nvidia.com/gpu"].as_string(), row.amount)
        << row.row;
  }
  const Outcome mig = pod_with("{limits: {nvidia.com/mig-1g.5gb: 1}}");
  EXPECT_TRUE(mig.accepted()) << mig.text();
}

struct Illegal {
  int row;
  const char* resources;
  const char* message;
};

TEST(C39, C39_IllegalAmountsAreInvalidAndNameTheField) {
  const Illegal rows[] = {
      {8, "{limits: {nvidia.com/gpu: 0.5}}", "must be an integer"},
      {9, "{limits: {nvidia.com/gpu: 1500m}}", "must be an integer"},
      {10, "{limits: {nvidia.com/gpu: -1}}", "must be greater than or equal to 0"},
      {11, "{requests: {nvidia.com/gpu: 1}}",
       "Required value: Limit must be set for non overcommitable resources"},
      {12, "{limits: {nvidia.com/gpu: 8}, requests: {nvidia.com/gpu: 6}}",
       "must be equal to nvidia.com/gpu limit of 8"},
      {15, "{limits: {gpu: 1}}", "must be a standard resource type or fully qualified"},
      {16, "{limits: {\"nvidia.com/gpu/x\": 1}}", "a valid label key"},
      {17, "{limits: {requests.nvidia.com/gpu: 1}}",
       "doesn't follow extended resource name standard"},
  };
  for (const Illegal& row : rows) {
    const Outcome outcome = pod_with(row.resources);
    EXPECT_EQ(outcome.bad_request, "") << row.row;
    ASSERT_FALSE(outcome.causes.empty()) << row.row;
    for (const base::Cause& cause : outcome.causes) {
      EXPECT_THAT(cause.field, StartsWith("spec.containers[0].resources")) << row.row;
    }
    EXPECT_THAT(outcome.text(), HasSubstr(row.message)) << row.row;
  }
}

TEST(C39, C39_WhatIsNoQuantityIsABadRequest) {
  for (const char* resources :
       {"{limits: {nvidia.com/gpu: two}}", "{limits: {nvidia.com/gpu: \"1 \"}}", "{limits: [1]}"}) {
    const Outcome outcome = pod_with(resources);
    EXPECT_THAT(outcome.bad_request, HasSubstr("spec.containers[0].resources.limits")) << resources;
  }
}

TEST(C39, C39_BothErrorsAreListedWhenRequestsAndLimitsAreWrong) {
  const Outcome outcome =
      pod_with("{limits: {nvidia.com/gpu: 1500m}, requests: {nvidia.com/gpu: 500m}}");
  std::vector<std::string> fields;
  for (const base::Cause& cause : outcome.causes) fields.push_back(cause.field);
  EXPECT_THAT(fields, testing::ElementsAre("spec.containers[0].resources.limits[nvidia.com/gpu]",
                                           "spec.containers[0].resources.requests[nvidia.com/gpu]",
                                           "spec.containers[0].resources.requests"));
}

TEST(C39, C39_TemplatesAreCheckedInTheSameWay) {
  const char* pod_template = R"(
    metadata: {labels: {app: a}}
    spec:
      restartPolicy: RESTART
      containers: [{name: c0, image: x, resources: {limits: {nvidia.com/gpu: 0.5}}}])";
  const struct {
    const char* group;
    const char* kind;
    const char* selector;
    const char* restart;
  } kinds[] = {{"apps", "Deployment", "selector: {matchLabels: {app: a}}", "Always"},
               {"apps", "ReplicaSet", "selector: {matchLabels: {app: a}}", "Always"},
               {"batch", "Job", "parallelism: 1", "Never"}};
  for (const auto& each : kinds) {
    std::string body = pod_template;
    body.replace(body.find("RESTART"), 7, each.restart);
    const Outcome outcome =
        create(kind_of(each.group, each.kind),
               from_yaml(fmt::format("metadata: {{name: q}}\nspec:\n  {}\n  template:{}\n",
                                     each.selector, body)));
    ASSERT_EQ(outcome.causes.size(), 1U) << each.kind << "\n" << outcome.text();
    EXPECT_EQ(outcome.causes[0].field,
              "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]");
    EXPECT_EQ(outcome.causes[0].message, "Invalid value: \"500m\": must be an integer");
    EXPECT_EQ(outcome.causes[0].reason, "FieldValueInvalid");
  }
}

TEST(C39, C39_AmountsBeyond64BitsAreRefusedOrKept) {
  for (const char* amount : {"9223372036854775807", "9223372036854775808"}) {
    const Outcome outcome = pod_with(fmt::format("{{limits: {{nvidia.com/gpu: \"{}\"}}}}", amount));
    if (!outcome.accepted()) continue;
    EXPECT_EQ(resources_of(outcome)["limits"]["nvidia.com/gpu"].as_string(), amount);
  }
}

}  // namespace
}  // namespace tessera::apiserver
