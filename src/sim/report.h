// What a replay found, as JSON, as a table for the terminal, and as a web page with curves.
//
// Shape:   JSON {"runs":[{"workload","policy","seed","seconds","peak_rss_mb","load","allocation","fragmentation",
//          "failed"}]}. The page is one file without outside links; its curves are means over seeds.
// Units:   percent of all GPUs, at whole percents of arrived load.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"
#include "sim/replay.h"

namespace tessera::sim {

json::Value report_json(const ReplayReport& report);
std::string report_table(const ReplayReport& report);
std::string report_html(const ReplayReport& report);

// The runs of one workload and policy, averaged over seeds: what table and page show.
struct ReplayMean {
  std::string workload;
  std::string policy;
  int seeds = 0;
  double failed = 0;
  double seconds = 0;
  std::vector<int> load;
  std::vector<double> allocation;
  std::vector<double> fragmentation;
};
std::vector<ReplayMean> means_over_seeds(const ReplayReport& report);

}  // namespace tessera::sim
