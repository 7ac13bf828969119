#include "sim/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace tessera::sim {
namespace {

constexpr std::array<int, 7> kColumns = {85, 90, 95, 100, 110, 120, 130};

json::Value numbers(const std::vector<double>& values) {
  json::Value array = json::Value::array();
  array.reserve(values.size());
  for (double value : values) array.push_back(value);
  return array;
}

double value_at(const ReplayMean& mean, const std::vector<double>& values, int percent) {
  auto above = std::upper_bound(mean.load.begin(), mean.load.end(), percent);
  return above == mean.load.begin() ? 0.0
                                    : values[static_cast<size_t>(above - mean.load.begin() - 1)];
}

bool reaches(const ReplayMean& mean, int percent) {
  return !mean.load.empty() && mean.load.back() >= percent;
}

ReplayMean mean_of(const std::vector<const ReplayRun*>& runs) {
  ReplayMean mean;
  mean.workload = runs.front()->workload;
  mean.policy = runs.front()->policy;
  mean.seeds = static_cast<int>(runs.size());
  double count = static_cast<double>(runs.size());
  int last = 0;
  for (const ReplayRun* run : runs) {
    mean.failed += static_cast<double>(run->failed) / count;
    mean.seconds += run->seconds / count;
    if (!run->load.empty()) last = std::max(last, run->load.back());
  }
  for (int percent = 0; percent <= last; ++percent) {
    double allocation = 0;
    double fragmentation = 0;
    for (const ReplayRun* run : runs) {
      allocation += run->allocation_at(percent) / count;
      fragmentation += run->fragmentation_at(percent) / count;
    }
    mean.load.push_back(percent);
    mean.allocation.push_back(allocation);
    mean.fragmentation.push_back(fragmentation);
  }
  return mean;
}

void append_table(std::string& out, const std::vector<ReplayMean>& means, std::string_view title,
                  std::vector<double> ReplayMean::* values) {
  fmt::format_to(std::back_inserter(out), "{}\n{:<14} {:<11} {:>5}", title, "workload", "policy",
                 "seeds");
  for (int column : kColumns)
    fmt::format_to(std::back_inserter(out), " {:>6}", fmt::format("@{}", column));
  out += "   failed  s/run\n";
  for (const ReplayMean& mean : means) {
    fmt::format_to(std::back_inserter(out), "{:<14} {:<11} {:>5}", mean.workload, mean.policy,
                   mean.seeds);
    for (int column : kColumns) {
      if (reaches(mean, column)) {
        fmt::format_to(std::back_inserter(out), " {:>6.2f}", value_at(mean, mean.*values, column));
      } else {
        out += "      -";
      }
    }
    fmt::format_to(std::back_inserter(out), " {:>8.1f} {:>6.3f}\n", mean.failed, mean.seconds);
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// One set of axes with a curve a policy.
class Chart {
 public:
  Chart(std::string title, int load_max, double value_max)
      : title_(std::move(title)), load_max_(std::max(10, load_max)), value_max_(value_max) {}

  std::string draw(const std::vector<ReplayMean>& means,
                   std::vector<double> ReplayMean::* values) const {
    std::string out = fmt::format(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" "
        "aria-label=\"{}\">\n",
        escaped(title_), kWidth, kHeight, escaped(title_));
    draw_axes(out);
    for (size_t i = 0; i < means.size(); ++i) draw_curve(out, means[i], means[i].*values, i);
    draw_legend(out, means);
    return out + "</svg></figure>\n";
  }

 private:
  static constexpr int kWidth = 860;
  static constexpr int kHeight = 430;
  static constexpr int kLeft = 56;
  static constexpr int kRight = 150;
  static constexpr int kTop = 14;
  static constexpr int kBottom = 46;

  double x(double load) const { return kLeft + load / load_max_ * (kWidth - kLeft - kRight); }
  double y(double value) const {
    return kHeight - kBottom - value / value_max_ * (kHeight - kTop - kBottom);
  }

  void draw_axes(std::string& out) const {
    auto add = std::back_inserter(out);
    double step = value_max_ > 40 ? 20 : value_max_ > 15 ? 5 : 2;
    for (double v = 0; v <= value_max_ + 1e-9; v += step) {
      fmt::format_to(
          add,
          "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
          "<text class=\"tick\" x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.0f}</text>\n",
          kLeft, kWidth - kRight, y(v), kLeft - 8, y(v) + 4, v);
    }
    for (int load = 0; load <= load_max_; load += load_max_ > 60 ? 20 : 10) {
      fmt::format_to(
          add, "<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
          x(load), kHeight - kBottom + 20, load);
    }
    fmt::format_to(
        add,
        "<text class=\"name\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">arrived load, % of all "
        "GPUs</text>\n",
        x(load_max_ / 2.0), kHeight - 6);
  }

  void draw_curve(std::string& out, const ReplayMean& mean, const std::vector<double>& values,
                  size_t index) const {
    auto add = std::back_inserter(out);
    fmt::format_to(add, "<polyline class=\"curve c{}\" points=\"", index % 6);
    for (size_t i = 0; i < mean.load.size(); ++i) {
      fmt::format_to(add, "{:.1f},{:.1f} ", x(mean.load[i]), y(std::min(values[i], value_max_)));
    }
    fmt::format_to(add, "\"><title>{}</title></polyline>\n", escaped(label(mean)));
  }

  void draw_legend(std::string& out, const std::vector<ReplayMean>& means) const {
    for (size_t i = 0; i < means.size(); ++i) {
      double at = kTop + 12 + 20.0 * static_cast<double>(i);
      fmt::format_to(std::back_inserter(out),
                     "<line class=\"curve c{0}\" x1=\"{1}\" x2=\"{2}\" y1=\"{3}\" y2=\"{3}\"/>"
                     "<text class=\"key\" x=\"{4}\" y=\"{5}\">{6}</text>\n",
                     i % 6, kWidth - kRight + 12, kWidth - kRight + 34, at, kWidth - kRight + 40,
                     at + 4, escaped(label(means[i])));
    }
  }

  static std::string label(const ReplayMean& mean) { return mean.policy; }

  std::string title_;
  int load_max_;
  double value_max_;
};

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6570; --line: #d9dee3; --page: #ffffff;
  --c0: #0b5fff; --c1: #c2410c; --c2: #15803d; --c3: #9333ea; --c4: #be123c; --c5: #4b5563; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf0; --soft: #9aa5b1; --line: #333b44; --page: #14181d;
  --c0: #6ea8ff; --c1: #fb923c; --c2: #4ade80; --c3: #c084fc; --c4: #fb7185; --c5: #b6bfc9; } }
body { margin: 2rem auto; max-width: 58rem; padding: 0 1rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } p { color: var(--soft); }
figure { margin: 1.2rem 0; } figcaption { font-weight: 600; margin-bottom: .3rem; } svg { width: 100%; height: auto; }
.grid { stroke: var(--line); } .tick, .name { fill: var(--soft); font-size: 12px; } .key { fill: var(--ink); font-size: 13px; }
.curve { fill: none; stroke-width: 2; } .c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); }
.c3 { stroke: var(--c3); } .c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); stroke-dasharray: 5 3; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
)css";

