// The status of a Deployment: counts, and the conditions that `kubectl rollout status` and `kubectl wait` read.
#include <algorithm>
#include <limits>
#include <utility>

#include "apiserver/controller_deployment_plan.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

struct Counts {
  int64_t replicas = 0;
  int64_t updated = 0;
  int64_t ready = 0;
  int64_t available = 0;
};

Counts count(const std::vector<OwnedSet>& sets) {
  Counts out;
  for (const OwnedSet& each : sets) {
    out.replicas += each.set.status_replicas;
    out.ready += each.set.ready_replicas;
    out.available += each.set.available_replicas;
    if (each.current) out.updated += each.set.status_replicas;
  }
  return out;
}

// A Deployment's condition also says when it was last touched: at each change of its reason.
void set_dated(Value& status, std::string_view type, std::string_view value,
               std::string_view reason, std::string message, base::Time now, bool touch = false) {
  const Value& old = condition_of(status, type);
  if (!touch && old["status"].as_string() == value && old["reason"].as_string() == reason) return;
  const Value since =
      old["status"].as_string() == value ? old["lastTransitionTime"] : Value(base::to_rfc3339(now));
  // The one that changed last stands last.
  status = without_condition(status, type);
  status.ref("conditions")
      .push_back(Value::object({{"type", type},
                                {"status", value},
                                {"reason", reason},
                                {"message", std::move(message)},
                                {"lastTransitionTime", since},
                                {"lastUpdateTime", base::to_rfc3339(now)}}));
}

bool has_deadline(const kube::Deployment& deployment) {
  return deployment.progress_deadline_seconds != std::numeric_limits<int32_t>::max();
}

const OwnedSet* current_of(const std::vector<OwnedSet>& sets) {
  const auto it = std::ranges::find_if(sets, &OwnedSet::current);
  return it == sets.end() ? nullptr : &*it;
}

std::string subject(const kube::Deployment& deployment, const OwnedSet* current) {
  return current != nullptr ? fmt::format("ReplicaSet \"{}\"", current->set.meta.name)
                            : fmt::format("Deployment \"{}\"", deployment.meta.name);
}

void set_progress(const kube::Deployment& deployment, const std::vector<OwnedSet>& sets,
                  const Counts& before, const Counts& after, Value& status, base::Time now) {
  const std::string reason = condition_of(status, "Progressing")["reason"].str();
  if (deployment.paused) {
    if (reason != "ProgressDeadlineExceeded") {
      set_dated(status, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now);
    }
    return;
  }
  if (reason == "DeploymentPaused") {
    return set_dated(status, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed",
                     now);
  }
  if (reason == "NewReplicaSetAvailable" && after.replicas == after.updated) return;
  const OwnedSet* current = current_of(sets);
  const std::string who = subject(deployment, current);
  const int64_t wanted = deployment.replicas;
  if (after.updated == wanted && after.replicas == wanted && after.available == wanted) {
    return set_dated(status, "Progressing", "True", "NewReplicaSetAvailable",
                     who + " has successfully progressed.", now);
  }
  const bool progress = after.updated > before.updated || after.ready > before.ready ||
                        after.available > before.available ||
                        after.replicas - after.updated < before.replicas - before.updated;
  if (progress) {
    return set_dated(status, "Progressing", "True", "ReplicaSetUpdated", who + " is progressing.",
                     now, true);
  }
  if (reason.empty() || reason == "NewReplicaSetAvailable") {
    if (current == nullptr) return;
    return set_dated(status, "Progressing", "True", "NewReplicaSetCreated",
                     fmt::format("Created new replica set \"{}\"", current->set.meta.name), now);
  }
  const auto due = progress_deadline(deployment, status);
  if (due && *due <= now) {
    set_dated(status, "Progressing", "False", "ProgressDeadlineExceeded",
              who + " has timed out progressing.", now);
  }
}

