#include "sim/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sim/trace_synthetic.h"

namespace tessera::sim {
namespace {

constexpr std::string_view kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "node-b,64000,262144,2,P100\n"
    "node-a,96000,393216,8,G2\n";
constexpr std::string_view kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
    "pod-2,1000,1024,1,460,T4|G2,LS\n"
    "pod-1,2000,2048,2,1000,,BE\r\n";

struct BadText {
  std::string name;
  std::string text;
  std::string message;
};

TEST(Trace, RowsAreReadByColumnNameAndSortedByName) {
  auto nodes = parse_trace_nodes(kNodes, "n.csv");
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(nodes->front().name, "node-a");
  EXPECT_EQ(gpu_milli_total(*nodes), 10'000);
  auto pods = parse_trace_pods(kPods, "p.csv");
  ASSERT_TRUE(pods) << pods.error().message;
  EXPECT_EQ((*pods)[0].name, "pod-1");
  EXPECT_TRUE((*pods)[0].models.empty());
  EXPECT_EQ((*pods)[1].models, (std::vector<std::string>{"G2", "T4"}));
  EXPECT_EQ((*pods)[1].gpu_milli, 460);
}

class BadPods : public ::testing::TestWithParam<BadText> {};

TEST_P(BadPods, AreRefusedWithPlaceAndMend) {
  auto pods = parse_trace_pods(GetParam().text, "p.csv");
  ASSERT_FALSE(pods);
  EXPECT_EQ(pods.error().message, GetParam().message);
}

const std::string kHead = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";

INSTANTIATE_TEST_SUITE_P(
    Table, BadPods,
    ::testing::Values(
        BadText{"empty", "", "p.csv:1: the file is empty: the first line must name the columns"},
        BadText{"no_rows", kHead, "p.csv:2: there is no pod: add one row a pod"},
        BadText{"no_column", "name,cpu_milli\nx,1\n",
                "p.csv:1: there is no column \"memory_mib\": the header must name it"},
        BadText{"column_twice", "name,name\n",
                "p.csv:1: column \"name\" stands twice: name each column once"},
        BadText{"short_row", kHead + "a,1,1,1,1000\nb,1,1\n",
                "p.csv:3: the row has 3 fields: it must have 5, as the header"},
        BadText{"not_a_number", kHead + "a,1x,1,1,1000\n",
                "p.csv:2: cpu_milli is \"1x\": must be a whole number from 0 to 1000000000000"},
        BadText{"negative", kHead + "a,1,-1,1,1000\n",
                "p.csv:2: memory_mib is \"-1\": must be a whole number from 0 to 1000000000000"},
        BadText{"beyond_int64", kHead + "a,99999999999999999999,1,1,1000\n",
                "p.csv:2: cpu_milli is \"99999999999999999999\": must be a whole number from 0 to "
                "1000000000000"},
        BadText{"too_many_gpus", kHead + "a,1,1,17,1000\n",
                "p.csv:2: num_gpu is \"17\": must be a whole number from 0 to 16"},
        BadText{"share_above_one", kHead + "a,1,1,1,1001\n",
                "p.csv:2: gpu_milli is \"1001\": must be a whole number from 0 to 1000"},
        BadText{"gpus_without_milli", kHead + "a,1,1,1,0\n",
                "p.csv:2: gpu_milli is \"0\": with GPUs asked for it must be 1 to 1000"},
        BadText{"milli_without_gpus", kHead + "a,1,1,0,500\n",
                "p.csv:2: gpu_milli is \"500\": with num_gpu 0 it must be 0"},
        BadText{"name_twice", kHead + "a,1,1,0,0\na,1,1,0,0\n",
                "p.csv:3: name is \"a\": it stands on line 2 already: names must be unique"},
        BadText{"no_name", kHead + ",1,1,0,0\n", "p.csv:2: name is \"\": must not be empty"},
        BadText{"quotes", kHead + "\"a\",1,1,0,0\n",
                "p.csv:2: field 1 is \"\"a\"\": write fields without quotes or zero bytes"},
        BadText{"blank_line_inside", kHead + "a,1,1,0,0\n\nb,1,1,0,0\n",
                "p.csv:3: the row has 1 fields: it must have 5, as the header"},
        BadText{"binary", kHead + "a,\x01\xff,1,0,0\n",
                "p.csv:2: cpu_milli is \"??\": must be a whole number from 0 to 1000000000000"}),
    [](const auto& p) { return p.param.name; });

TEST(Trace, ABrokenModelListIsRefused) {
  std::string head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";
  for (std::string spec : {"|", "G2|", "|G2", "G2||T4"}) {
    auto pods = parse_trace_pods(head + "a,1,1,1,1000," + spec + "\n", "p.csv");
    ASSERT_FALSE(pods) << spec;
    EXPECT_EQ(pods.error().message,
              "p.csv:2: gpu_spec is \"" + spec + "\": model names must be joined by one '|'");
  }
}

TEST(Trace, AFieldOfAMegabyteIsRefused) {
  auto pods = parse_trace_pods(kHead + std::string(1 << 20, 'a') + ",1,1,0,0\n", "p.csv");
  ASSERT_FALSE(pods);
  EXPECT_EQ(pods.error().code, base::Code::kTooLarge);
  EXPECT_EQ(pods.error().message, "p.csv:2: field 1 has 1048576 characters: the limit is 256");
}

TEST(Trace, NodesWithGpusNameTheirModel) {
  auto nodes = parse_trace_nodes("sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,\n", "n.csv");
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().message,
            "n.csv:2: model is \"\": a node with GPUs must name their model");
}

TEST(Arrivals, ThreeLinesASeed) {
  auto arrivals = parse_arrivals("S 42\n1 0 1 \n0 1\nS 43\n0\n1 0\n", "a", 2, 2);
  ASSERT_TRUE(arrivals) << arrivals.error().message;
  ASSERT_EQ(arrivals->size(), 2U);
  EXPECT_EQ((*arrivals)[0].pods, (std::vector<uint32_t>{1, 0, 1}));
  EXPECT_EQ((*arrivals)[1].node_rank, (std::vector<uint32_t>{1, 0}));
}

class BadArrivals : public ::testing::TestWithParam<BadText> {};

TEST_P(BadArrivals, AreRefusedWithPlaceAndMend) {
  auto arrivals = parse_arrivals(GetParam().text, "a", 2, 2);
  ASSERT_FALSE(arrivals);
  EXPECT_EQ(arrivals.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadArrivals,
    ::testing::Values(
        BadText{"empty", "\n", "a:1: the file is empty: it must hold three lines a seed"},
        BadText{"no_seed", "42\n", "a:1: the line is \"42\": must be \"S <seed>\""},
        BadText{"negative_seed", "S -1\n", "a:1: the line is \"S -1\": must be \"S <seed>\""},
        BadText{"no_pods", "S 1\n", "a:2: no pod arrives: list pod indices"},
        BadText{"word", "S 1\n0 x\n", "a:2: number 2 is \"x\": must be a whole number"},
        BadText{"outside", "S 1\n0 2\n", "a:2: number 2 is 2: there are 2 pods, counted from 0"},
        BadText{"few_ranks", "S 1\n0\n0\n", "a:3: 1 ranks for 2 nodes: give each node one"},
        BadText{"many_ranks", "S 1\n0\n0 1 0 1\n", "a:3: more than 3 numbers"},
        BadText{"rank_twice", "S 1\n0\n1 1\n", "a:3: rank 1 stands twice: ranks must differ"},
        BadText{"seed_twice", "S 1\n0\n0 1\nS 1\n0\n0 1\n", "a:4: seed 1 stands twice: keep one"}),
    [](const auto& p) { return p.param.name; });

TEST(Arrivals, AMissingFileIsNamed) {
  auto workload = read_workload("/nonexistent/nodes.csv", "/nonexistent/pods.csv", "");
  ASSERT_FALSE(workload);
  EXPECT_NE(workload.error().message.find("/nonexistent/nodes.csv"), std::string::npos);
}

TEST(GeneratedArrivals, ReachTheLoadAndHoldEveryPodOnce) {
  TraceWorkload workload = synthetic_workload(40, 1);
  Arrivals arrivals = generate_arrivals(workload.nodes, workload.pods, 42, 130);
  int64_t asked = 0;
  for (uint32_t pod : arrivals.pods)
    asked += workload.pods[pod].gpus * workload.pods[pod].gpu_milli;
  int64_t target = gpu_milli_total(workload.nodes) / 100 * 130;
  EXPECT_GE(asked, target);
  EXPECT_LT(asked, target + 8'000);
  std::set<uint32_t> first(
      arrivals.pods.begin(),
      arrivals.pods.begin() + static_cast<std::ptrdiff_t>(workload.pods.size()));
  EXPECT_EQ(first.size(), workload.pods.size());
  EXPECT_EQ(generate_arrivals(workload.nodes, workload.pods, 42, 130).pods, arrivals.pods);
  EXPECT_NE(generate_arrivals(workload.nodes, workload.pods, 43, 130).pods, arrivals.pods);
}

TEST(GeneratedArrivals, AnOverfullListIsCut) {
  TraceWorkload workload = synthetic_workload(40, 1);
  Arrivals arrivals = generate_arrivals(workload.nodes, workload.pods, 42, 50);
  EXPECT_LT(arrivals.pods.size(), workload.pods.size());
}

TEST(GeneratedArrivals, PodsWithoutGpusAreOnlyShuffled) {
  auto nodes = parse_trace_nodes(kNodes, "n");
  auto pods = parse_trace_pods(kHead + "a,1,1,0,0\nb,1,1,0,0\n", "p");
  EXPECT_EQ(generate_arrivals(*nodes, *pods, 1, 130).pods.size(), 2U);
}

TEST(SyntheticWorkload, FollowsThePublishedDistribution) {
  int64_t pods = 0;
  for (const PublishedShape& shape : published_shapes()) pods += shape.pods;
  EXPECT_EQ(pods, 8152);
  EXPECT_EQ(published_shapes().size(), 91U);
  TraceWorkload workload = synthetic_workload(300, 9);
  auto shares = std::count_if(workload.pods.begin(), workload.pods.end(), [](const TracePod& pod) {
    return pod.gpus == 1 && pod.gpu_milli < 1000;
  });
  double part = static_cast<double>(shares) / static_cast<double>(workload.pods.size());
  EXPECT_NEAR(part, 3078.0 / 8152.0, 0.05);
}

}  // namespace
}  // namespace tessera::sim
