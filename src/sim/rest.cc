#include "sim/rest.h"

#include <algorithm>

#include "kube/pod_phase.h"
#include "scheduler/model.h"

namespace tessera::sim {
namespace {

using base::Code;
using base::Duration;
using base::error;
using base::Time;
using json::Value;
using kube::Object;

constexpr Duration kToGo = base::seconds(30);      // after deletionTimestamp
constexpr Duration kToStart = base::seconds(90);   // from binding: start and init containers
constexpr Duration kToBeTold = base::seconds(20);  // from creation
constexpr Duration kJobBackOff = base::seconds(400);

Time time_at(const Value& text) {
  auto parsed = base::parse_rfc3339(text.as_string());
  return parsed ? *parsed : Time{};
}

Value condition(const Object& object, std::string_view type) {
  for (const Value& one : object.get("status", "conditions").items()) {
    if (one["type"].as_string() == type) return one;
  }
  return {};
}

bool bound(const Object& pod) {
  return !pod.get("spec", "nodeName").as_string().empty();
}

base::Status check_node(const Object& node) {
  const std::string_view name = node.name();
  if (condition(node, "Ready")["status"].as_string() != "True") {
    return error(Code::kInternal, "node {} is not ready though nothing fails", name);
  }
  if (node.get("spec", "unschedulable").as_bool())
    return error(Code::kInternal, "node {} is still cordoned", name);
  for (const Value& taint : node.get("spec", "taints").items()) {
    if (!taint["key"].as_string().starts_with("node.kubernetes.io/")) continue;
    return error(Code::kInternal, "node {} still has taint {}", name, taint["key"].as_string());
  }
  if (!(node["status"]["capacity"] == node["status"]["allocatable"])) {
    return error(Code::kInternal, "node {} has {} of {}", name,
                 node["status"]["allocatable"].dump(), node["status"]["capacity"].dump());
  }
  return {};
}

base::Status check_pod(const Object& pod, Time now) {
  const Value scheduled = condition(pod, "PodScheduled");
  if (pod.deleting()) {
    if (now - time_at(pod.metadata()["deletionTimestamp"]) <= kToGo) return {};
    return error(Code::kInternal, "pod {} is still terminating", pod.key());
  }
  if (kube::has_ended(pod)) return {};
  if (bound(pod)) {
    const bool started = pod.get("status", "phase").as_string() == "Running";
    if (started || now - time_at(scheduled["lastTransitionTime"]) <= kToStart) return {};
    return error(Code::kInternal, "pod {} is bound to {} and never started", pod.key(),
                 pod.get("spec", "nodeName").as_string());
  }
  const bool told =
      scheduled["status"].as_string() == "False" && !scheduled["message"].as_string().empty();
  if (told || now - time_at(pod.metadata()["creationTimestamp"]) <= kToBeTold) return {};
  return error(Code::kInternal, "pod {} waits and nobody says why", pod.key());
}

// Nobody waits in vain: what the scheduler kept up piece by piece, built anew, would start nobody either.
base::Status check_places(const RestView& view) {
  scheduler::Model model({.names = {"tessera", "default-scheduler"}});
  for (const Object& node : view.nodes) model.on_node(node, node.name(), view.now);
  for (const Object& object : view.scheduling) model.on_object({}, object, view.now);
  for (const Object& pod : view.pods) model.on_pod(pod.key(), pod, view.now);
  model.settle_found(view.now);
  const scheduler::Decisions decisions = model.cycle(view.now);
  if (!decisions.evicts.empty()) {
    return error(Code::kInternal, "pod {} stays though another waits for its place: {}",
                 decisions.evicts.front().pod, decisions.evicts.front().why);
  }
  for (const scheduler::BindDecision& bind : decisions.binds) {
    const Object& pod = model.find(bind.pod)->object;
    const std::string why = condition(pod, "PodScheduled")["message"].str();
    // Planned by what jobs took before, which the objects do not tell.
    if (why.find("planned start") != std::string::npos) continue;
    return error(Code::kInternal, "pod {} waits though {} has room (\"{}\")", pod.key(),
                 model.node_name(bind.placement.node), why);
  }
  return {};
}

bool owned_by(const Object& pod, std::string_view uid) {
  for (const Value& owner : pod.metadata()["ownerReferences"].items()) {
    if (owner["uid"].as_string() == uid) return true;
  }
  return false;
}

base::Status check_job(const Object& job, const RestView& view) {
  if (job.deleting()) return {};
  for (const char* end : {"Complete", "Failed"}) {
    if (condition(job, end)["status"].as_string() == "True") return {};
  }
  for (const Object& pod : view.pods) {
    if (!owned_by(pod, job.uid())) continue;
    if (!kube::has_ended(pod)) return {};
    if (view.now - time_at(condition(pod, "Ready")["lastTransitionTime"]) <= kJobBackOff) return {};
  }
  // Evicted pods leave nothing behind that would say since when the job backs off.
  const bool evicted = !job.annotation("tessera.dev/evictions-allowed").empty();
  if (evicted && job.get("status", "failed").as_int(0) > 0) return {};
  return error(Code::kInternal, "job {} is not finished and has no pod under way", job.key());
}

// Pods carry the label app: the Deployment's name (workload.h).
base::Status check_deployment(const Object& deployment, const RestView& view) {
  if (deployment.deleting()) return {};
  int64_t have = 0;
  for (const Object& pod : view.pods) {
    const bool mine = pod.label("app") == deployment.name() && pod.ns() == deployment.ns();
    have += mine && !kube::has_ended(pod) && !pod.deleting() ? 1 : 0;
  }
  const int64_t want = deployment.get("spec", "replicas").as_int();
  if (have == want) return {};
  return error(Code::kInternal, "deployment {} has {} pods, wants {}", deployment.key(), have,
               want);
}

}  // namespace

base::Status check_rest(const RestView& view) {
  for (const Object& node : view.nodes) TS_TRY_STATUS(check_node(node));
  for (const Object& pod : view.pods) TS_TRY_STATUS(check_pod(pod, view.now));
  TS_TRY_STATUS(check_places(view));
  for (const Object& job : view.jobs) TS_TRY_STATUS(check_job(job, view));
  for (const Object& deployment : view.deployments)
    TS_TRY_STATUS(check_deployment(deployment, view));
  return {};
}

}  // namespace tessera::sim
