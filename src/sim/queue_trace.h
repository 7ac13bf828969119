// Jobs of many tenants as a text file, and how they are laid on one clock for a replay of the queues.
//
// Shape:   rows "vc,arrival_s,num_gpu,duration_s"; columns are found by the header, others are passed over. Arrivals count from
//          each tenant's own first job. shape_load() keeps the jobs of the first days and stretches their arrivals so that what
//          they ask for is the given part of all GPUs over the time in which they arrive; durations stay as they are.
// Units:   seconds, whole GPUs.
// Errors:  as csv_reader.h.
// Threads: plain values.
// Source:  Microsoft's Philly jobs by virtual cluster, as replayed by Gavel (OSDI 2020).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tessera::sim {

struct QueueJob {
  std::string tenant;
  int64_t arrival_s = 0;
  int32_t gpus = 1;
  int64_t duration_s = 0;  // true, if nobody evicts it
  int64_t limit_s = 0;     // what its user asks for: not less
};

struct QueueLoad {
  int64_t days = 50;     // of the trace; 0: all of it
  double load = 1.0;     // of all GPUs; 0: arrivals as they are
  double limit_max = 3;  // users ask for 1 to so many times the duration, uniformly
  uint64_t seed = 1;     // of the limits
  int64_t jobs = 0;      // at most so many; 0: all
};

base::Result<std::vector<QueueJob>> parse_queue_jobs(std::string_view text, std::string_view file);
// In order of arrival; jobs that no `gpus` can hold are left out.
std::vector<QueueJob> shape_load(std::vector<QueueJob> jobs, int64_t gpus, const QueueLoad& load);

}  // namespace tessera::sim
