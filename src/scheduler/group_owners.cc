#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "scheduler/core/amount.h"
#include "scheduler/group_reading.h"

namespace tessera::scheduler {
namespace {

using core::sat_add;
using core::sat_mul;

constexpr size_t kOwnersMax = 8;
constexpr std::string_view kStep = "trainer.kubeflow.org/trainjob-ancestor-step";
constexpr std::string_view kSetName = "leaderworkerset.sigs.k8s.io/name";
constexpr std::string_view kSetIndex = "leaderworkerset.sigs.k8s.io/group-index";

// Kinds whose pods are one job; the members of `replicas` are named so where roles have numbers of their own.
struct Kind {
  std::string_view group;
  std::string_view kind;
  std::string_view replicas;
};
constexpr Kind kKinds[] = {
    {"batch", "Job", ""},
    {"apps", "StatefulSet", ""},
    {"apps", "ReplicaSet", ""},
    {"jobset.x-k8s.io", "JobSet", ""},
    {"leaderworkerset.x-k8s.io", "LeaderWorkerSet", ""},
    {"kubeflow.org", "PyTorchJob", "pytorchReplicaSpecs"},
    {"kubeflow.org", "TFJob", "tfReplicaSpecs"},
    {"kubeflow.org", "XGBoostJob", "xgbReplicaSpecs"},
    {"kubeflow.org", "PaddleJob", "paddleReplicaSpecs"},
    {"kubeflow.org", "JAXJob", "jaxReplicaSpecs"},
    {"kubeflow.org", "MPIJob", "mpiReplicaSpecs"},
    {"trainer.kubeflow.org", "TrainJob", ""},
    {"ray.io", "RayCluster", ""},
    {"batch.volcano.sh", "Job", ""},
};

const Kind* kind_of(const ObjectName& name) {
  const std::string_view group = group_of(name.api_version);
  for (const Kind& kind : kKinds) {
    if (kind.group == group && kind.kind == name.kind) return &kind;
  }
  return nullptr;
}

int64_t number(const json::Value& value, int64_t otherwise) {
  return value.is_number() ? std::max<int64_t>(value.as_int(otherwise), 0) : otherwise;
}

int64_t pods_of_job(const json::Value& spec) {
  const int64_t at_once = number(spec["parallelism"], 1);
  return spec["completions"].is_number() ? std::min(at_once, number(spec["completions"], 1))
                                         : at_once;
}

int64_t pods_of_set(const json::Value& spec, bool initializers_only) {
  int64_t sum = 0;
  for (const json::Value& jobs : spec["replicatedJobs"].items()) {
    const std::string_view step = jobs.get("template", "metadata", "labels", kStep).as_string();
    if (initializers_only && (step.empty() || step == "trainer")) continue;
    sum = sat_add(sum,
                  sat_mul(number(jobs["replicas"], 1), pods_of_job(jobs.get("template", "spec"))));
  }
  return sum;
}

// A launcher that is made when the workers run already is none of those that can start together.
int64_t pods_of_roles(const json::Value& spec, std::string_view replicas) {
  const bool late = spec["launcherCreationPolicy"].as_string() == "WaitForWorkersReady";
  int64_t sum = 0;
  for (const json::Member& role : spec[replicas].members()) {
    if (late && role.name() == "Launcher") continue;
    int64_t count = number(role.value["replicas"], 1);
    if (role.name() == "Worker")
      count = std::max(count, number(spec.get("elasticPolicy", "maxReplicas"), 0));
    sum = sat_add(sum, count);
  }
  return sum;
}

int64_t pods_of_ray(const json::Value& spec) {
  int64_t sum = 1;
  for (const json::Value& group : spec["workerGroupSpecs"].items()) {
    const int64_t most =
        std::max(number(group["replicas"], 0),
                 spec["enableInTreeAutoscaling"].as_bool() ? number(group["maxReplicas"], 0) : 0);
    sum = sat_add(sum, sat_mul(most, number(group["numOfHosts"], 1)));
  }
  return sum;
}

int64_t pods_of_tasks(const json::Value& spec) {
  int64_t sum = 0;
  for (const json::Value& task : spec["tasks"].items())
    sum = sat_add(sum, number(task["replicas"], 1));
  return sum;
}

// A set that makes its pods one after the other, each when the one before is ready, has one to start at a time.
int64_t pods_in(const Kind& kind, const json::Value& spec) {
  if (kind.group == "batch") return pods_of_job(spec);
  if (kind.group == "batch.volcano.sh") return pods_of_tasks(spec);
  if (kind.kind == "JobSet") return pods_of_set(spec, false);
  if (kind.kind == "RayCluster") return pods_of_ray(spec);
  if (!kind.replicas.empty()) return pods_of_roles(spec, kind.replicas);
  if (kind.kind == "LeaderWorkerSet") {
    return spec["startupPolicy"].as_string() == "LeaderReady"
               ? 1
               : number(spec.get("leaderWorkerTemplate", "size"), 1);
  }
  if (kind.kind == "StatefulSet" && spec["podManagementPolicy"].as_string() != "Parallel") return 1;
  return kind.kind == "TrainJob" ? 0 : number(spec["replicas"], 1);
}

// A TrainJob's pods are those of its JobSet, but for the steps before the training.
std::optional<int64_t> pods_together(const PodContext& pod, const Owner& owner) {
  if (owner.name.kind != "TrainJob") return pods_of(owner);
  for (const Owner& other : pod.owners) {
    if (other.name.kind != "JobSet") continue;
    const std::optional<int64_t> all = pods_of(other);
    if (all) return *all - initializers_of(pod);
  }
  return std::nullopt;
}

ObjectName reference_of(const json::Value& reference, std::string_view ns) {
  return {reference["apiVersion"].str(), reference["kind"].str(), std::string(ns),
          reference["name"].str()};
}

const json::Value* controller_of(const kube::Object& object) {
  for (const json::Value& reference : object.metadata()["ownerReferences"].items()) {
    if (reference["controller"].as_bool()) return &reference;
  }
  return nullptr;
}

// What asks for a minimum, and on which owner; the pod's own where `at` is the number of owners.
struct Asked {
  std::string text{};
  std::string field{};
  size_t at = 0;
};

constexpr std::string_view kMinimumKeys[] = {"tessera.dev/min-members",
                                             "kai.scheduler/batch-min-member",
                                             "scheduling.volcano.sh/group-min-member"};

void ask(const kube::Object& object, std::string_view where, size_t at, std::vector<Asked>& out) {
  for (const std::string_view key : kMinimumKeys) {
    const std::string_view text = object.annotation(key);
    if (!text.empty()) out.push_back({std::string(text), fmt::format("{} of {}", key, where), at});
  }
}

std::vector<Asked> asked_minimums(const PodContext& pod) {
  std::vector<Asked> out;
  for (size_t i = 0; i < pod.owners.size(); ++i) {
    const Owner& owner = pod.owners[i];
    ask(owner.object, fmt::format("{} {}", owner.name.kind, owner.name.name), i, out);
  }
  ask(pod.pod, "the pod", pod.owners.size(), out);
  for (size_t i = 0; i < pod.owners.size(); ++i) {
    const Owner& owner = pod.owners[i];
    const json::Value& least =
        owner.object.get("spec", "runPolicy", "schedulingPolicy", "minAvailable");
    if (!least.is_null())
      out.push_back({least.is_string() ? least.str() : least.dump(),
                     fmt::format("runPolicy.schedulingPolicy.minAvailable of {}", owner.name.name),
                     i});
  }
  return out;
}

// The topmost owner that is a job of a kind we know; else the nearest.
size_t job_above(const PodContext& pod) {
  for (size_t i = pod.owners.size(); i-- > 0;) {
    if (kind_of(pod.owners[i].name) != nullptr) return i;
  }
  return 0;
}

// "Master=1,Worker=3": a minimum for each role.
void read_roles(const PodContext& pod, const Owner& owner, const Asked& asked, Group& out) {
  const std::string_view label = role_label(owner.name.kind);
  if (label.empty()) {
    wait_with(out,
              fmt::format("{}: a {} has no roles: give one number", asked.field, owner.name.kind));
    return;
  }
  const std::string_view role = pod.mark(label);
  out.subgroup = -1;
  int64_t sum = 0;
  std::string_view rest = asked.text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    const Count count =
        read_count(equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1),
                   asked.field);
    if (!count.value) wait_with(out, count.problem);
    if (name == role) out.subgroup = static_cast<int32_t>(out.subgroup_names.size());
    out.subgroup_names.emplace_back(name);
    out.spec.subgroup_mins.push_back(count.value.value_or(0));
    sum = sat_add(sum, count.value.value_or(0));
  }
  if (out.subgroup < 0) out.subgroup = static_cast<int32_t>(out.subgroup_names.size());
  out.subgroup_names.emplace_back();
  out.spec.subgroup_mins.push_back(0);
  out.spec.min_members =
      static_cast<int32_t>(std::clamp<int64_t>(sum, 1, std::numeric_limits<int32_t>::max()));
}

