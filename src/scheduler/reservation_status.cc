#include "scheduler/reservation_status.h"

#include <algorithm>

#include "scheduler/conditions.h"
#include "scheduler/group_reading.h"

namespace tessera::scheduler {
namespace {

json::Value nodes_of(const queueing::Engine& engine, const queueing::Reservation& reservation) {
  std::vector<std::string_view> names;
  const core::Cluster& cluster = engine.cluster();
  for (const auto& [node, room] : reservation.held) {
    if (cluster.present(node)) names.push_back(cluster.names().text(cluster.spec(node).name));
  }
  std::sort(names.begin(), names.end());
  json::Value out = json::Value::array();
  for (const std::string_view name : names) out.push_back(std::string(name));
  return out;
}

}  // namespace

std::optional<json::Value> reservation_status(const kube::Object& object,
                                              const queueing::Engine& engine, base::Time now) {
  if (!object || object.kind() != "Reservation" ||
      group_of(object.api_version()) != "tessera.dev" || object.deleting())
    return std::nullopt;
  const auto& all = engine.reservations();
  const auto found = std::find_if(all.begin(), all.end(), [&](const queueing::Reservation& r) {
    return r.spec.name == object.name();
  });
  // Before the first cycle that has looked at it there is nothing to say.
  if (found == all.end() || found->reason.empty()) return std::nullopt;
  using queueing::ReservationPhase;
  const bool held =
      (found->phase == ReservationPhase::kPlanned || found->phase == ReservationPhase::kActive) &&
      (found->reason == "PlaceFound" || found->reason == "Held");
  json::Value status = object["status"].is_object() ? object["status"] : json::Value::object();
  status.set("phase", queueing::name_of(found->phase));
  json::Value nodes = nodes_of(engine, *found);
  if (nodes.empty()) {
    status.erase("nodes");
  } else {
    status.set("nodes", std::move(nodes));
  }
  const json::Value& generation = object.metadata()["generation"];
  if (generation.is_int()) status.set("observedGeneration", generation);
  set_condition(status, {"Held", held ? "True" : "False", found->reason, found->message, true},
                now);
  json::Value patch = status_patch(object["status"], status);
  if (patch.is_null()) return std::nullopt;
  return patch;
}

}  // namespace tessera::scheduler
