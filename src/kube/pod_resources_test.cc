#include "kube/pod_resources.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "json/parse.h"

namespace tessera::kube {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";

// "I4 S1 A2 A0": init containers, sidecars and app containers with so many GPUs, as cases/C13
// writes them.
Pod pod_of(std::string_view text) {
  json::Value init = json::Value::array();
  json::Value apps = json::Value::array();
  for (size_t at = 0; at < text.size(); at += 3) {
    json::Value container = json::Value::object();
    if (text[at + 1] != '0') {
      container.ref("resources", "limits", kGpu) = std::string(1, text[at + 1]);
    }
    if (text[at] == 'S') container.set("restartPolicy", "Always");
    (text[at] == 'A' ? apps : init).push_back(std::move(container));
  }
  json::Value pod;
  pod.ref("spec", "initContainers") = std::move(init);
  pod.ref("spec", "containers") = std::move(apps);
  return decode_pod(Object(std::move(pod))).value();
}

int64_t gpus_of(std::string_view text) {
  return amount_of(pod_requests(pod_of(text)), kGpu).value();
}

TEST(PodRequests, C13_p1_an_init_container_may_need_more_than_the_app) {
  EXPECT_EQ(gpus_of("I4 A1 A1"), 4);
}
TEST(PodRequests, C13_p2_init_containers_run_one_after_the_other) {
  EXPECT_EQ(gpus_of("I1 I2 A1"), 2);
}
TEST(PodRequests, C13_p3_a_sidecar_runs_beside_the_app) {
  EXPECT_EQ(gpus_of("S1 A2"), 3);
}
TEST(PodRequests, C13_p4_a_sidecar_runs_beside_later_init_containers) {
  EXPECT_EQ(gpus_of("I1 S1 I2 A1"), 3);
}
TEST(PodRequests, C13_p5_an_init_container_before_a_sidecar_runs_alone) {
  EXPECT_EQ(gpus_of("I2 S1 A1"), 2);
}
TEST(PodRequests, C13_p6_app_containers_add_up) {
  EXPECT_EQ(gpus_of("A1 A1"), 2);
}
TEST(PodRequests, C13_p7_sidecars_add_up) {
  EXPECT_EQ(gpus_of("S1 S1 I1 A0"), 3);
}
TEST(PodRequests, C13_p8_an_app_without_GPUs_still_needs_those_of_its_init_container) {
  EXPECT_EQ(gpus_of("I3 A0"), 3);
}

// The most that runs at once, found by acting out the start of the pod.
TEST(PodRequests, C13_equal_the_most_that_ever_runs_at_once) {
  rc::check([](const std::vector<std::pair<uint8_t, uint8_t>>& plan) {
    std::string text;
    int64_t sidecars = 0;
    int64_t apps = 0;
    int64_t most = 0;
    for (const auto& [kind, gpus] : plan) {
      const int64_t n = gpus % 10;
      text += std::string(1, "ISA"[kind % 3]) + std::to_string(n) + " ";
      if (kind % 3 == 0) most = std::max(most, sidecars + n);
      if (kind % 3 == 1) sidecars += n;
      if (kind % 3 == 2) apps += n;
    }
    most = std::max(most, sidecars + apps);
    RC_ASSERT(gpus_of(text) == most);
  });
}

Pod decoded(const char* text) {
  const auto root = json::parse(text);
  EXPECT_TRUE(root) << root.error().message;
  auto pod = decode_pod(Object(*root));
  EXPECT_TRUE(pod) << pod.error().message;
  return *pod;
}

TEST(PodRequests, Overhead_comes_on_top_and_pod_level_amounts_replace_the_sums) {
  const Pod pod = decoded(R"({"spec":{"overhead":{"cpu":"250m"},
    "resources":{"requests":{"cpu":"3","nvidia.com/gpu":"9"}},
    "containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"memory":"2Gi"}}}]}})");
  const ResourceList requests = pod_requests(pod);
  EXPECT_EQ(amount_of(requests, "cpu").to_string(), "3250m");
  EXPECT_EQ(amount_of(requests, "memory").to_string(), "1Gi");
  EXPECT_TRUE(amount_of(requests, kGpu).is_zero());
  EXPECT_EQ(amount_of(pod_limits(pod), "memory").to_string(), "2Gi");
  EXPECT_FALSE(pod_limits(pod).contains("cpu"));
}

TEST(QosClass, Follows_requests_and_limits) {
  EXPECT_EQ(qos_class(decoded(R"({"spec":{"containers":[{}]}})")), "BestEffort");
  EXPECT_EQ(qos_class(decoded(
                R"({"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})")),
            "BestEffort");
  EXPECT_EQ(
      qos_class(decoded(
          R"({"spec":{"containers":[{"resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]}})")),
      "Guaranteed");
  EXPECT_EQ(qos_class(decoded(
                R"({"spec":{"containers":[{"resources":{"limits":{"cpu":"1","memory":"1Gi"},
                    "requests":{"cpu":"500m"}}}]}})")),
            "Burstable");
  EXPECT_EQ(
      qos_class(decoded(
          R"({"spec":{"containers":[{"resources":{"limits":{"cpu":"1","memory":"1Gi"}}},{}]}})")),
      "Burstable");
  EXPECT_EQ(
      qos_class(decoded(R"({"spec":{"resources":{"requests":{"cpu":"1"}},"containers":[{}]}})")),
      "Burstable");
}

}  // namespace
}  // namespace tessera::kube