void set_replica_failure(const std::vector<OwnedSet>& sets, Value& status, base::Time now) {
  const Value* failure = nullptr;
  for (const OwnedSet& each : sets) {
    const Value& found = condition_of(each.object["status"], "ReplicaFailure");
    if (!found.is_null() && (failure == nullptr || each.current)) failure = &found;
  }
  if (failure == nullptr) {
    status = without_condition(status, "ReplicaFailure");
    return;
  }
  set_dated(status, "ReplicaFailure", "True", (*failure)["reason"].as_string(),
            (*failure)["message"].str(), now);
}

// That the first set was made is said before anything else.
void set_first_progress(const std::vector<OwnedSet>& sets, Value& status, base::Time now) {
  const OwnedSet* current = current_of(sets);
  if (current == nullptr || !condition_of(status, "Progressing").is_null()) return;
  set_dated(status, "Progressing", "True", "NewReplicaSetCreated",
            fmt::format("Created new replica set \"{}\"", current->set.meta.name), now);
}

// Nothing where a set has not told yet.
std::optional<int64_t> terminating_pods(const std::vector<OwnedSet>& sets) {
  int64_t total = 0;
  for (const OwnedSet& each : sets) {
    const Value& told = each.object["status"];
    if (told.contains("terminatingReplicas")) {
      total += told["terminatingReplicas"].as_int();
    } else if (told["observedGeneration"].as_int() != 0) {
      return std::nullopt;
    }
  }
  return total;
}

Counts counts_before(const Value& status) {
  return {status["replicas"].as_int(), status["updatedReplicas"].as_int(),
          status["readyReplicas"].as_int(), status["availableReplicas"].as_int()};
}

}  // namespace

std::optional<base::Time> progress_deadline(const kube::Deployment& deployment,
                                            const Value& status) {
  const Value& progress = condition_of(status, "Progressing");
  const std::string_view reason = progress["reason"].as_string();
  if (!has_deadline(deployment) || deployment.paused || reason.empty() ||
      reason == "NewReplicaSetAvailable" || reason == "ProgressDeadlineExceeded") {
    return std::nullopt;
  }
  const auto since = base::parse_rfc3339(progress["lastUpdateTime"].as_string());
  if (!since) return std::nullopt;
  return *since + base::seconds(deployment.progress_deadline_seconds);
}

Value deployment_status(const Object& object, const kube::Deployment& deployment,
                        const std::vector<OwnedSet>& sets, base::Time now) {
  const Counts after = count(sets);
  Value status = object["status"];
  const Counts before = counts_before(status);
  const auto put = [&](const char* field, int64_t value) {
    if (value != 0) {
      status.set(field, value);
    } else {
      status.erase(field);
    }
  };
  put("replicas", after.replicas);
  put("updatedReplicas", after.updated);
  put("readyReplicas", after.ready);
  put("availableReplicas", after.available);
  int64_t total = 0;
  for (const OwnedSet& each : sets) total += each.set.replicas;
  put("unavailableReplicas", std::max<int64_t>(0, total - after.available));
  const auto terminating = terminating_pods(sets);
  if (terminating) {
    status.set("terminatingReplicas", *terminating);
  } else {
    status.erase("terminatingReplicas");
  }
  status.set("observedGeneration", deployment.meta.generation);
  if (has_deadline(deployment) && !deployment.paused) set_first_progress(sets, status, now);
  const int32_t spare =
      deployment.recreate ? 0 : std::min(deployment.unavailable_max, deployment.replicas);
  if (after.available >= deployment.replicas - spare) {
    set_dated(status, "Available", "True", "MinimumReplicasAvailable",
              "Deployment has minimum availability.", now);
  } else {
    set_dated(status, "Available", "False", "MinimumReplicasUnavailable",
              "Deployment does not have minimum availability.", now);
  }
  if (has_deadline(deployment)) {
    set_progress(deployment, sets, before, after, status, now);
  } else {
    status = without_condition(status, "Progressing");
  }
  set_replica_failure(sets, status, now);
  return status;
}

}  // namespace tessera::apiserver::controller