void append_html_table(std::string& out, const std::vector<ReplayMean>& means) {
  auto add = std::back_inserter(out);
  out += "<div class=\"wide\"><table><thead><tr><th>policy</th><th>seeds</th>";
  for (int column : kColumns) fmt::format_to(add, "<th>@{}</th>", column);
  out += "<th>failed</th></tr></thead><tbody>\n";
  for (const ReplayMean& mean : means) {
    fmt::format_to(add, "<tr><td>{}</td><td>{}</td>", escaped(mean.policy), mean.seeds);
    for (int column : kColumns) {
      if (reaches(mean, column)) {
        fmt::format_to(add, "<td>{:.2f}</td>", value_at(mean, mean.allocation, column));
      } else {
        out += "<td>–</td>";
      }
    }
    fmt::format_to(add, "<td>{:.1f}</td></tr>\n", mean.failed);
  }
  out += "</tbody></table></div>\n";
}

double highest(const std::vector<ReplayMean>& means, std::vector<double> ReplayMean::* values) {
  double high = 0;
  for (const ReplayMean& mean : means) {
    for (double value : mean.*values) high = std::max(high, value);
  }
  return high;
}

void append_workload(std::string& out, const std::vector<ReplayMean>& means) {
  int load_max = 0;
  for (const ReplayMean& mean : means) {
    if (!mean.load.empty()) load_max = std::max(load_max, mean.load.back());
  }
  fmt::format_to(std::back_inserter(out), "<h2>Workload {}</h2>\n",
                 escaped(means.front().workload));
  out += Chart("GPU allocation, % of all GPUs", load_max, 100).draw(means, &ReplayMean::allocation);
  double frag_max = std::max(4.0, highest(means, &ReplayMean::fragmentation) * 1.1);
  out += Chart("Fragmented idle GPU, % of all GPUs", load_max, frag_max)
             .draw(means, &ReplayMean::fragmentation);
  out += "<p>Allocation at arrived load (mean over seeds)</p>\n";
  append_html_table(out, means);
}

}  // namespace

