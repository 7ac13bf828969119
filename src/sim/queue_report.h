// A comparison of queueing policies as a table and as JSON.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"
#include "sim/queue_replay.h"

namespace tessera::sim {

struct QueueRun {
  QueuePolicy policy{};
  QueueScore score{};
  double seconds = 0;  // of the wall clock
};

std::string queue_table(const std::vector<QueueRun>& runs);
json::Value queue_json(const std::vector<QueueRun>& runs);

}  // namespace tessera::sim
