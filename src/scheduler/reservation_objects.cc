#include "scheduler/reservation_objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/group_reading.h"
#include "scheduler/queue_objects.h"

namespace tessera::scheduler {
namespace {

constexpr size_t kNodesMax = 10'000;

}  // namespace

std::optional<queueing::ReservationSpec> read_reservation(const kube::Object& object,
                                                          queueing::Dims& dims,
                                                          const ShareRules& rules) {
  if (object.kind() != "Reservation" || group_of(object.api_version()) != "tessera.dev")
    return std::nullopt;
  queueing::ReservationSpec out;
  auto problem = [&](std::string text) {
    if (out.problem.empty()) out.problem = std::move(text);
  };
  const json::Value& spec = object["spec"];
  out.name = object.name();
  out.queue = spec["queue"].str();
  if (out.queue.empty()) problem("spec.queue: it is empty: name a queue");
  std::string wrong;
  out.amounts = read_amounts(spec["resources"], "spec.resources", dims, rules, wrong);
  if (!wrong.empty()) problem(std::move(wrong));
  if (std::all_of(out.amounts.begin(), out.amounts.end(),
                  [](const auto& item) { return item.second == 0; }))
    problem("spec.resources: it asks for nothing: name an amount above 0");
  if (const auto start = base::parse_rfc3339(spec["start"].as_string())) {
    out.start = *start;
  } else {
    problem(fmt::format("spec.start: {} is no time: write it as 2030-01-31T08:00:00Z",
                        spec["start"].dump()));
  }
  const auto duration = base::parse_duration(spec["duration"].as_string());
  if (!duration || duration->ns <= 0) {
    problem(fmt::format("spec.duration: {} is no time above 0: write it as 2h or 1h30m",
                        spec["duration"].dump()));
  } else if (out.start.ns > 0 && duration->ns > INT64_MAX - out.start.ns) {
    problem(fmt::format("spec.duration: {} from the start on is more than can be counted",
                        spec["duration"].dump()));
  } else {
    out.duration = *duration;
  }
  for (const json::Value& node : object.get("status", "nodes").items()) {
    if (out.nodes.size() < kNodesMax) out.nodes.push_back(node.str());
  }
  return out;
}

}  // namespace tessera::scheduler
