// Case C39: which GPU amounts are legal in a pod, seen through the API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Value pod_with(const char* resources) {
  Value pod = TestApi::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"q",
    "namespace":"default"},"spec":{"restartPolicy":"Never","containers":[{"name":"c0",
    "image":"registry.example/x:1"}]}})");
  pod.ref("spec", "containers").ref_at(0).set("resources", TestApi::parse(resources));
  return pod;
}

struct Row {
  int number;
  const char* resources;
  const char* reads_back;  // of the request; null: not looked at
};

class C39Accepted : public ::testing::TestWithParam<Row> {};

TEST_P(C39Accepted, Pod_is_made_and_reads_back_canonically) {
  TestApi api;
  const auto made = api.create("pods", pod_with(GetParam().resources));
  ASSERT_TRUE(made) << made.error().message;
  const auto pod = api.get("pods", "default", "q");
  ASSERT_TRUE(pod);
  if (GetParam().reads_back == nullptr) return;
  const Value& resources = (*pod)["spec"]["containers"].at(0)["resources"];
  EXPECT_EQ(resources["limits"]["nvidia.com/gpu"].as_string(), GetParam().reads_back);
  EXPECT_EQ(resources["requests"]["nvidia.com/gpu"].as_string(), GetParam().reads_back);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, C39Accepted,
    ::testing::Values(Row{1, R"({"limits":{"nvidia.com/gpu":1}})", "1"},
                      Row{2, R"({"limits":{"nvidia.com/gpu":"2"}})", "2"},
                      Row{3, R"({"limits":{"nvidia.com/gpu":"3000m"}})", "3"},
                      Row{4, R"({"limits":{"nvidia.com/gpu":"3Ki"}})", "3Ki"},
                      Row{5, R"({"limits":{"nvidia.com/gpu":"1e1"}})", "10"},
                      Row{6, R"({"limits":{"nvidia.com/gpu":2},"requests":{"nvidia.com/gpu":2}})",
                          "2"},
                      Row{7, R"({"limits":{"nvidia.com/gpu":0}})", "0"},
                      Row{18, R"({"limits":{"nvidia.com/mig-1g.5gb":1}})", nullptr}),
    [](const auto& row) { return "row_" + std::to_string(row.param.number); });

struct Refused {
  int number;
  const char* resources;
  Code code;
  const char* says;
};

class C39Refused : public ::testing::TestWithParam<Refused> {};

TEST_P(C39Refused, Says_why_at_the_field_and_makes_nothing) {
  TestApi api;
  const auto reply = api.reply(
      TestApi::request(kube::Verb::kCreate, "pods", "default", {}, pod_with(GetParam().resources)));
  ASSERT_FALSE(reply.result);
  const base::Error& error = reply.result.error();
  EXPECT_EQ(error.code, GetParam().code) << error.message;
  EXPECT_EQ(reply.http_status, error.code == Code::kInvalid ? 422 : 400);
  EXPECT_THAT(error.message, HasSubstr(GetParam().says));
  if (error.code == Code::kInvalid) {
    ASSERT_FALSE(error.causes.empty());
    for (const base::Cause& cause : error.causes) {
      EXPECT_THAT(cause.field, StartsWith("spec.containers[0].resources"));
    }
  }
  EXPECT_EQ(api.get("pods", "default", "q").error().code, Code::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, C39Refused,
    ::testing::Values(
        Refused{8, R"({"limits":{"nvidia.com/gpu":0.5}})", Code::kInvalid, "must be an integer"},
        Refused{9, R"({"limits":{"nvidia.com/gpu":"1500m"}})", Code::kInvalid,
                "must be an integer"},
        Refused{10, R"({"limits":{"nvidia.com/gpu":-1}})", Code::kInvalid, "greater than or equal"},
        Refused{11, R"({"requests":{"nvidia.com/gpu":1}})", Code::kInvalid, "imit must be set"},
        Refused{12, R"({"limits":{"nvidia.com/gpu":8},"requests":{"nvidia.com/gpu":6}})",
                Code::kInvalid, "must be equal to nvidia.com/gpu limit of 8"},
        Refused{13, R"({"limits":{"nvidia.com/gpu":"two"}})", Code::kBadRequest, "quantit"},
        Refused{14, R"({"limits":{"nvidia.com/gpu":"1 "}})", Code::kBadRequest, "quantit"},
        Refused{15, R"({"limits":{"gpu":1}})", Code::kInvalid, "gpu"},
        Refused{16, R"({"limits":{"nvidia.com/gpu/x":1}})", Code::kInvalid, "nvidia.com/gpu/x"},
        Refused{17, R"({"limits":{"requests.nvidia.com/gpu":1}})", Code::kInvalid,
                "requests.nvidia.com/gpu"},
        Refused{19, R"({"limits":[1]})", Code::kBadRequest, "limits"}),
    [](const auto& row) { return "row_" + std::to_string(row.param.number); });

TEST(C39, Wrong_requests_and_limits_are_both_named) {
  TestApi api;
  const auto made = api.create(
      "pods",
      pod_with(R"({"limits":{"nvidia.com/gpu":"0.5"},"requests":{"nvidia.com/gpu":"1500m"}})"));
  ASSERT_FALSE(made);
  bool limits = false;
  bool requests = false;
  for (const base::Cause& cause : made.error().causes) {
    limits = limits || cause.field.starts_with("spec.containers[0].resources.limits");
    requests = requests || cause.field.starts_with("spec.containers[0].resources.requests");
  }
  EXPECT_TRUE(limits && requests) << made.error().message;
  EXPECT_THAT(made.error().message, StartsWith("Pod \"q\" is invalid: ["));
}

TEST(C39, Templates_are_checked_like_pods) {
  TestApi api;
  Value deployment = TestApi::parse(R"({"apiVersion":"apps/v1","kind":"Deployment",
    "metadata":{"name":"d","namespace":"default"},"spec":{"selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"}}}}})");
  Value spec = pod_with(R"({"limits":{"nvidia.com/gpu":0.5}})")["spec"];
  spec.set("restartPolicy", "Always");
  deployment.ref("spec", "template", "spec") = spec;
  const auto made = api.create("deployments.apps", deployment);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kInvalid);
  EXPECT_THAT(made.error().message, StartsWith("Deployment.apps \"d\" is invalid: "));
  ASSERT_FALSE(made.error().causes.empty());
  EXPECT_THAT(made.error().causes[0].field,
              StartsWith("spec.template.spec.containers[0].resources"));
  EXPECT_EQ(api.get("deployments.apps", "default", "d").error().code, Code::kNotFound);
}

TEST(C39, Amounts_at_the_edge_of_64_bits_are_kept_or_refused) {
  for (const char* amount : {"9223372036854775807", "9223372036854775808"}) {
    TestApi api;
    const auto made = api.create(
        "pods",
        pod_with((R"({"limits":{"nvidia.com/gpu":")" + std::string(amount) + "\"}}").c_str()));
    if (made) {
      EXPECT_EQ(
          (*made)["spec"]["containers"].at(0)["resources"]["limits"]["nvidia.com/gpu"].as_string(),
          amount);
    } else {
      EXPECT_THAT(made.error().code, AnyOf(Code::kInvalid, Code::kBadRequest));
    }
  }
}

}  // namespace
}  // namespace tessera::apiserver