void read_minimum(const PodContext& pod, const Owner& owner, const Asked& asked, Group& out) {
  const std::optional<int64_t> most = pods_together(pod, owner);
  const std::string_view text = asked.text;
  if (text == "all") {
    if (!most)
      return wait_with(out, fmt::format("{}: it cannot be told how many pods {} {} makes: give a "
                                        "number",
                                        asked.field, owner.name.kind, owner.name.name));
    out.spec.min_members =
        static_cast<int32_t>(std::clamp<int64_t>(*most, 1, std::numeric_limits<int32_t>::max()));
    return;
  }
  if (text.find('=') != std::string_view::npos) {
    read_roles(pod, owner, asked, out);
  } else {
    const Count count = read_count(text, asked.field);
    if (!count.value) return wait_with(out, count.problem);
    out.spec.min_members = std::max(*count.value, 1);
  }
  if (most && out.spec.min_members > *most)
    wait_with(out, fmt::format(
                       "{}: {} is above the {} pods that {} {} makes at one time: lower it, or "
                       "let it make more",
                       asked.field, out.spec.min_members, *most, owner.name.kind, owner.name.name));
}

}  // namespace

std::optional<int64_t> pods_of(const Owner& owner) {
  const Kind* kind = kind_of(owner.name);
  if (kind == nullptr || !owner.object) return std::nullopt;
  const int64_t pods = pods_in(*kind, owner.object["spec"]);
  return pods > 0 ? std::optional(pods) : std::nullopt;
}

