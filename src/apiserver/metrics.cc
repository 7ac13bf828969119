#include "apiserver/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tessera::apiserver {
namespace {

std::string labels_of(const RequestLabels& labels, std::string_view code = {}) {
  MetricLabels out;
  if (!code.empty()) out.emplace_back("code", code);
  out.emplace_back("component", labels.resource.empty() ? "" : "apiserver");
  out.emplace_back("dry_run", labels.dry_run);
  out.emplace_back("group", labels.group);
  out.emplace_back("resource", labels.resource);
  out.emplace_back("scope", labels.scope);
  out.emplace_back("subresource", labels.subresource);
  out.emplace_back("verb", labels.verb);
  out.emplace_back("version", labels.version);
  return label_text(out);
}

std::string number_text(double value) {
  return fmt::format("{}", value);
}

}  // namespace

std::string label_text(const MetricLabels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    out.append(out.empty() ? "" : ",").append(name).append("=\"");
    for (const char c : value) {
      if (c == '\\' || c == '"') out += '\\';
      if (c == '\n') {
        out += "\\n";
      } else {
        out += c;
      }
    }
    out += '"';
  }
  return out;
}

void MetricText::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  fmt::format_to(std::back_inserter(out_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

void MetricText::value(const MetricLabels& labels, double value) {
  raw("", label_text(labels), value);
}

void MetricText::raw(std::string_view suffix, std::string_view labels, double value) {
  out_.append(name_).append(suffix);
  if (!labels.empty()) out_.append("{").append(labels).append("}");
  out_.append(" ").append(number_text(value)).append("\n");
}

class RequestMetrics::Metered : public http::Responder {
 public:
  Metered(std::shared_ptr<RequestMetrics> metrics, std::shared_ptr<Meter> meter,
          std::shared_ptr<http::Responder> inner)
      : metrics_(std::move(metrics)),
        meter_(std::move(meter)),
        inner_(std::move(inner)),
        started_(metrics_->clock_.now()) {
    metrics_->begun(*meter_, 1);
  }
  // A stream that its peer left, or a request that nobody answered.
  ~Metered() override { finish(500); }
  Metered(const Metered&) = delete;
  Metered& operator=(const Metered&) = delete;

  void send(http::Response response) override {
    finish(response.status);
    inner_->send(std::move(response));
  }
  void begin_stream(int status, std::string content_type, http::Headers headers) override {
    status_ = status;
    if (!streaming_.exchange(true)) {
      metrics_->begun(*meter_, -1);
      metrics_->long_running(*meter_, 1);
    }
    inner_->begin_stream(status, std::move(content_type), std::move(headers));
  }
  bool write(std::string chunk) override { return inner_->write(std::move(chunk)); }
  void end_stream() override {
    finish(status_);
    inner_->end_stream();
  }
  void on_closed(std::function<void()> callback) override {
    inner_->on_closed(std::move(callback));
  }

 private:
  void finish(int status) {
    if (finished_.exchange(true)) return;
    if (streaming_) {
      metrics_->long_running(*meter_, -1);
      status = status_;
    } else {
      metrics_->begun(*meter_, -1);
    }
    metrics_->answered(*meter_, status, metrics_->clock_.now() - started_);
  }

  const std::shared_ptr<RequestMetrics> metrics_;
  const std::shared_ptr<Meter> meter_;
  const std::shared_ptr<http::Responder> inner_;
  const base::Time started_;
  std::atomic<int> status_{0};
  std::atomic<bool> streaming_{false};
  std::atomic<bool> finished_{false};
};

std::shared_ptr<http::Responder> RequestMetrics::metered(std::shared_ptr<Meter> meter,
                                                         std::shared_ptr<http::Responder> inner) {
  return std::make_shared<Metered>(shared_from_this(), std::move(meter), std::move(inner));
}

void RequestMetrics::begun(const Meter& meter, int64_t by) {
  (meter.mutating ? mutating_ : reading_) += by;
}

void RequestMetrics::long_running(const Meter& meter, int64_t by) {
  const std::lock_guard lock(mutex_);
  long_running_[labels_of(meter.labels)] += by;
}

void RequestMetrics::answered(const Meter& meter, int status, base::Duration took) {
  const double seconds = static_cast<double>(std::max<int64_t>(0, took.ns)) / 1e9;
  const std::string total = labels_of(meter.labels, std::to_string(status));
  const std::string plain = labels_of(meter.labels);
  const std::lock_guard lock(mutex_);
  ++totals_[total];
  if (meter.long_running) return;
  Histogram& histogram = durations_[plain];
  const auto bucket = std::ranges::lower_bound(kBuckets, seconds);
  ++histogram.counts[static_cast<size_t>(bucket - kBuckets.begin())];
  histogram.sum += seconds;
}

std::string RequestMetrics::text() const {
  MetricText out;
  out.family("apiserver_current_inflight_requests", "gauge",
             "Requests that are being answered now, without long-running ones.");
  out.value({{"request_kind", "mutating"}}, static_cast<double>(mutating_.load()));
  out.value({{"request_kind", "readOnly"}}, static_cast<double>(reading_.load()));
  const std::lock_guard lock(mutex_);
  out.family("apiserver_longrunning_requests", "gauge", "Watches and logs that are open now.");
  for (const auto& [labels, count] : long_running_) {
    out.raw("", labels, static_cast<double>(count));
  }
  out.family("apiserver_request_duration_seconds", "histogram",
             "How long requests took until they were answered, without long-running ones.");
  for (const auto& [labels, histogram] : durations_) {
    uint64_t sum = 0;
    for (size_t i = 0; i < histogram.counts.size(); ++i) {
      sum += histogram.counts[i];
      const std::string bound = i < kBuckets.size() ? number_text(kBuckets[i]) : "+Inf";
      out.raw("_bucket", fmt::format("{},le=\"{}\"", labels, bound), static_cast<double>(sum));
    }
    out.raw("_sum", labels, histogram.sum);
    out.raw("_count", labels, static_cast<double>(sum));
  }
  out.family("apiserver_request_total", "counter",
             "Requests by what they were and how they ended.");
  for (const auto& [labels, count] : totals_) out.raw("", labels, static_cast<double>(count));
  return out.take();
}

}  // namespace tessera::apiserver