std::vector<ReplayMean> means_over_seeds(const ReplayReport& report) {
  std::vector<std::vector<const ReplayRun*>> groups;
  for (const ReplayRun& run : report.runs) {
    auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.front()->workload == run.workload && group.front()->policy == run.policy;
    });
    if (same == groups.end()) same = groups.insert(same, std::vector<const ReplayRun*>());
    same->push_back(&run);
  }
  std::vector<ReplayMean> means;
  for (const auto& group : groups) means.push_back(mean_of(group));
  return means;
}

json::Value report_json(const ReplayReport& report) {
  json::Value runs = json::Value::array();
  for (const ReplayRun& run : report.runs) {
    json::Value load = json::Value::array();
    for (int percent : run.load) load.push_back(percent);
    runs.push_back(json::Value::object({{"workload", run.workload},
                                        {"policy", run.policy},
                                        {"seed", run.seed},
                                        {"seconds", run.seconds},
                                        {"peak_rss_mb", run.peak_rss_mb},
                                        {"load", load},
                                        {"allocation", numbers(run.allocation)},
                                        {"fragmentation", numbers(run.fragmentation)},
                                        {"failed", run.failed}}));
  }
  return json::Value::object({{"runs", runs}});
}

std::string report_table(const ReplayReport& report) {
  std::vector<ReplayMean> means = means_over_seeds(report);
  std::string out =
      fmt::format("{} nodes, {} GPUs; means over seeds, % of all GPUs at arrived load\n\n",
                  report.nodes, report.gpus);
  append_table(out, means, "allocation", &ReplayMean::allocation);
  out += '\n';
  append_table(out, means, "fragmentation", &ReplayMean::fragmentation);
  return out;
}

std::string report_html(const ReplayReport& report) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<title>tessera replay</title><style>{}</style></head><body>\n<h1>tessera replay</h1>\n"
      "<p>{} nodes, {} GPUs. Pods arrive one by one and never leave; each curve is the mean over "
      "seeds.</p>\n",
      kStyle, report.nodes, report.gpus);
  std::vector<ReplayMean> means = means_over_seeds(report);
  std::vector<std::string> done;
  for (const ReplayMean& mean : means) {
    if (std::find(done.begin(), done.end(), mean.workload) != done.end()) continue;
    done.push_back(mean.workload);
    std::vector<ReplayMean> of_workload;
    std::copy_if(means.begin(), means.end(), std::back_inserter(of_workload),
                 [&](const ReplayMean& other) { return other.workload == mean.workload; });
    append_workload(out, of_workload);
  }
  return out + "</body></html>\n";
}

}  // namespace tessera::sim
