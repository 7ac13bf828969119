#include "sim/rest.h"

#include <gmock/gmock.h>

#include "json/yaml.h"

namespace tessera::sim {
namespace {

using ::testing::HasSubstr;

kube::Object object(std::string_view text) {
  auto root = json::parse_yaml(text);
  EXPECT_TRUE(root) << root.error().message << "\n" << text;
  return kube::Object(*root);
}

kube::Object node(std::string_view more = "{}", std::string_view ready = "'True'",
                  std::string_view allocatable = "'2'") {
  return object(fmt::format(R"(
metadata: {{name: gpu-0}}
spec: {}
status:
  capacity: {{cpu: "8", memory: 8Gi, pods: "9", nvidia.com/gpu: "2"}}
  allocatable: {{cpu: "8", memory: 8Gi, pods: "9", nvidia.com/gpu: {}}}
  conditions: [{{type: Ready, status: {}}}]
)",
                            more, allocatable, ready));
}

// `meta` and `status` are added to a pod that asks for `gpus`; created at the start of 2026.
kube::Object pod(std::string_view where, int gpus, std::string_view status,
                 std::string_view meta = "") {
  return object(fmt::format(R"(
metadata: {{name: p, namespace: d, uid: u, creationTimestamp: "2026-01-01T00:00:00Z"{}}}
spec: {{schedulerName: tessera, nodeName: '{}', containers: [{{name: a, resources: {{limits: {{nvidia.com/gpu: {}}}}}}}]}}
status: {}
)",
                            meta, where, gpus, status));
}

constexpr const char* kTold =
    "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', message: no room}]}";

std::string rest(const RestView& view) {
  const auto status = check_rest(view);
  return status ? "" : status.error().message;
}

const base::Time kLater = *base::parse_rfc3339("2026-01-01T01:00:00Z");
const base::Time kSoon = *base::parse_rfc3339("2026-01-01T00:00:05Z");

TEST(Rest, A_cluster_at_rest_is_fine) {
  EXPECT_EQ(rest({{node()}, {pod("gpu-0", 1, "{phase: Running}")}, {}, {}, kLater}), "");
  EXPECT_EQ(rest({{node()}, {pod("", 3, kTold)}, {}, {}, kLater}), "");
  EXPECT_EQ(rest({{node()}, {pod("gpu-0", 2, "{phase: Succeeded}")}, {}, {}, kLater}), "");
}

TEST(Rest, Nodes_must_be_whole_again) {
  EXPECT_THAT(rest({{node("{}", "Unknown")}, {}, {}, {}, kLater}), HasSubstr("gpu-0 is not ready"));
  EXPECT_THAT(rest({{node("{unschedulable: true}")}, {}, {}, {}, kLater}),
              HasSubstr("still cordoned"));
  EXPECT_THAT(rest({{node("{}", "'True'", "'1'")}, {}, {}, {}, kLater}),
              HasSubstr("node gpu-0 has"));
  EXPECT_THAT(rest({{node("{taints: [{key: node.kubernetes.io/unreachable, effect: NoExecute}]}")},
                    {},
                    {},
                    {},
                    kLater}),
              HasSubstr("still has taint node.kubernetes.io/unreachable"));
}

TEST(Rest, Pods_must_get_on) {
  const auto leaving =
      pod("gpu-0", 1, "{phase: Running}", ", deletionTimestamp: '2026-01-01T00:00:00Z'");
  EXPECT_EQ(rest({{node()}, {leaving}, {}, {}, kSoon}), "");
  EXPECT_THAT(rest({{node()}, {leaving}, {}, {}, kLater}), HasSubstr("still terminating"));
  const auto starting = pod("gpu-0", 1, R"({phase: Pending, conditions: [
      {type: PodScheduled, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}]})");
  EXPECT_EQ(rest({{node()}, {starting}, {}, {}, kSoon}), "");
  EXPECT_THAT(rest({{node()}, {starting}, {}, {}, kLater}),
              HasSubstr("bound to gpu-0 and never started"));
  const auto silent = pod("", 3, "{phase: Pending}");
  EXPECT_EQ(rest({{node()}, {silent}, {}, {}, kSoon}), "");
  EXPECT_THAT(rest({{node()}, {silent}, {}, {}, kLater}), HasSubstr("nobody says why"));
}

TEST(Rest, Nobody_waits_while_there_is_room) {
  EXPECT_EQ(rest({{node()}, {pod("", 2, kTold)}, {}, {}, kLater}),
            "pod d/p waits though gpu-0 has room (\"no room\")");
}

TEST(Rest, Jobs_and_deployments_have_their_pods) {
  const auto job = object("{metadata: {name: j, namespace: d, uid: ju}, status: {}}");
  EXPECT_THAT(rest({{node()}, {}, {job}, {}, kLater}),
              HasSubstr("job d/j is not finished and has no pod"));
  const auto done = object(
      "{metadata: {name: j, namespace: d, uid: ju}, status: {conditions: [{type: Complete, status: "
      "'True'}]}}");
  EXPECT_EQ(rest({{node()}, {}, {done}, {}, kLater}), "");
  const auto mine =
      pod("gpu-0", 1, "{phase: Running}", ", ownerReferences: [{uid: ju}], labels: {app: web}");
  EXPECT_EQ(rest({{node()}, {mine}, {job}, {}, kLater}), "");
  const auto web = object("{metadata: {name: web, namespace: d}, spec: {replicas: 2}}");
  EXPECT_EQ(rest({{node()}, {mine}, {}, {web}, kLater}), "deployment d/web has 1 pods, wants 2");
}

}  // namespace
}  // namespace tessera::sim
