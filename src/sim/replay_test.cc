#include "sim/replay.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"
#include "sim/report.h"
#include "sim/trace_synthetic.h"
#include "source_dir.h"

namespace tessera::sim {
namespace {

using scheduler::core::Policy;

TraceWorkload two_nodes() {
  TraceWorkload workload;
  workload.name = "small";
  workload.nodes = {{"a", 8'000, 10'000, 2, "X"}, {"b", 8'000, 10'000, 2, "Y"}};
  workload.pods = {{"p0", 1'000, 1'000, 1, 1000, {}},
                   {"p1", 1'000, 1'000, 1, 1000, {"Y"}},
                   {"p2", 1'000, 1'000, 2, 1000, {}},
                   {"p3", 1'000, 1'000, 1, 500, {}}};
  workload.arrivals = {{7, {0, 1, 2, 3, 3, 3}, {0, 1}}};
  return workload;
}

TEST(Replay, CountsLoadAllocationAndFailures) {
  TraceWorkload workload = two_nodes();
  ReplayRun run = run_one(workload, {Policy::kBestFit, workload.arrivals[0]}, 200);
  // p0 -> a, p1 -> b, p2 fails, p3 and p3 share the GPU left on one node, p3 takes the last.
  EXPECT_EQ(run.failed, 1);
  EXPECT_EQ(run.arrived, 6);
  EXPECT_EQ(run.load, (std::vector<int>{25, 50, 100, 112, 125, 138}));
  EXPECT_EQ(run.allocation, (std::vector<double>{25, 50, 50, 62.5, 75, 87.5}));
  EXPECT_EQ(run.allocation_at(99), 50);
  EXPECT_EQ(run.allocation_at(10), 0);
  EXPECT_EQ(run.workload, "small");
  EXPECT_EQ(run.policy, "bestfit");
}

TEST(Replay, StopsAtTheLoadAsked) {
  TraceWorkload workload = two_nodes();
  ReplayRun run = run_one(workload, {Policy::kFgd, workload.arrivals[0]}, 100);
  EXPECT_EQ(run.load.back(), 100);
  EXPECT_EQ(run.arrived, 3);
}

TEST(Replay, TheRankOfNodesBreaksTies) {
  TraceWorkload workload = two_nodes();
  workload.pods = {{"p0", 1'000, 1'000, 1, 1000, {}}};
  Arrivals arrivals{1, {0}, {1, 0}};
  ReplayRun forward = run_one(workload, {Policy::kFgd, arrivals}, 100);
  EXPECT_EQ(forward.failed, 0);
  workload.pods[0].models = {"X"};
  workload.nodes[0].cpu_milli = 0;  // the only node of model X is full
  EXPECT_EQ(run_one(workload, {Policy::kFgd, arrivals}, 100).failed, 1);
}

TEST(Replay, TheSameSeedGivesTheSameRunForEveryPolicy) {
  TraceWorkload workload = synthetic_workload(60, 3);
  for (Policy policy : scheduler::core::all_policies()) {
    PlannedRun planned{policy, generate_arrivals(workload.nodes, workload.pods, 5, 130)};
    ReplayRun one = run_one(workload, planned, 130);
    ReplayRun two = run_one(workload, planned, 130);
    EXPECT_EQ(one.allocation, two.allocation);
    EXPECT_EQ(one.fragmentation, two.fragmentation);
    EXPECT_EQ(one.load.back(), 130);
    EXPECT_GT(one.allocation_at(130), 60);
    EXPECT_LE(one.allocation_at(130) + one.fragmentation_at(130), 100.5);
  }
}

TEST(Replay, OptionsThatMakeNoSenseAreRefused) {
  TraceWorkload workload = two_nodes();
  ReplayOptions options;
  options.seeds = {8};
  EXPECT_EQ(plan_runs(workload, options).error().message,
            "the arrivals file has no seed 8: choose from 7");
  options.seeds = {};
  EXPECT_EQ(plan_runs(workload, options)->size(), 1U);
  options.load_percent = 0;
  EXPECT_EQ(plan_runs(workload, options).error().message, "load is 0: must be 1 to 1000 percent");
  options.load_percent = 130;
  options.policies = {};
  EXPECT_FALSE(plan_runs(workload, options));
  options.policies = {Policy::kFgd};
  for (TraceNode& node : workload.nodes) node.gpus = 0;
  EXPECT_FALSE(plan_runs(workload, options));
}

TEST(Replay, ReadsFilesMeasuresAndReportsProgress) {
  base::TempDir dir;
  ASSERT_TRUE(base::write_file(dir.path() + "/n.csv",
                               "sn,cpu_milli,memory_mib,gpu,model\na,8000,10000,2,X\n"));
  ASSERT_TRUE(
      base::write_file(dir.path() + "/openb_pod_list_tiny.csv",
                       "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1000,1,1000\n"));
  ReplayOptions options;
  options.nodes_path = dir.path() + "/n.csv";
  options.pods_path = dir.path() + "/openb_pod_list_tiny.csv";
  options.policies = {Policy::kFgd, Policy::kRandom};
  options.seeds = {1, 2};
  base::ManualClock clock;
  int calls = 0;
  ReplayHooks hooks{&clock, [] { return 12.5; },
                    [&](const ReplayProgress& progress) {
                      EXPECT_EQ(progress.runs, 4U);
                      ++calls;
                      clock.advance(base::seconds(1));
                    }};
  auto report = run_replay(options, hooks);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->runs.size(), 4U);
  EXPECT_EQ(report->gpus, 2);
  EXPECT_EQ(report->runs[3].policy, "random");
  EXPECT_EQ(report->runs[3].seed, 2U);
  EXPECT_EQ(report->runs[0].workload, "tiny");
  EXPECT_EQ(report->runs[0].peak_rss_mb, 12.5);
  EXPECT_EQ(calls, 4);
}

// --- the published results -----------------------------------------------------------------------------------------

std::string openb_path() {
  const char* shared = std::getenv("TESSERA_SHARED");
  std::string root = shared ? shared : std::string(TESSERA_SOURCE_DIR) + "/../shared";
  return root + "/data/openb/";
}

// seed -> (allocation at 100, at 130)
std::map<uint64_t, std::pair<double, double>> published(const std::string& workload,
                                                        const std::string& policy) {
  std::map<uint64_t, std::pair<double, double>> by_seed;
  auto text = base::read_file(openb_path() + "expected_results/analysis_allo_discrete.csv");
  if (!text) return by_seed;
  std::istringstream lines(*text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream row(line);
    std::vector<std::string> cells;
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    if (cells.size() < 136 || cells[0] != "openb_pod_list_" + workload || cells[1] != policy)
      continue;
    by_seed[std::stoull(cells[3])] = {std::stod(cells[105]), std::stod(cells[135])};
  }
  return by_seed;
}

struct Published {
  std::string workload;
  Policy policy;
  std::string name;
};

class Reproduction : public ::testing::TestWithParam<Published> {};

// One seed: the order of arrival is the published one, the order of nodes is another draw, so that a single run may
// differ by what the node order is worth.
TEST_P(Reproduction, OneSeedComesOutAsPublished) {
  const auto& [workload, policy, name] = GetParam();
  auto want = published(workload, name);
  if (want.empty()) GTEST_SKIP() << "no trace under " << openb_path() << ": set TESSERA_SHARED";
  ReplayOptions options;
  options.nodes_path = openb_path() + "openb_node_list_gpu_node.csv";
  options.pods_path = openb_path() + "openb_pod_list_" + workload + ".csv";
  options.arrivals_path = openb_path() + "arrivals/" + workload + ".seq.gz";
  options.policies = {policy};
  options.seeds = {42};
  auto report = run_replay(options, {});
  ASSERT_TRUE(report) << report.error().message;
  const ReplayRun& run = report->runs.front();
  EXPECT_NEAR(run.allocation_at(100), want[42].first, 0.3);
  EXPECT_NEAR(run.allocation_at(130), want[42].second, 0.3);
  EXPECT_EQ(run.load.front(), 0);
  EXPECT_EQ(run.load.back(), 130);
}

INSTANTIATE_TEST_SUITE_P(Openb, Reproduction,
                         ::testing::Values(Published{"default", Policy::kFgd, "06-FGD"},
                                           Published{"default", Policy::kBestFit, "05-BestFit"},
                                           Published{"multigpu50", Policy::kFgd, "06-FGD"},
                                           Published{"gpushare100", Policy::kFgd, "06-FGD"}),
                         [](const auto& p) {
                           return p.param.workload + "_" + std::string(name_of(p.param.policy));
                         });

// --- reports -------------------------------------------------------------------------------------------------------

ReplayReport small_report() {
  ReplayReport report;
  report.nodes = 2;
  report.gpus = 4;
  for (uint64_t seed : {1, 2}) {
    ReplayRun run;
    run.workload = "a<b";
    run.policy = "fgd";
    run.seed = seed;
    run.seconds = 0.5;
    run.load = {0, 90, 100};
    run.allocation = {0, 80, seed == 1 ? 90.0 : 92.0};
    run.fragmentation = {10, 5, 4};
    run.failed = 3;
    report.runs.push_back(run);
  }
  return report;
}

TEST(Report, JsonHasExactlyTheAgreedMembers) {
  EXPECT_EQ(
      report_json(small_report())["runs"].at(0).dump(),
      "{\"allocation\":[0,80,90],\"failed\":3,\"fragmentation\":[10,5,4],\"load\":[0,90,100],"
      "\"peak_rss_mb\":0,\"policy\":\"fgd\",\"seconds\":0.5,\"seed\":1,\"workload\":\"a<b\"}");
}

TEST(Report, TableShowsMeansOverSeedsAndNothingBeyondTheLoad) {
  std::string table = report_table(small_report());
  EXPECT_NE(
      table.find(
          "a<b            fgd             2   0.00  80.00  80.00  91.00      -      -      -"),
      std::string::npos)
      << table;
}

TEST(Report, PageIsSelfContainedAndEscaped) {
  std::string page = report_html(small_report());
  EXPECT_NE(page.find("Workload a&lt;b"), std::string::npos);
  EXPECT_EQ(page.find("a<b"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_NE(page.find("<polyline"), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
}

}  // namespace
}  // namespace tessera::sim
