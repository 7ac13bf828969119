#include "sim/replay_api.h"

#include <gtest/gtest.h>

#include "kube/node.h"
#include "kube/pod.h"
#include "sim/trace_synthetic.h"

namespace tessera::sim {
namespace {

PlannedRun planned(const TraceWorkload& workload) {
  ReplayOptions options;
  options.load_percent = 60;
  auto runs = plan_runs(workload, options);
  EXPECT_TRUE(runs) << runs.error().message;
  return runs->front();
}

TEST(ReplayApi, Nodes_are_named_in_the_order_in_which_ties_are_broken) {
  const TraceWorkload workload = synthetic_workload(6, 1);
  const PlannedRun run = planned(workload);
  const Fleet fleet = fleet_of(workload, run.arrivals.node_rank);
  ASSERT_EQ(fleet.nodes.size(), workload.nodes.size());
  for (size_t i = 0; i < workload.nodes.size(); ++i) {
    const FleetNode& node = fleet.nodes[run.arrivals.node_rank[i]];
    EXPECT_EQ(node.cpu_milli, workload.nodes[i].cpu_milli);
    EXPECT_EQ(node.gpus, workload.nodes[i].gpus);
    EXPECT_EQ(node.name, fmt::format("n-{:06}", run.arrivals.node_rank[i]));
  }
  EXPECT_TRUE(kube::decode_node(kube::Object(node_object(fleet.nodes[0], base::Time{0}))));
}

TEST(ReplayApi, Pods_ask_for_what_the_trace_says) {
  TracePod whole;
  whole.cpu_milli = 1500;
  whole.memory_mib = 512;
  whole.gpus = 2;
  whole.gpu_milli = 1000;
  whole.models = {"T4", "P100"};
  const kube::Object object(pod_of(whole, 17));
  auto pod = kube::decode_pod(object);
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(object.name(), "p17");
  EXPECT_EQ(kube::amount_of(pod->containers[0].requests, "nvidia.com/gpu").value(), 2);
  EXPECT_EQ(kube::amount_of(pod->containers[0].requests, "cpu").to_string(), "1500m");
  EXPECT_EQ(object.annotation("tessera.dev/gpu-model"), "T4|P100");
  TracePod share;
  share.gpus = 1;
  share.gpu_milli = 250;
  const kube::Object shared(pod_of(share, 0));
  EXPECT_EQ(shared.annotation("tessera.dev/gpu-milli"), "250");
  EXPECT_FALSE(
      shared.get("spec", "containers").at(0)["resources"]["limits"].contains("nvidia.com/gpu"));
}

TEST(ReplayApi, The_api_places_as_the_core_alone_does) {
  const TraceWorkload workload = synthetic_workload(8, 3);
  const PlannedRun run = planned(workload);
  const base::SystemClock clock;
  base::LoopThread commits("commits"), scheduler("scheduler"), kubelets("kubelets"),
      driver("driver");
  ApiReplayParts parts{"", &clock, &commits, &scheduler, &kubelets, &driver};
  const auto through = run_through_api(workload, run, 60, parts);
  ASSERT_TRUE(through) << through.error().message;
  EXPECT_EQ(through->pods, arrivals_within(workload, run, 60));
  EXPECT_EQ(through->running + through->waiting, through->pods);
  EXPECT_GT(through->running, 0U);
  // Up to 60 % nearly all find a place, whatever the order in which the API took them.
  const ReplayRun alone = run_one(workload, run, 60);
  EXPECT_NEAR(through->run.allocation_at(60), alone.allocation_at(60), 5.0);
}

}  // namespace
}  // namespace tessera::sim
