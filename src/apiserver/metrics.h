// What the server counts of its requests, as Prometheus text.
//
// Shape:   a Meter accompanies one request: whoever learns what it is about writes that into its labels, and the metered
//          responder counts it once it is answered. A long-running request (watch, log) is counted as running meanwhile,
//          and without a duration. text() adds what is measured when it is asked for.
// Units:   seconds and bytes, as the names say.
// Errors:  none; what the system does not tell of the process is left out.
// Threads: any.
// Source:  names, labels and buckets of k8s.io/apiserver/pkg/endpoints/metrics where the meaning is the same; the text
//          format of Prometheus 0.0.4.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "http/server.h"

namespace tessera::apiserver {

// "name=value" pairs in the order of the text; values are escaped when they are written.
using MetricLabels = std::vector<std::pair<std::string_view, std::string>>;

struct RequestLabels {
  std::string verb;  // "LIST"
  std::string group;
  std::string version;
  std::string resource;
  std::string subresource;  // of a path that names no resource: the path
  std::string scope;        // "resource", "namespace", "cluster"
  std::string dry_run;
};

class RequestMetrics : public std::enable_shared_from_this<RequestMetrics> {
 public:
  struct Meter {
    RequestLabels labels;
    bool mutating = false;
    bool long_running = false;
  };

  explicit RequestMetrics(const base::Clock& clock) : clock_(clock) {}

  // Passes everything on to `inner`, and counts; it keeps these metrics alive.
  std::shared_ptr<http::Responder> metered(std::shared_ptr<Meter> meter,
                                           std::shared_ptr<http::Responder> inner);
  std::string text() const;

 private:
  class Metered;
  static constexpr std::array<double, 23> kBuckets = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8,
                                                      1,     1.25,  1.5,  2,   3,   4,   5,   6,
                                                      8,     10,    15,   20,  30,  45,  60};
  struct Histogram {
    std::array<uint64_t, 24> counts{};  // the last one: longer than all buckets
    double sum = 0;
  };

  void begun(const Meter& meter, int64_t by);
  void long_running(const Meter& meter, int64_t by);
  void answered(const Meter& meter, int status, base::Duration took);

  const base::Clock& clock_;
  std::atomic<int64_t> mutating_{0};
  std::atomic<int64_t> reading_{0};
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> totals_;  // by the labels as text
  std::map<std::string, Histogram> durations_;
  std::map<std::string, int64_t> long_running_;
};

// One line of HELP and TYPE, and a line a value.
class MetricText {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help);
  // Of the family begun last.
  void value(const MetricLabels& labels, double value);
  void raw(std::string_view suffix, std::string_view labels, double value);
  std::string take() { return std::move(out_); }

 private:
  std::string name_;
  std::string out_;
};

std::string label_text(const MetricLabels& labels);
// process_*: CPU, memory, open files, start.
void add_process_metrics(MetricText& text);

}  // namespace tessera::apiserver
