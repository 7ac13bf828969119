#include "sim/queue_trace.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "sim/csv_reader.h"

namespace tessera::sim {
namespace {

constexpr int64_t kSecondsMax = int64_t{100} * 365 * 86'400;
constexpr int64_t kJobGpusMax = 65'536;

}  // namespace

base::Result<std::vector<QueueJob>> parse_queue_jobs(std::string_view text, std::string_view file) {
  CsvReader csv(text, file);
  TS_TRY_STATUS(csv.read_header());
  TS_TRY(const size_t tenant, csv.column("vc"));
  TS_TRY(const size_t arrival, csv.column("arrival_s"));
  TS_TRY(const size_t gpus, csv.column("num_gpu"));
  TS_TRY(const size_t duration, csv.column("duration_s"));
  std::vector<QueueJob> jobs;
  while (true) {
    TS_TRY(const bool any, csv.next_row());
    if (!any) return jobs;
    QueueJob job;
    TS_TRY(job.tenant, csv.name(tenant));
    TS_TRY(job.arrival_s, csv.number(arrival, 0, kSecondsMax));
    TS_TRY(const int64_t count, csv.number(gpus, 1, kJobGpusMax));
    TS_TRY(job.duration_s, csv.number(duration, 1, kSecondsMax));
    job.gpus = static_cast<int32_t>(count);
    job.limit_s = job.duration_s;
    jobs.push_back(std::move(job));
  }
}

std::vector<QueueJob> shape_load(std::vector<QueueJob> jobs, int64_t gpus, const QueueLoad& load) {
  std::erase_if(jobs, [&](const QueueJob& job) {
    return job.gpus > gpus || (load.days > 0 && job.arrival_s >= load.days * 86'400);
  });
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const QueueJob& a, const QueueJob& b) { return a.arrival_s < b.arrival_s; });
  if (load.jobs > 0 && jobs.size() > static_cast<size_t>(load.jobs))
    jobs.resize(static_cast<size_t>(load.jobs));
  if (jobs.empty()) return jobs;
  double asked = 0;
  for (const QueueJob& job : jobs)
    asked += static_cast<double>(job.gpus) * static_cast<double>(job.duration_s);
  const auto span = static_cast<double>(jobs.back().arrival_s);
  double stretch = 1;
  if (load.load > 0 && span > 0) stretch = asked / (static_cast<double>(gpus) * load.load) / span;
  base::Random random(load.seed);
  for (QueueJob& job : jobs) {
    job.arrival_s = std::llround(static_cast<double>(job.arrival_s) * stretch);
    const double over = 1 + random.unit() * (std::max(load.limit_max, 1.0) - 1);
    job.limit_s =
        std::max<int64_t>(job.duration_s, std::llround(static_cast<double>(job.duration_s) * over));
  }
  return jobs;
}

}  // namespace tessera::sim