std::string_view role_label(std::string_view kind) {
  if (kind == "JobSet" || kind == "TrainJob") return "jobset.sigs.k8s.io/replicatedjob-name";
  if (kind == "RayCluster") return "ray.io/group";
  for (const Kind& known : kKinds) {
    if (known.kind == kind && !known.replicas.empty()) return "training.kubeflow.org/replica-type";
  }
  return {};
}

bool is_initializer(const PodContext& pod) {
  const std::string_view step = pod.mark(kStep);
  return !step.empty() && step != "trainer";
}

int64_t initializers_of(const PodContext& pod) {
  for (const Owner& owner : pod.owners) {
    if (owner.name.kind == "JobSet") return pods_of_set(owner.object["spec"], true);
  }
  return 0;
}

PodContext context_of(const kube::Object& pod, const GroupSources& sources) {
  PodContext out{pod, sources};
  if (sources.ns) out.ns = sources.ns(pod.ns());
  kube::Object at = pod;
  while (out.owners.size() < kOwnersMax) {
    const json::Value* reference = controller_of(at);
    if (reference == nullptr || (*reference)["kind"].as_string() == "Node") break;
    Owner owner{reference_of(*reference, pod.ns()), (*reference)["uid"].str()};
    owner.object = out.find(group_of(owner.name.api_version), owner.name.kind, owner.name.name);
    // Another object may have the name by now.
    if (owner.object && !owner.uid.empty() && owner.object.uid() != owner.uid) owner.object = {};
    at = owner.object;
    out.owners.push_back(std::move(owner));
  }
  // Workers are owned by way of their leader's pod, which need not be known.
  const std::string_view set = pod.label(kSetName);
  if (!set.empty() && (out.owners.empty() || out.owners.back().name.kind != "LeaderWorkerSet")) {
    Owner owner{{"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", std::string(pod.ns()),
                 std::string(set)}};
    owner.object = out.find("leaderworkerset.x-k8s.io", owner.name.kind, owner.name.name);
    owner.uid = owner.object.uid();
    out.owners.push_back(std::move(owner));
  }
  return out;
}

bool read_owner(const PodContext& pod, Group& out) {
  if (pod.owners.empty()) return false;
  const std::vector<Asked> asked = asked_minimums(pod);
  if (asked.empty()) return false;
  const Asked& first = asked.front();
  const Owner& owner = pod.owners[first.at < pod.owners.size() ? first.at : job_above(pod)];
  out.object = owner.name;
  out.key = fmt::format("{}/{}/{}/{}", owner.name.kind, owner.name.ns, owner.name.name, owner.uid);
  if (owner.name.kind == "LeaderWorkerSet") out.key += fmt::format("/{}", pod.pod.label(kSetIndex));
  for (const Asked& other : asked) {
    if (other.text != first.text)
      out.notes.push_back(fmt::format("{} says {}, {} says {}: the first counts; keep one of them",
                                      first.field, first.text, other.field, other.text));
  }
  read_minimum(pod, owner, first, out);
  return true;
}

}  // namespace tessera::scheduler
