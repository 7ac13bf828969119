#include "sim/workload.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/lab_testing.h"

namespace tessera::sim {
namespace {

TEST(Workload, The_same_seed_draws_the_same_manifests) {
  Workload a{base::Random(5)};
  Workload b{base::Random(5)};
  Workload c{base::Random(6)};
  bool differs = false;
  for (int i = 0; i < 50; ++i) {
    const json::Value one = a.draw().object;
    EXPECT_EQ(one.dump(), b.draw().object.dump());
    differs |= one.dump() != c.draw().object.dump();
  }
  EXPECT_TRUE(differs);
}

TEST(Workload, Every_manifest_is_taken_by_the_api_and_every_kind_of_ask_occurs) {
  Lab lab("racks: [{name: r, nodes: [{name: node, cpu: 1}]}]");
  for (const Drawn& needed : Workload::priority_classes()) ASSERT_TRUE(lab.create(needed.object));
  Workload workload{base::Random(1)};
  std::string all;
  std::set<std::string> kinds;
  for (int i = 0; i < 300; ++i) {
    const Drawn drawn = workload.draw();
    kinds.insert(drawn.gvr.resource);
    all += drawn.object.dump();
    const auto made = lab.create(drawn.object);
    ASSERT_TRUE(made) << made.error().message << "\n" << drawn.object.dump();
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"deployments", "jobs", "pods"}));
  for (const char* part :
       {"nvidia.com/gpu\":\"16\"", "gpu-milli", "gpu-fraction", "nvidia.com/mig-", "gpu.shared",
        "initContainers", "\"restartPolicy\":\"Always\"", "exit-code", "stop-after", "urgent",
        "spare"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace tessera::sim
