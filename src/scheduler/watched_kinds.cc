#include "scheduler/watched_kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "kube/informer.h"
#include "scheduler/group_reading.h"

namespace tessera::scheduler {
namespace {

constexpr WatchedKind kKinds[] = {
    {"", "Namespace", "namespaces", Served::kAlways, {"v1"}},
    {"scheduling.k8s.io", "PriorityClass", "priorityclasses", Served::kAlways, {"v1"}},
    {"policy", "PodDisruptionBudget", "poddisruptionbudgets", Served::kAlways, {"v1"}},
    {"batch", "Job", "jobs", Served::kAlways, {"v1"}},
    {"batch", "CronJob", "cronjobs", Served::kAlways, {"v1"}},
    {"apps", "StatefulSet", "statefulsets", Served::kAlways, {"v1"}},
    {"apps", "ReplicaSet", "replicasets", Served::kAlways, {"v1"}},
    {"apps", "Deployment", "deployments", Served::kAlways, {"v1"}},
    {"apps", "DaemonSet", "daemonsets", Served::kAlways, {"v1"}},

    {"scheduling.k8s.io",
     "PodGroup",
     "podgroups",
     Served::kPerhaps,
     {"v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"}},
    // Pods name a Workload only where it is v1alpha1: later ones are read through their PodGroups.
    {"scheduling.k8s.io",
     "Workload",
     "workloads",
     Served::kPerhaps,
     {"v1alpha1", "v1beta1", "v1alpha3", "v1alpha2"}},

    {"tessera.dev", "Queue", "queues", Served::kByDefinition, {"v1alpha1"}},
    {"tessera.dev", "Reservation", "reservations", Served::kByDefinition, {"v1alpha1"}},
    {"scheduling.volcano.sh", "PodGroup", "podgroups", Served::kByDefinition, {"v1beta1"}},
    {"scheduling.volcano.sh", "Queue", "queues", Served::kByDefinition, {"v1beta1"}},
    {"scheduling.x-k8s.io", "PodGroup", "podgroups", Served::kByDefinition, {"v1alpha1"}},
    {"scheduling.run.ai", "PodGroup", "podgroups", Served::kByDefinition, {"v2alpha2"}},
    {"scheduling.run.ai", "Queue", "queues", Served::kByDefinition, {"v2"}},
    {"kueue.x-k8s.io",
     "WorkloadPriorityClass",
     "workloadpriorityclasses",
     Served::kByDefinition,
     {"v1beta2", "v1beta1"}},

    {"batch.volcano.sh", "Job", "jobs", Served::kByDefinition, {"v1alpha1"}},
    {"jobset.x-k8s.io", "JobSet", "jobsets", Served::kByDefinition, {"v1alpha2"}},
    {"leaderworkerset.x-k8s.io",
     "LeaderWorkerSet",
     "leaderworkersets",
     Served::kByDefinition,
     {"v1"}},
    {"kubeflow.org", "PyTorchJob", "pytorchjobs", Served::kByDefinition, {"v1"}},
    {"kubeflow.org", "TFJob", "tfjobs", Served::kByDefinition, {"v1"}},
    {"kubeflow.org", "XGBoostJob", "xgboostjobs", Served::kByDefinition, {"v1"}},
    {"kubeflow.org", "PaddleJob", "paddlejobs", Served::kByDefinition, {"v1"}},
    {"kubeflow.org", "JAXJob", "jaxjobs", Served::kByDefinition, {"v1"}},
    {"kubeflow.org", "MPIJob", "mpijobs", Served::kByDefinition, {"v2beta1", "v1"}},
    {"trainer.kubeflow.org", "TrainJob", "trainjobs", Served::kByDefinition, {"v1alpha1"}},
    {"ray.io", "RayCluster", "rayclusters", Served::kByDefinition, {"v1", "v1alpha1"}},
    {"ray.io", "RayJob", "rayjobs", Served::kByDefinition, {"v1", "v1alpha1"}},
    {"ray.io", "RayService", "rayservices", Served::kByDefinition, {"v1", "v1alpha1"}},
};

bool established(const kube::Object& definition) {
  for (const json::Value& condition : definition.get("status", "conditions").items()) {
    if (condition["type"].as_string() == "Established")
      return condition["status"].as_string() == "True";
  }
  return false;
}

bool serves(const kube::Object& definition, std::string_view version) {
  for (const json::Value& each : definition.get("spec", "versions").items()) {
    if (each["name"].as_string() == version) return each["served"].as_bool();
  }
  return false;
}

}  // namespace

std::span<const std::string_view> WatchedKind::known_versions() const {
  size_t count = 0;
  while (count < std::size(versions) && !versions[count].empty()) ++count;
  return {versions, count};
}

kube::Gvr WatchedKind::gvr(std::string_view version) const {
  return {std::string(group), std::string(version), std::string(resource)};
}

std::string WatchedKind::name() const {
  return group.empty() ? std::string(resource) : fmt::format("{}.{}", resource, group);
}

std::span<const WatchedKind> watched_kinds() {
  return kKinds;
}

std::string_view version_of(const WatchedKind& kind, const kube::Object& definition) {
  if (!established(definition)) return {};
  for (const std::string_view version : kind.known_versions()) {
    if (serves(definition, version)) return version;
  }
  return {};
}

std::string served_versions(const kube::Object& definition) {
  std::string out;
  if (!established(definition)) return out;
  for (const json::Value& each : definition.get("spec", "versions").items()) {
    if (!each["served"].as_bool()) continue;
    out += out.empty() ? "" : ", ";
    out += each["name"].as_string();
  }
  return out;
}

kube::Object keep_object(kube::Object object) {
  kube::Object out = kube::without_bookkeeping(std::move(object));
  const std::string_view group = group_of(out.api_version());
  const bool template_is_read = group != "apps" && group != "batch";
  if (template_is_read || !out["spec"].is_object()) return out;
  json::Value root = out.json();
  json::Value& spec = root.ref("spec");
  spec.erase("template");
  spec.erase("jobTemplate");
  spec.erase("volumeClaimTemplates");
  return kube::Object(std::move(root));
}

kube::Object keep_definition(const kube::Object& definition) {
  const std::string_view name = definition.name();
  const bool watched = std::any_of(std::begin(kKinds), std::end(kKinds), [name](const auto& kind) {
    return kind.served == Served::kByDefinition && kind.name() == name;
  });
  if (!watched) return {};
  json::Value out;
  for (const char* key : {"name", "uid", "resourceVersion"})
    out.ref("metadata", key) = definition.metadata()[key];
  json::Value versions = json::Value::array();
  for (const json::Value& each : definition.get("spec", "versions").items())
    versions.push_back(json::Value::object({{"name", each["name"]}, {"served", each["served"]}}));
  out.ref("spec", "versions") = std::move(versions);
  const json::Value& conditions = definition.get("status", "conditions");
  out.ref("status", "conditions") = conditions;
  return kube::Object(std::move(out));
}

}  // namespace tessera::scheduler
