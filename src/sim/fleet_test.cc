#include "sim/fleet.h"

#include <gmock/gmock.h>

#include <set>

#include "gpu/catalog.h"
#include "kube/node.h"

namespace tessera::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string in_group(std::string_view group) {
  return fmt::format("name: lab\nracks:\n  - name: r1\n    nodes:\n      - {}\n", group);
}

Fleet fleet_of(std::string_view text) {
  auto fleet = parse_fleet(text);
  EXPECT_TRUE(fleet) << fleet.error().message;
  return fleet ? *fleet : Fleet{};
}

TEST(Fleet, Has_the_nodes_that_its_groups_say) {
  const Fleet fleet = fleet_of(R"(
name: lab
racks:
  - name: r1
    zone: z1
    block: b1
    nodes:
      - {name: h200, count: 2, model: H200, cpu: 192, memory: 2Ti, labels: {pool: train}}
      - {name: cpu, cpu: 1500m, memory: 64Gi, pods: 20, taints: [{key: dedicated, value: infra, effect: NoSchedule}]}
  - name: r2
    nodes: [{name: h200, model: H200, gpus: 4}]
)");
  ASSERT_EQ(fleet.nodes.size(), 4U);
  EXPECT_EQ(fleet.gpus(), 20);
  EXPECT_EQ(fleet.nodes[1].name, "h200-1");
  EXPECT_EQ(fleet.nodes[3].name, "h200-2") << "numbered through the fleet";
  EXPECT_EQ(fleet.nodes[0].gpus, 8) << "the usual server's";
  EXPECT_EQ(fleet.nodes[3].cpu_milli, 64'000) << "16 a GPU";
  EXPECT_EQ(fleet.nodes[3].memory_bytes, int64_t{512} << 30) << "128Gi a GPU";
  EXPECT_EQ(fleet.nodes[2].cpu_milli, 1500);
  EXPECT_EQ(fleet.nodes[2].pods_max, 20);
  EXPECT_EQ(fleet.nodes[0].labels.at("pool"), "train");
  EXPECT_EQ(fleet.nodes[0].labels.at("topology.kubernetes.io/zone"), "z1");
  EXPECT_EQ(fleet.nodes[0].labels.at("tessera.dev/block"), "b1");
  EXPECT_EQ(fleet.nodes[3].labels.at("tessera.dev/rack"), "r2");
}

TEST(Fleet, Every_mistake_is_named_with_its_place_and_mend) {
  struct Case {
    std::string text;
    const char* says;
  };
  const std::string fraction(70, '9');
  for (const Case& c : {
           Case{"[]", "a fleet is a mapping with name and racks"},
           Case{"name: lab", "racks: must list racks with nodes"},
           Case{"racks: {}", "racks: must list racks with nodes"},
           Case{"name: 7\nracks: [{name: r1, nodes: [{name: a}]}]", "name: must be text"},
           Case{"racks: [{name: r1, nodes: [{name: a}]}]\nnodes: 3",
                "nodes: no such key; keys are name, racks"},
           Case{"racks: [{name: r1, size: 4, nodes: []}]", "racks[0].size: no such key"},
           Case{"racks: [{nodes: [{name: a}]}]", "racks[0].name: must name the rack"},
           Case{"racks: [{name: r1}]", "racks[0].nodes: must list nodes"},
           Case{"racks: [7]", "racks[0].name: must name the rack"},
           Case{"racks: [{name: r1, zone: 1, nodes: [{name: a}]}]",
                "racks[0].zone: must be a name"},
           Case{"racks: [{name: r1, block: 'a b', nodes: [{name: a}]}]",
                "racks[0].block: must be a name"},
           Case{in_group("7"), "racks[0].nodes[0]: must be a mapping"},
           Case{in_group("{count: 2}"), "racks[0].nodes[0].name: must be a name"},
           Case{in_group("{name: A_B}"), "nodes[0].name: \"A_B\" is no node name"},
           Case{in_group("{name: a, gpu: 8}"), "nodes[0].gpu: no such key; keys are"},
           Case{in_group("{name: a, count: 0}"),
                "nodes[0].count: must be a whole number from 1 to 20000, not 0"},
           Case{in_group("{name: a, count: 1.5}"), "count: must be a whole number"},
           Case{in_group("{name: a, count: 20000}") + "      - {name: b}\n",
                "more than 20000 nodes"},
           Case{in_group("{name: a, model: H9000}"), "nodes[0].model: "},
           Case{in_group("{name: a, model: 4}"), "nodes[0].model: "},
           Case{in_group("{name: a, gpus: 2}"), "gpus: needs a model; add model: H200"},
           Case{in_group("{name: a, model: H200, gpus: 17}"),
                "gpus: must be a whole number from 1 to 16, not 17"},
           Case{in_group("{name: a, model: H200, gpus: -1}"), "gpus: must be a whole number"},
           Case{in_group("{name: a, cpu: lots}"),
                "cpu: \"lots\" is no quantity; write 64, 1500m or 512Gi"},
           Case{in_group("{name: a, cpu: 0}"), "cpu: must be more than 0"},
           Case{in_group("{name: a, cpu: -4}"), "cpu: must be more than 0"},
           Case{in_group("{name: a, cpu: 5000}"), "cpu: is more than 4096 cores"},
           Case{in_group("{name: a, memory: 2Pi}"), "memory: is more than 1Pi"},
           Case{in_group("{name: a, memory: " + fraction + "}"), "memory: "},
           Case{in_group("{name: a, memory: {}}"), "memory: \"{}\" is no quantity"},
           Case{in_group("{name: a, pods: 0}"), "pods: must be a whole number from 1 to 10000"},
           Case{in_group("{name: a, labels: [x]}"), "labels: must be a mapping"},
           Case{in_group("{name: a, labels: {x: 5}}"),
                "labels.x: the value must be text; quote it"},
           Case{in_group("{name: a, labels: {'a b': x}}"), "labels.a b: "},
           Case{in_group("{name: a, taints: {}}"), "taints: must be a list"},
           Case{in_group("{name: a, taints: [{key: x}]}"), "taints[0].effect: must be NoSchedule"},
           Case{in_group("{name: a, taints: [{effect: NoSchedule}]}"), "taints[0].key: "},
           Case{in_group("{name: a, taints: [{key: x, value: 3, effect: NoSchedule}]}"),
                "taints[0].value: must be text"},
           Case{in_group("{name: a, taints: [{key: x, efect: NoSchedule}]}"),
                "taints[0].efect: no such key"},
           Case{in_group("{name: a, mig: {1g.18gb: 7}}"),
                "mig: a node without a GPU model cannot be cut"},
           Case{in_group("{name: a, model: L4, mig: {1g.5gb: 1}}"),
                "mig: L4 cannot be cut into MIG instances"},
           Case{in_group("{name: a, model: H200, mig: 7}"), "mig: must map profiles to counts"},
           Case{in_group("{name: a, model: H200, mig: {}}"), "mig: must map profiles to counts"},
           Case{in_group("{name: a, model: H200, mig: {1g.18gb: 9}}"),
                "mig: 1g.18gb: the count must be 0 to 8"},
           Case{in_group("{name: a, model: H200, mig: {big: 1}}"), "mig: "},
           Case{in_group("{name: a, model: A100-80, mig: {3g.40gb: 3}}"), "mig: "},
           Case{in_group("{name: a, model: H200, mig: [{profiles: {1g.18gb: 1}}]}"),
                "mig[0].gpus: must list"},
           Case{in_group("{name: a, model: H200, mig: [{gpus: [8], profiles: {1g.18gb: 1}}]}"),
                "mig[0].gpus: 8 is no GPU of this node; they are 0 to 7"},
           Case{in_group("{name: a, model: H200, mig: [{gpus: [0]}]}"),
                "mig[0].profiles: must map profiles"},
           Case{in_group("{name: a, replicas: 4}"), "replicas: needs a model"},
           Case{in_group("{name: a, model: L4, replicas: 65}"),
                "replicas: must be a whole number from 1 to 64"},
           Case{in_group("{name: a, model: A100-80, replicas: 2, mig: {1g.10gb: 1}}"),
                "replicas: cannot stand beside mig"},
       }) {
    const auto fleet = parse_fleet(c.text);
    ASSERT_FALSE(fleet) << c.text;
    EXPECT_EQ(fleet.error().code, base::Code::kBadRequest) << c.text;
    EXPECT_THAT(fleet.error().message, HasSubstr(c.says)) << c.text;
  }
}

TEST(Fleet, The_default_fleet_is_good_for_any_number_of_nodes) {
  for (int nodes = 1; nodes <= 40; ++nodes) {
    const Fleet fleet = default_fleet(nodes);
    EXPECT_EQ(fleet.nodes.size(), static_cast<size_t>(nodes));
    EXPECT_GT(fleet.gpus(), 0) << nodes;
  }
  EXPECT_EQ(default_fleet(1000).nodes.size(), 1000U);
}

TEST(Fleet, Devices_are_gpus_slices_or_replicas_with_ids_that_stay) {
  const std::string text = R"(
racks:
  - name: r
    nodes:
      - {name: mig, model: A100-80, gpus: 2, mig: [{gpus: [0], profiles: {1g.10gb: 4, 3g.40gb: 1}}]}
      - {name: shared, model: L40S, gpus: 2, replicas: 4}
      - {name: amd, model: MI300X}
)";
  const Fleet fleet = fleet_of(text);
  std::map<std::string, int> count;
  std::set<std::string> ids;
  for (const FleetNode& node : fleet.nodes) {
    for (const Device& device : node.devices) {
      ++count[node.name + " " + device.resource];
      EXPECT_TRUE(ids.insert(device.id).second) << device.id;
    }
  }
  EXPECT_EQ(count["mig-0 nvidia.com/mig-1g.10gb"], 4);
  EXPECT_EQ(count["mig-0 nvidia.com/mig-3g.40gb"], 1);
  EXPECT_EQ(count["mig-0 nvidia.com/gpu"], 1);
  EXPECT_EQ(count["shared-0 nvidia.com/gpu.shared"], 8);
  EXPECT_EQ(count["amd-0 amd.com/gpu"], 8);
  EXPECT_THAT(fleet.nodes[0].devices[0].id, StartsWith("MIG-"));
  EXPECT_EQ(fleet.nodes[0].devices[0].id, fleet_of(text).nodes[0].devices[0].id);
}

