// Work for queues, in the shape of Kueue's own performance test: cohorts of queues that lend each other what they do not use,
// each with small, medium and large jobs that arrive at their own pace.
//
// Shape:   an open loop: jobs are created when they are due. Each is a Job of one pod that says how long it runs; done when
//          the pod of every job has succeeded. Pods that are evicted are made anew by the Job's controller.
// Errors:  a refused creation or a broken connection ends the program with a message.
// Threads: one.
// Source:  kubernetes-sigs/kueue test/performance/scheduler, configuration baseline.
#pragma once

#include <cstdint>

#include "load_connection.h"

namespace tessera::load {

struct QueueWork {
  uint64_t cohorts = 5;
  uint64_t queues = 6;     // of each cohort
  uint64_t percent = 100;  // of the 500 jobs of each queue
  int connections = 8;
  double limit_s = 600;
};

// Makes classes and queues, prints "ready", waits for a line, and prints what was seen as a line of JSON. The exit status.
int run_queues(const QueueWork& what, SSL_CTX* context, const Target& target);

}  // namespace tessera::load
