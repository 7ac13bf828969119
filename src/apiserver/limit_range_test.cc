// LimitRanges through the API: what they fill in, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/api_fixture.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;
using ::testing::HasSubstr;

Value limit_range(std::string_view limits) {
  Value out = TestApi::parse(R"({"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l",
      "namespace":"default"}})");
  out.ref("spec").set("limits", TestApi::parse(limits));
  return out;
}

Value pod(std::string_view resources) {
  Value out = TestApi::pod("p");
  out.ref("spec", "containers").ref_at(0).set("resources", TestApi::parse(resources));
  return out;
}

TEST(LimitRanges, Defaults_are_filled_in_and_named_in_an_annotation) {
  TestApi api;
  ASSERT_TRUE(api.create("limitranges", limit_range(R"([{"type":"Container",
      "default":{"cpu":"1","memory":"1Gi"},"defaultRequest":{"cpu":"500m"}}])")));
  const auto made = api.create("pods", pod(R"({"limits":{"memory":"2Gi"}})"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["spec"]["containers"].at(0)["resources"].dump(),
            R"({"limits":{"cpu":"1","memory":"2Gi"},"requests":{"cpu":"500m","memory":"2Gi"}})");
  EXPECT_EQ((*made)["metadata"]["annotations"]["kubernetes.io/limit-ranger"].as_string(),
            "LimitRanger plugin set: cpu request for container c0; cpu limit for container c0");
}

TEST(LimitRanges, A_max_alone_becomes_the_default) {
  TestApi api;
  ASSERT_TRUE(api.create("limitranges", limit_range(R"([{"type":"Container",
      "max":{"nvidia.com/gpu":"2"}}])")));
  const auto made = api.create("pods", pod("{}"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["spec"]["containers"].at(0)["resources"].dump(),
            R"({"limits":{"nvidia.com/gpu":"2"},"requests":{"nvidia.com/gpu":"2"}})");
}

struct Row {
  const char* name;
  const char* limits;
  const char* resources;
  const char* refusal;  // null: accepted
};

class LimitRangeRule : public ::testing::TestWithParam<Row> {};

TEST_P(LimitRangeRule, Holds) {
  TestApi api;
  ASSERT_TRUE(api.create("limitranges", limit_range(GetParam().limits)));
  const auto made = api.create("pods", pod(GetParam().resources));
  if (GetParam().refusal == nullptr) {
    EXPECT_TRUE(made) << made.error().message;
    return;
  }
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kForbidden);
  EXPECT_EQ(made.error().message, std::string("pods \"p\" is forbidden: ") + GetParam().refusal);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, LimitRangeRule,
    ::testing::Values(
        Row{"min", R"([{"type":"Container","min":{"cpu":"1"}}])",
            R"({"requests":{"cpu":"500m"},"limits":{"cpu":"2"}})",
            "minimum cpu usage per Container is 1, but request is 500m"},
        Row{"min_held", R"([{"type":"Container","min":{"cpu":"1"}}])",
            R"({"requests":{"cpu":"1"}})", nullptr},
        Row{"max", R"([{"type":"Container","max":{"memory":"1Gi"}}])",
            R"({"limits":{"memory":"2Gi"}})",
            "maximum memory usage per Container is 1Gi, but limit is 2Gi"},
        Row{"ratio", R"([{"type":"Container","maxLimitRequestRatio":{"cpu":"2"}}])",
            R"({"requests":{"cpu":"1"},"limits":{"cpu":"3"}})",
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"},
        Row{"ratio_without", R"([{"type":"Container","maxLimitRequestRatio":{"cpu":"2"}}])", "{}",
            "cpu max limit to request ratio per Container is 2, but no request is specified or "
            "request is 0"},
        Row{"pod_max", R"([{"type":"Pod","max":{"cpu":"1"}}])", R"({"limits":{"cpu":"2"}})",
            "maximum cpu usage per Pod is 1, but limit is 2"},
        Row{"pod_max_without", R"([{"type":"Pod","max":{"cpu":"1"}}])", "{}",
            "maximum cpu usage per Pod is 1.  No limit is specified"},
        Row{"several", R"([{"type":"Pod","max":{"cpu":"1"},"min":{"memory":"1Gi"}}])", "{}",
            "[minimum memory usage per Pod is 1Gi.  No request is specified, maximum cpu usage per "
            "Pod is 1.  No limit is specified]"},
        Row{"gpu_max", R"([{"type":"Container","max":{"nvidia.com/gpu":"2"}}])",
            R"({"limits":{"nvidia.com/gpu":4}})",
            "maximum nvidia.com/gpu usage per Container is 2, but limit is 4"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(LimitRanges, Claims_are_held_to_their_sizes) {
  TestApi api;
  ASSERT_TRUE(api.create("limitranges", limit_range(R"([{"type":"PersistentVolumeClaim",
      "min":{"storage":"1Gi"},"max":{"storage":"2Gi"}}])")));
  Value claim = TestApi::parse(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":
      {"name":"c","namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],
      "resources":{"requests":{"storage":"3Gi"}}}})");
  EXPECT_THAT(api.create("persistentvolumeclaims", claim).error().message,
              HasSubstr("maximum storage usage per PersistentVolumeClaim is 2Gi, but request is "
                        "3Gi"));
  claim.ref("spec", "resources", "requests", "storage") = "1Mi";
  EXPECT_THAT(api.create("persistentvolumeclaims", claim).error().message,
              HasSubstr("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is "
                        "1Mi"));
  claim.ref("spec", "resources", "requests", "storage") = "2Gi";
  EXPECT_TRUE(api.create("persistentvolumeclaims", claim));
}

}  // namespace
}  // namespace tessera::apiserver