TEST(Fleet, Node_objects_are_as_the_kubelet_and_feature_discovery_write_them) {
  const Fleet fleet = fleet_of(R"(
racks:
  - name: r
    nodes:
      - {name: whole, model: H200, cpu: 1500m, memory: 64Gi, labels: {pool: x}, taints: [{key: k, effect: NoExecute}]}
      - {name: mixed, model: A100-80, gpus: 3, mig: [{gpus: [1], profiles: {1g.10gb: 7}}]}
)");
  const kube::Object object(node_object(fleet.nodes[0], base::Time{0}));
  auto node = kube::decode_node(object);
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_TRUE(node->ready());
  EXPECT_EQ(kube::amount_of(node->capacity, "nvidia.com/gpu").value(), 8);
  EXPECT_EQ(kube::amount_of(node->allocatable, "cpu").to_string(), "1500m");
  EXPECT_EQ(kube::amount_of(node->allocatable, "memory").value(), int64_t{64} << 30);
  EXPECT_EQ(node->taints.size(), 1U);
  EXPECT_EQ(object.label("nvidia.com/gpu.count"), "8");
  EXPECT_EQ(object.label("kubernetes.io/hostname"), "whole-0");
  EXPECT_TRUE(gpu::find_model(object.label("nvidia.com/gpu.product")) == fleet.nodes[0].model);
  EXPECT_EQ(object.annotation("tessera.dev/gpu-indexes"), "") << "all are whole";
  const kube::Object mixed(node_object(fleet.nodes[1], base::Time{0}));
  EXPECT_EQ(mixed.annotation("tessera.dev/gpu-indexes"), "0,2");
  EXPECT_EQ(mixed.label("nvidia.com/mig.strategy"), "mixed");
}

}  // namespace
}  // namespace tessera::sim
