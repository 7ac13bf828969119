#include "sim/invariants.h"

#include <gmock/gmock.h>

#include "json/yaml.h"

namespace tessera::sim {
namespace {

using Type = kube::WatchEvent::Type;
using ::testing::HasSubstr;

struct Fresh {
  Fresh() {
    EXPECT_EQ(node("n"), "");
    EXPECT_EQ(node("m"), "");
  }
  static kube::Object object(std::string_view text) {
    auto root = json::parse_yaml(text);
    EXPECT_TRUE(root) << root.error().message << "\n" << text;
    return kube::Object(*root);
  }
  std::string node(std::string_view name, std::string_view annotations = "{}",
                   std::string_view spec = "{}") {
    return said(rules.see_node({Type::kModified, object(fmt::format(R"(
metadata: {{name: '{}', annotations: {}}}
spec: {}
status: {{capacity: {{cpu: "4", memory: 8Gi, pods: "3", nvidia.com/gpu: "2"}}}}
)",
                                                                    name, annotations, spec))},
                               now));
  }
  struct PodText {
    std::string_view name;
    std::string_view node = "n";
    std::string_view gpus = "";
    std::string_view milli = "1000";
    std::string_view device = "";
    std::string_view phase = "Running";
    std::string_view uid = "u";
    std::string_view cpu = "1";
    std::string_view limits = "{}";
  };
  std::string pod(const PodText& p, Type type = Type::kModified) {
    std::string annotations = fmt::format("tessera.dev/share-milli: '{}'", p.milli);
    if (!p.gpus.empty()) annotations += fmt::format(", tessera.dev/gpus: '{}'", p.gpus);
    std::string devices;
    if (!p.device.empty()) {
      devices =
          fmt::format("[{{name: nvidia.com/gpu, resources: [{{resourceID: {}}}]}}]", p.device);
    }
    return said(rules.see_pod(
        {type, object(fmt::format(R"(
metadata: {{namespace: d, name: {}, uid: {}-{}, annotations: {{{}}}}}
spec:
  nodeName: '{}'
  containers: [{{name: a, resources: {{requests: {{cpu: "{}"}}, limits: {}}}}}]
status: {{phase: {}, containerStatuses: [{{name: a, allocatedResourcesStatus: {}}}]}}
)",
                                  p.name, p.name, p.uid, annotations, p.node, p.cpu, p.limits,
                                  p.phase, devices.empty() ? "[]" : devices))},
        now));
  }
  static std::string said(const base::Status& status) {
    return status ? "" : status.error().message;
  }

  Invariants rules{base::seconds(15)};
  base::Time now{1'000'000'000'000};
};

class InvariantsTest : public ::testing::Test, protected Fresh {};

TEST_F(InvariantsTest, A_good_life_breaks_nothing) {
  EXPECT_EQ(pod({.name = "p", .node = "", .phase = "Pending"}), "");
  EXPECT_EQ(pod({.name = "p", .gpus = "0", .phase = "Pending"}), "");
  EXPECT_EQ(pod({.name = "p", .gpus = "0", .device = "g0"}), "");
  EXPECT_EQ(pod({.name = "q", .gpus = "1", .milli = "400", .device = "g1"}), "");
  EXPECT_EQ(pod({.name = "r", .gpus = "1", .milli = "600"}), "");
  EXPECT_EQ(pod({.name = "p", .gpus = "0", .device = "g0", .phase = "Succeeded"}), "");
  EXPECT_EQ(pod({.name = "next", .gpus = "0", .device = "g0"}), "");
  EXPECT_EQ(rules.bound(), 4U);
  EXPECT_EQ(rules.finished(), 1U);
}

TEST_F(InvariantsTest, A_device_with_two_owners_is_caught) {
  EXPECT_EQ(pod({.name = "p", .device = "g0"}), "");
  EXPECT_EQ(pod({.name = "q", .device = "g0"}), "device g0 of n is held by d/p and d/q");
}

TEST_F(InvariantsTest, Shares_beyond_a_whole_gpu_are_caught) {
  EXPECT_EQ(pod({.name = "p", .gpus = "1", .milli = "700"}), "");
  EXPECT_THAT(pod({.name = "q", .gpus = "1", .milli = "301"}),
              HasSubstr("GPU 1 of n is given out 1001 thousandths"));
}

TEST_F(InvariantsTest, A_share_beside_a_whole_gpu_pod_is_caught) {
  EXPECT_EQ(pod({.name = "p", .gpus = "0"}), "");
  EXPECT_THAT(pod({.name = "q", .gpus = "0", .milli = "1"}), HasSubstr("GPU 0 of n"));
}

