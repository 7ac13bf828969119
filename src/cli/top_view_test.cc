#include "cli/top_view.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "json/yaml.h"

namespace tessera::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

kube::Object object(std::string_view text) {
  auto root = json::parse_yaml(text);
  EXPECT_TRUE(root) << root.error().message;
  return kube::Object(*root);
}

kube::Object node(std::string_view name, std::string_view capacity,
                  std::string_view annotations = "{}", std::string_view spec = "{}",
                  std::string_view ready = "'True'") {
  return object(fmt::format(R"(
metadata: {{name: {0}, labels: {{nvidia.com/gpu.product: NVIDIA-H200}}, annotations: {2}}}
spec: {3}
status: {{capacity: {1}, allocatable: {1}, conditions: [{{type: Ready, status: {4}}}]}}
)",
                            name, capacity, annotations, spec, ready));
}

kube::Object pod(std::string_view name, std::string_view phase, std::string_view where,
                 std::string_view annotations, std::string_view limits = "{}",
                 std::string_view why = "") {
  return object(fmt::format(R"(
metadata: {{name: {}, namespace: team, annotations: {}}}
spec: {{nodeName: '{}', containers: [{{name: a, resources: {{requests: {{cpu: "8", memory: 16Gi}}, limits: {}}}}}]}}
status: {{phase: {}, conditions: [{{type: PodScheduled, status: "False", message: '{}'}}]}}
)",
                            name, annotations, where, limits, phase, why));
}

constexpr const char* kEight = "{cpu: '64', memory: 256Gi, nvidia.com/gpu: '8'}";

TEST(TopView, Adds_up_what_pods_take) {
  const Picture picture = summarize(
      {node("gpu-0", kEight, "{tessera.dev/unhealthy-gpus: '7'}"),
       node("mig-0", "{cpu: '8', memory: 16Gi, nvidia.com/mig-1g.10gb: '4'}")},
      {pod("a", "Running", "gpu-0", "{tessera.dev/gpus: '0,1'}", "{nvidia.com/gpu: 2}"),
       pod("b", "Running", "gpu-0", "{tessera.dev/gpus: '2', tessera.dev/share-milli: '250'}"),
       pod("c", "Running", "mig-0", "{}", "{nvidia.com/mig-1g.10gb: 3}"),
       pod("d", "Succeeded", "gpu-0", "{tessera.dev/gpus: '5'}", "{nvidia.com/gpu: 1}"),
       pod("e", "Pending", "", "{}", "{nvidia.com/gpu: 9}", "no room"),
       pod("f", "Pending", "", "{}", "{nvidia.com/gpu: 9}", "no room"),
       pod("g", "Failed", "", "{}")});
  EXPECT_EQ(picture.gpus, 8);
  EXPECT_EQ(picture.gpu_milli_used, 2250);
  ASSERT_EQ(picture.nodes.size(), 2U);
  const NodeLine& gpu = picture.nodes[0];
  EXPECT_EQ(gpu.gpu_milli, (std::vector<int64_t>{1000, 1000, 250, 0, 0, 0, 0, -1}));
  EXPECT_EQ(gpu.pods, 2);
  EXPECT_EQ(gpu.cpu_used, 16'000);
  EXPECT_EQ(gpu.model, "H200");
  EXPECT_EQ(picture.nodes[1].slices.at("mig-1g.10gb"), std::pair(int64_t{3}, int64_t{4}));
  const NamespaceLine& team = picture.namespaces.at("team");
  EXPECT_EQ(team.running, 3);
  EXPECT_EQ(team.pending, 2);
  EXPECT_EQ(team.done, 1);
  EXPECT_EQ(team.failed, 1);
  EXPECT_EQ(team.gpu_milli, 2250);
  EXPECT_EQ(picture.reasons.at("no room"), 2);
}

TEST(TopView, Draws_one_cell_a_gpu_and_the_state_of_nodes) {
  const Picture picture = summarize(
      {node("gpu-0", kEight, "{}", "{unschedulable: true}"),
       node("gpu-1", kEight, "{}", "{}", "Unknown")},
      {pod("a", "Running", "gpu-0", "{tessera.dev/gpus: '0,1'}"),
       pod("b", "Running", "gpu-0", "{tessera.dev/gpus: '2', tessera.dev/share-milli: '500'}")});
  const std::string text = render(picture, 140, 40, false);
  EXPECT_THAT(text, HasSubstr("2 nodes  16 whole GPUs  16% allocated"));
  EXPECT_THAT(text, HasSubstr("██▄·····"));
  EXPECT_THAT(text, HasSubstr("cordoned"));
  EXPECT_THAT(text, HasSubstr("NotReady"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(render(picture, 140, 40, true), HasSubstr("\x1b["));
}

// Columns as a terminal counts them: bytes that continue a character take none.
size_t columns_of(std::string_view line) {
  return static_cast<size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

TEST(TopView, Node_lines_keep_within_a_narrow_terminal) {
  Picture picture;
  NodeLine node;
  node.name = "a-node-with-a-long-name";
  node.model = "A100-SXM4-80GB";
  node.slices = {{"mig-1g.10gb", {8, 16}}, {"mig-2g.20gb", {0, 8}}, {"mig-3g.40gb", {4, 8}}};
  picture.nodes = {node, node};
  picture.nodes[1].slices.clear();
  picture.nodes[1].gpu_milli.assign(64, 1000);
  for (const int width : {80, 100, 140}) {
    const std::string text = render(picture, width, 30, false);
    size_t at = 0;
    for (size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      if (text.compare(at, 6, "a-node") != 0) continue;
      EXPECT_LE(columns_of(std::string_view(text).substr(at, end - at)),
                static_cast<size_t>(width));
    }
  }
}

TEST(TopView, Keeps_within_the_rows_it_has) {
  std::vector<kube::Object> nodes;
  std::vector<kube::Object> pods;
  for (int i = 0; i < 300; ++i) {
    nodes.push_back(node(fmt::format("gpu-{}", i), kEight));
    pods.push_back(
        pod(fmt::format("p-{}", i), "Pending", "", "{}", "{}", fmt::format("reason {}", i)));
  }
  for (const int rows : {5, 12, 24, 50}) {
    const std::string text = render(summarize(nodes, pods), 100, rows, false);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), std::max(rows, 12)) << rows;
    EXPECT_THAT(text, HasSubstr("more nodes"));
  }
}

TEST(TopView, An_empty_cluster_and_odd_objects_draw_too) {
  EXPECT_THAT(render(summarize({}, {}), 0, 0, false),
              HasSubstr("0 nodes  0 whole GPUs  0% allocated"));
  const Picture odd = summarize(
      {object("{}"), node("gpu-0", "{nvidia.com/gpu: '9999999'}")},
      {object("{}"), pod("a", "Running", "gpu-0", "{tessera.dev/gpus: '-3,x,99999999999'}"),
       pod("b", "Running", "gone", "{tessera.dev/gpus: '1'}")});
  EXPECT_FALSE(render(odd, 80, 20, false).empty());
}

}  // namespace
}  // namespace tessera::cli
