#include "scheduler/pod_makers.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/group_reading.h"
#include "scheduler/snapshot_fields.h"

namespace tessera::scheduler {
namespace {

using json::Value;
using kube::Object;

constexpr int64_t kPodsMax = 100'000;

int64_t count_in(const Value& value, int64_t otherwise) {
  return value.is_number() ? std::clamp<int64_t>(value.as_int(otherwise), 0, kPodsMax + 1)
                           : otherwise;
}

std::string small(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool cluster_wide(std::string_view kind) {
  return kind == "Namespace" || kind == "Node" || kind == "PersistentVolume" ||
         kind == "StorageClass" || kind == "Queue" || kind == "Reservation" ||
         kind.ends_with("PriorityClass");
}

// Kinds that have nothing to do with pods' places.
bool makes_no_pods(std::string_view group, std::string_view kind) {
  return (group.empty() && kind != "ReplicationController") ||
         group == "rbac.authorization.k8s.io" || group == "networking.k8s.io" ||
         group == "apiextensions.k8s.io" || group == "storage.k8s.io" || kind == "Lease" ||
         kind == "HorizontalPodAutoscaler";
}

}  // namespace

Object PodMaker::owned(Value object, std::string_view name, const Object& owner) {
  object.ref("metadata").set("name", name);
  object.ref("metadata").set("uid", fmt::format("planned-{}", ++made_));
  object.ref("metadata").set("creationTimestamp", base::to_rfc3339(options_.now));
  if (!owner) return Object(std::move(object));
  object.ref("metadata").set("namespace", owner.ns());
  object.ref("metadata")
      .set("ownerReferences", Value::array({Value::object({{"apiVersion", owner.api_version()},
                                                           {"kind", owner.kind()},
                                                           {"name", owner.name()},
                                                           {"uid", owner.uid()},
                                                           {"controller", true}})}));
  return Object(std::move(object));
}

// What the API adds to a pod when it is created.
void PodMaker::complete(Value& pod, Made& out) const {
  const auto note = [&](std::string text) {
    if (std::ranges::find(out.notes, text) == out.notes.end()) out.notes.push_back(std::move(text));
  };
  Value& spec = pod.ref("spec");
  if (spec["schedulerName"].as_string().empty()) {
    spec.set("schedulerName", options_.scheduler_name);
    if (options_.scheduler_name != "default-scheduler")
      note(
          fmt::format("{} names no schedulerName and is planned as one of \"{}\": write that into "
                      "it, or the default scheduler takes it",
                      out.title, options_.scheduler_name));
  }
  const std::string name = spec["priorityClassName"].str();
  Object found = options_.default_priority_class;
  if (name == "system-node-critical" || name == "system-cluster-critical") {
    spec.set("priority", name == "system-node-critical" ? 2'000'001'000 : 2'000'000'000);
    return;
  }
  if (!name.empty()) found = options_.priority_class ? options_.priority_class(name) : Object();
  if (!found && !name.empty())
    note(fmt::format("PriorityClass {} does not exist: the API would refuse the pods", name));
  if (!found || (name.empty() && spec["priority"].is_number())) return;
  spec.set("priority", found["value"].as_int(0));
  if (spec["preemptionPolicy"].is_null() && found["preemptionPolicy"].is_string())
    spec.set("preemptionPolicy", found["preemptionPolicy"]);
}

void PodMaker::pod(const Value& from, std::string_view name, const Object& owner,
                   const Marks& labels, const Marks& annotations, Made& out) {
  if (static_cast<int64_t>(out.pods.size()) >= kPodsMax) {
    out.problem = fmt::format("it makes more than {} pods: plan with fewer", kPodsMax);
    return;
  }
  Value pod = Value::object({{"apiVersion", "v1"}, {"kind", "Pod"}});
  Value meta = Value::object();
  for (const char* key : {"labels", "annotations", "namespace"}) {
    if (!from.get("metadata", key).is_null()) meta.set(key, from.get("metadata", key));
  }
  for (const Mark& mark : labels) meta.ref("labels").set(mark.key, mark.value);
  for (const Mark& mark : annotations) meta.ref("annotations").set(mark.key, mark.value);
  pod.set("metadata", std::move(meta));
  pod.set("spec", from["spec"]);
  pod.ref("spec").erase("nodeName");
  complete(pod, out);
  pod.ref("status").set("phase", "Pending");
  out.pods.push_back(owned(std::move(pod), name, owner));
}

void PodMaker::job(const Object& object, const Marks& labels, Made& out) {
  const Value& spec = object["spec"];
  if (spec["suspend"].as_bool()) {
    out.notes.push_back(fmt::format("Job {} is suspended: it makes no pods", object.name()));
    return;
  }
  int64_t pods = count_in(spec["parallelism"], 1);
  if (spec["completions"].is_number()) pods = std::min(pods, count_in(spec["completions"], 1));
  Marks all = labels;
  all.push_back({"job-name", std::string(object.name())});
  all.push_back({"batch.kubernetes.io/job-name", std::string(object.name())});
  for (int64_t i = 0; i < pods && out.problem.empty(); ++i) {
    Marks mine = all;
    if (spec["completionMode"].as_string() == "Indexed")
      mine.push_back({"batch.kubernetes.io/job-completion-index", std::to_string(i)});
    pod(spec["template"], fmt::format("{}-{}", object.name(), i), object, mine, {}, out);
  }
}

void PodMaker::set_of_pods(const Object& object, Made& out) {
  const int64_t pods = count_in(object.get("spec", "replicas"), 1);
  for (int64_t i = 0; i < pods && out.problem.empty(); ++i)
    pod(object.get("spec", "template"), fmt::format("{}-{}", object.name(), i), object, {}, {},
        out);
}

void PodMaker::stateful(const Object& object, Made& out) {
  const int64_t pods = count_in(object.get("spec", "replicas"), 1);
  const int64_t first = count_in(object.get("spec", "ordinals", "start"), 0);
  const auto claims = object.get("spec", "volumeClaimTemplates").items();
  for (int64_t i = first; i < first + pods && out.problem.empty(); ++i) {
    const std::string name = fmt::format("{}-{}", object.name(), i);
    Value from = object.get("spec", "template");
    for (const Value& claim : claims) {
      const std::string volume = claim.get("metadata", "name").str();
      Value made = claim;
      made.set("apiVersion", "v1");
      made.set("kind", "PersistentVolumeClaim");
      made.ref("metadata").set("namespace", object.ns());
      out.objects.push_back(owned(std::move(made), volume + "-" + name, {}));
      from.ref("spec", "volumes")
          .push_back(Value::object(
              {{"name", volume},
               {"persistentVolumeClaim", Value::object({{"claimName", volume + "-" + name}})}}));
    }
    pod(from, name, object,
        {{"statefulset.kubernetes.io/pod-name", name},
         {"apps.kubernetes.io/pod-index", std::to_string(i)}},
        {}, out);
  }
}

void PodMaker::daemons(const Object& object, Made& out) {
  for (const std::string& node : options_.nodes) {
    if (!out.problem.empty()) return;
    Value from = object.get("spec", "template");
    const Value name = Value::object(
        {{"key", "metadata.name"}, {"operator", "In"}, {"values", Value::array({node})}});
    from.ref("spec", "affinity", "nodeAffinity")
        .set("requiredDuringSchedulingIgnoredDuringExecution",
             Value::object(
                 {{"nodeSelectorTerms",
                   Value::array({Value::object({{"matchFields", Value::array({name})}})})}}));
    pod(from, fmt::format("{}-{}", object.name(), node), object, {}, {}, out);
  }
}

void PodMaker::roles(const Object& object, std::string_view field, Made& out) {
  if (object.get("spec", "runPolicy", "suspend").as_bool()) {
    out.notes.push_back(
        fmt::format("{} {} is suspended: it makes no pods", object.kind(), object.name()));
    return;
  }
  for (const json::Member& role : object.get("spec", field).members()) {
    const int64_t pods = count_in(role.value["replicas"], 1);
    for (int64_t i = 0; i < pods && out.problem.empty(); ++i)
      pod(role.value["template"], fmt::format("{}-{}-{}", object.name(), small(role.name()), i),
          object,
          {{"training.kubeflow.org/job-name", std::string(object.name())},
           {"training.kubeflow.org/replica-type", small(role.name())},
           {"training.kubeflow.org/replica-index", std::to_string(i)}},
          {}, out);
  }
}

void PodMaker::job_set(const Object& object, Made& out) {
  if (object.get("spec", "suspend").as_bool()) {
    out.notes.push_back(fmt::format("JobSet {} is suspended: it makes no pods", object.name()));
    return;
  }
  for (const Value& jobs : object.get("spec", "replicatedJobs").items()) {
    const std::string role = jobs["name"].str();
    const int64_t count = count_in(jobs["replicas"], 1);
    for (int64_t i = 0; i < count && out.problem.empty(); ++i) {
      Value made = Value::object({{"apiVersion", "batch/v1"}, {"kind", "Job"}});
      if (jobs.get("template", "metadata").is_object())
        made.set("metadata", jobs.get("template", "metadata"));
      made.set("spec", jobs.get("template", "spec"));
      made.ref("spec").set("completionMode", "Indexed");
      const Object one =
          owned(std::move(made), fmt::format("{}-{}-{}", object.name(), role, i), object);
      out.objects.push_back(one);
      job(one,
          {{"jobset.sigs.k8s.io/jobset-name", std::string(object.name())},
           {"jobset.sigs.k8s.io/replicatedjob-name", role},
           {"jobset.sigs.k8s.io/job-index", std::to_string(i)}},
          out);
    }
  }
}

void PodMaker::leader_workers(const Object& object, Made& out) {
  const Value& templates = object.get("spec", "leaderWorkerTemplate");
  const int64_t groups = count_in(object.get("spec", "replicas"), 1);
  const int64_t size = count_in(templates["size"], 1);
  const bool own = templates["leaderTemplate"].is_object();
  for (int64_t group = 0; group < groups && out.problem.empty(); ++group) {
    for (int64_t i = 0; i < size && out.problem.empty(); ++i) {
      const std::string leader = fmt::format("{}-{}", object.name(), group);
      pod(templates[i == 0 && own ? "leaderTemplate" : "workerTemplate"],
          i == 0 ? leader : fmt::format("{}-{}", leader, i), object,
          {{"leaderworkerset.sigs.k8s.io/name", std::string(object.name())},
           {"leaderworkerset.sigs.k8s.io/group-index", std::to_string(group)},
           {"leaderworkerset.sigs.k8s.io/worker-index", std::to_string(i)}},
          {}, out);
    }
  }
}

void PodMaker::ray(const Object& cluster, Made& out) {
  const auto marks = [&](std::string_view group, std::string_view type) {
    return Marks{{"ray.io/cluster", std::string(cluster.name())},
                 {"ray.io/group", std::string(group)},
                 {"ray.io/node-type", std::string(type)}};
  };
  pod(cluster.get("spec", "headGroupSpec", "template"), fmt::format("{}-head", cluster.name()),
      cluster, marks("headgroup", "head"), {}, out);
  for (const Value& group : cluster.get("spec", "workerGroupSpecs").items()) {
    const std::string name = group["groupName"].str();
    const int64_t pods =
        std::max(count_in(group["replicas"], 0), count_in(group["minReplicas"], 0)) *
        std::max<int64_t>(count_in(group["numOfHosts"], 1), 1);
    for (int64_t i = 0; i < pods && out.problem.empty(); ++i)
      pod(group["template"], fmt::format("{}-{}-{}", cluster.name(), name, i), cluster,
          marks(name, "worker"), {}, out);
  }
}

// Volcano makes the PodGroup that its tasks name.
void PodMaker::tasks(const Object& object, Made& out) {
  const Value& spec = object["spec"];
  const std::string group = fmt::format("{}-{}", object.name(), object.uid());
  int64_t all = 0;
  Value least = Value::object();
  for (const Value& task : spec["tasks"].items()) {
    const int64_t pods = count_in(task["replicas"], 1);
    all += pods;
    least.set(task["name"].as_string(), count_in(task["minAvailable"], pods));
  }
  Value made =
      Value::object({{"apiVersion", "scheduling.volcano.sh/v1beta1"}, {"kind", "PodGroup"}});
  made.ref("spec").set("minMember", count_in(spec["minAvailable"], 0) > 0
                                        ? count_in(spec["minAvailable"], 0)
                                        : std::max<int64_t>(all, 1));
  // Minima of tasks count only where together they are no more than that of the whole.
  int64_t sum = 0;
  for (const json::Member& task : least.members()) sum += task.value.as_int();
  if (sum <= made.get("spec", "minMember").as_int())
    made.ref("spec").set("minTaskMember", std::move(least));
  for (const char* key : {"queue", "priorityClassName"}) {
    if (spec[key].is_string()) made.ref("spec").set(key, spec[key]);
  }
  out.objects.push_back(owned(std::move(made), group, object));
  for (const Value& task : spec["tasks"].items()) {
    const std::string name = task["name"].str();
    const int64_t pods = count_in(task["replicas"], 1);
    for (int64_t i = 0; i < pods && out.problem.empty(); ++i)
      pod(task["template"], fmt::format("{}-{}-{}", object.name(), name, i), object,
          {{"volcano.sh/job-name", std::string(object.name())}, {"volcano.sh/task-spec", name}},
          {{"scheduling.k8s.io/group-name", group}, {"volcano.sh/task-spec", name}}, out);
  }
}

// False: its pods are not known.
bool PodMaker::expand(const Object& object, Made& out) {
  const std::string_view group = group_of(object.api_version());
  const std::string_view kind = object.kind();
  const auto child = [&](const char* version, const char* made_kind, const Value& spec,
                         const std::string& name) {
    Value made = Value::object({{"apiVersion", version}, {"kind", made_kind}});
    made.set("spec", spec);
    out.objects.push_back(owned(std::move(made), name, object));
    return Object(out.objects.back());
  };
  if (group == "batch" && kind == "Job") return job(object, {}, out), true;
  if (group == "batch" && kind == "CronJob") {
    out.notes.push_back(fmt::format("CronJob {}: one run of it is planned", object.name()));
    return job(child("batch/v1", "Job", object.get("spec", "jobTemplate", "spec"),
                     fmt::format("{}-run", object.name())),
               {}, out),
           true;
  }
  if (kind == "ReplicaSet" || kind == "ReplicationController")
    return set_of_pods(object, out), true;
  if (group == "apps" && kind == "Deployment")
    return set_of_pods(child("apps/v1", "ReplicaSet", object["spec"],
                             fmt::format("{}-planned", object.name())),
                       out),
           true;
  if (group == "apps" && kind == "StatefulSet") return stateful(object, out), true;
  if (group == "apps" && kind == "DaemonSet") return daemons(object, out), true;
  if (group == "batch.volcano.sh" && kind == "Job") return tasks(object, out), true;
  if (kind == "JobSet") return job_set(object, out), true;
  if (kind == "LeaderWorkerSet") return leader_workers(object, out), true;
  if (group == "kubeflow.org") {
    for (const json::Member& field : object["spec"].members()) {
      if (field.name().ends_with("ReplicaSpecs")) return roles(object, field.name(), out), true;
    }
  }
  if (group == "ray.io" && kind == "RayCluster") return ray(object, out), true;
  for (const char* field : {"rayClusterSpec", "rayClusterConfig"}) {
    if (group == "ray.io" && object.get("spec", field).is_object())
      return ray(child("ray.io/v1", "RayCluster", object.get("spec", field),
                       fmt::format("{}-raycluster", object.name())),
                 out),
             true;
  }
  return kind != "TrainJob" && !kind.ends_with("Job") && is_kept(group, kind);
}

Made PodMaker::make(const Value& manifest) {
  Made out;
  Value root = manifest;
  const std::string kind = root["kind"].str();
  const std::string group(group_of(root["apiVersion"].as_string()));
  std::string name = root.get("metadata", "name").str();
  if (name.empty()) name = root.get("metadata", "generateName").str() + "planned";
  if (kind.empty() || root["apiVersion"].as_string().empty()) {
    out.problem = "it has no kind or no apiVersion: give both";
    return out;
  }
  if (!cluster_wide(kind) && root.get("metadata", "namespace").as_string().empty())
    root.ref("metadata").set("namespace", options_.ns);
  const std::string ns = root.get("metadata", "namespace").str();
  out.title = fmt::format("{} {}{}{}", kind, ns, ns.empty() ? "" : "/", name);
  if (group.empty() && kind == "Pod") {
    pod(root, name, {}, {}, {}, out);
    return out;
  }
  if (!is_kept(group, kind) && makes_no_pods(group, kind)) {
    out.notes.push_back(fmt::format("{}: has no say in where pods go, and is left out", out.title));
    return out;
  }
  const Object object = owned(std::move(root), name, {});
  out.objects.push_back(object);
  if (!expand(object, out))
    out.problem = fmt::format(
        "what pods a {} of {} makes is not known: give its pods, or the jobs that it makes", kind,
        object.api_version());
  return out;
}

}  // namespace tessera::scheduler