TEST_F(InvariantsTest, More_than_the_node_has_is_caught_for_every_resource) {
  EXPECT_EQ(pod({.name = "p", .cpu = "3"}), "");
  EXPECT_THAT(pod({.name = "q", .cpu = "1001m"}), HasSubstr("cpu of n: 4001m requested of 4"));
  Fresh gpus;
  EXPECT_EQ(gpus.pod({.name = "p", .limits = "{nvidia.com/gpu: 2}"}), "");
  EXPECT_THAT(gpus.pod({.name = "q", .limits = "{nvidia.com/gpu: 1}"}),
              HasSubstr("nvidia.com/gpu of n"));
  Fresh slices;
  EXPECT_THAT(slices.pod({.name = "p", .limits = "{nvidia.com/mig-1g.10gb: 1}"}),
              HasSubstr("requested of 0"));
}

TEST_F(InvariantsTest, More_pods_than_the_node_takes_are_caught) {
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(pod({.name = name, .cpu = "1m"}), "");
  EXPECT_THAT(pod({.name = "e", .cpu = "1m"}), HasSubstr("n has 4 pods, at most 3"));
}

TEST_F(InvariantsTest, A_pod_that_moves_or_comes_back_is_caught) {
  EXPECT_EQ(pod({.name = "p"}), "");
  EXPECT_EQ(pod({.name = "p", .node = "m"}), "pod d/p moved from n to m");
  Fresh second;
  EXPECT_EQ(second.pod({.name = "p", .phase = "Failed"}), "");
  EXPECT_THAT(second.pod({.name = "p"}), HasSubstr("came back"));
}

TEST_F(InvariantsTest, Another_pod_of_the_same_name_may_go_elsewhere) {
  EXPECT_EQ(pod({.name = "p", .device = "g0", .cpu = "4"}), "");
  EXPECT_EQ(pod({.name = "p", .device = "g0", .cpu = "4"}, Type::kDeleted), "");
  EXPECT_EQ(pod({.name = "p", .node = "m", .uid = "v", .cpu = "4"}), "");
  EXPECT_EQ(pod({.name = "q", .device = "g0", .cpu = "4"}), "") << "the first is gone from n";
}

TEST_F(InvariantsTest, A_binding_to_a_node_cordoned_for_long_is_caught) {
  EXPECT_EQ(node("n", "{}", "{unschedulable: true}"), "");
  now = now + base::seconds(10);
  EXPECT_EQ(pod({.name = "soon"}), "") << "it was decided before";
  now = now + base::seconds(10);
  EXPECT_THAT(pod({.name = "late"}), HasSubstr("bound to n, cordoned since"));
  EXPECT_EQ(pod({.name = "soon"}), "") << "what runs there stays";
  EXPECT_EQ(node("n"), "");
  EXPECT_EQ(pod({.name = "after"}), "");
}

TEST_F(InvariantsTest, A_binding_to_a_gpu_sick_for_long_is_caught) {
  EXPECT_EQ(pod({.name = "old", .gpus = "1"}), "");
  EXPECT_EQ(node("n", "{tessera.dev/unhealthy-gpus: '1'}"), "");
  now = now + base::seconds(20);
  EXPECT_EQ(node("n", "{tessera.dev/unhealthy-gpus: '0,1'}"), "")
      << "its time counts from the first sight";
  EXPECT_EQ(pod({.name = "old", .gpus = "1", .phase = "Succeeded"}), "");
  EXPECT_EQ(pod({.name = "a", .gpus = "0"}), "");
  EXPECT_THAT(pod({.name = "b", .gpus = "1"}), HasSubstr("bound to GPU 1 of n, sick since"));
}

TEST_F(InvariantsTest, A_binding_to_no_node_is_caught) {
  EXPECT_EQ(pod({.name = "p", .node = "nowhere"}), "pod d/p bound to nowhere, no such node");
  EXPECT_EQ(said(rules.see_node({Type::kDeleted, object("metadata: {name: m}")}, now)), "");
  EXPECT_THAT(pod({.name = "q", .node = "m"}), HasSubstr("no such node"));
}

TEST_F(InvariantsTest, Versions_that_go_back_are_caught) {
  auto version = [&](Type type, const char* resource, int number) {
    const auto what = object(fmt::format("metadata: {{name: x, resourceVersion: '{}'}}", number));
    return said(rules.see_version(resource, {type, what}));
  };
  EXPECT_EQ(version(Type::kAdded, "pods", 9), "");
  EXPECT_EQ(version(Type::kAdded, "pods", 8), "") << "a list comes by name";
  EXPECT_EQ(version(Type::kModified, "pods", 10), "");
  EXPECT_EQ(version(Type::kModified, "nodes", 5), "");
  EXPECT_EQ(version(Type::kDeleted, "pods", 10),
            "resource version of pods went from 10 to 10 with x");
}

}  // namespace
}  // namespace tessera::sim
