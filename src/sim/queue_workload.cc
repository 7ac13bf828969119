#include "sim/queue_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tessera::sim {
namespace {

using json::Value;
using kube::Gvr;
using kube::Request;
using kube::Verb;

const Gvr kQueues{"tessera.dev", "v1alpha1", "queues"};
const Gvr kBudgets{"policy", "v1", "poddisruptionbudgets"};
const Gvr kJobs{"batch", "v1", "jobs"};
const Gvr kDeployments{"apps", "v1", "deployments"};
constexpr const char* kSpaces[] = {"default", "default", "team", "lab"};

Value labels_of(const std::string& app) {
  return Value::object({{"app", app}});
}

Request patch(const Gvr& gvr, const std::string& ns, const std::string& name) {
  Request out;
  out.verb = Verb::kPatch;
  out.gvr = gvr;
  out.ns = ns;
  out.name = name;
  return out;
}

Drawn drawn(Gvr gvr, Value object) {
  return {std::move(gvr), std::move(object)};
}

}  // namespace

Value QueueWorkload::named(std::string_view api_version, std::string_view kind,
                           const std::string& name) {
  Value meta = Value::object({{"name", name}});
  if (!ns_.empty()) meta.set("namespace", ns_);
  return Value::object({{"apiVersion", api_version}, {"kind", kind}, {"metadata", meta}});
}

std::string QueueWorkload::any_queue() {
  if (random_.chance(0.03)) return "nowhere";
  if (random_.chance(0.15)) return "default";
  return queues_[random_.below(queues_.size())];
}

Value QueueWorkload::queue_spec(size_t at) {
  Value spec = Value::object();
  // Under one of those before it: no loop, and often three levels.
  if (at > 0 && random_.chance(0.5)) spec.set("parent", queues_[random_.below(at)]);
  if (random_.chance(0.6)) spec.ref("quota", "gpu") = upto(8);
  if (random_.chance(0.2)) spec.ref("quota", "cpu") = upto(40);
  if (random_.chance(0.4)) spec.ref("limit", "gpu") = fmt::format("{}", 1 + upto(12));
  if (random_.chance(0.15)) spec.ref("limit", "cpu") = fmt::format("{}", 4 + upto(60));
  if (random_.chance(0.1)) spec.ref("limit", "memory") = fmt::format("{}Gi", 8 + upto(200));
  spec.set("weight", upto(4));
  if (random_.chance(0.3)) spec.set("priority", 50 + 50 * upto(2));
  if (random_.chance(0.15)) spec.set("strictFifo", true);
  if (random_.chance(0.2)) spec.set("reclaimable", false);
  if (random_.chance(0.2)) spec.set("minRuntime", fmt::format("{}s", 10 + upto(60)));
  if (random_.chance(0.3)) spec.set("defaultRuntime", fmt::format("{}s", 60 + upto(300)));
  if (random_.chance(0.3)) spec.set("reservations", upto(3));
  if (random_.chance(0.03)) spec.set("closed", true);
  if (!random_.chance(0.08)) return spec;
  switch (random_.below(4)) {  // nonsense
    case 0:
      spec.set("parent", "not-there");
      break;
    case 1:
      spec.set("parent", queues_[at]);
      break;
    case 2:
      spec.set("parent", queues_[random_.below(queues_.size())]);
      break;
    default:
      spec.ref("quota", "gpu") = 20;
      spec.ref("limit", "gpu") = "2";
  }
  return spec;
}

std::vector<Drawn> QueueWorkload::found() {
  std::vector<Drawn> out;
  const size_t queues = 2 + random_.below(5);
  for (size_t q = 0; q < queues; ++q) queues_.push_back(fmt::format("q{}", q));
  ns_.clear();
  for (const auto& [name, value] : {std::pair("high", 500), std::pair("low", -5)}) {
    Value priority = named("scheduling.k8s.io/v1", "PriorityClass", name);
    priority.set("value", value);
    out.push_back(drawn({"scheduling.k8s.io", "v1", "priorityclasses"}, std::move(priority)));
  }
  for (const char* name : {"team", "lab"}) {
    Value ns = named("v1", "Namespace", name);
    if (random_.chance(0.7)) ns.ref("metadata", "annotations", "tessera.dev/queue") = any_queue();
    out.push_back(drawn(kube::core_v1("namespaces"), std::move(ns)));
  }
  for (size_t q = 0; q < queues; ++q) {
    Value queue = named("tessera.dev/v1alpha1", "Queue", queues_[q]);
    queue.set("spec", queue_spec(q));
    out.push_back(drawn(kQueues, std::move(queue)));
  }
  if (!random_.chance(0.5)) return out;
  ns_ = "default";
  Value set = named("apps/v1", "DaemonSet", "everywhere");
  Value pod = Value::object({{"metadata", Value::object({{"labels", labels_of("everywhere")}})}});
  pod.ref("spec", "containers")
      .push_back(Value::object(
          {{"name", "main"},
           {"image", "registry.example/agent:1"},
           {"resources",
            Value::object({{"requests", Value::object({{"cpu", "200m"}, {"memory", "64Mi"}})}})}}));
  set.set("spec",
          Value::object({{"selector", Value::object({{"matchLabels", labels_of("everywhere")}})},
                         {"template", std::move(pod)}}));
  out.push_back(drawn({"apps", "v1", "daemonsets"}, std::move(set)));
  return out;
}

// A pod of one container with whole GPUs, a share, or cores alone, in a queue more often than not.
Value QueueWorkload::pod_template(bool ends) {
  Value annotations = Value::object();
  Value labels = Value::object();
  Value limits = Value::object();
  const bool cores = random_.chance(0.2);
  if (!cores && random_.chance(0.8)) {
    constexpr int kCounts[] = {1, 1, 1, 1, 2, 2, 2, 4, 4, 8};
    limits.set("nvidia.com/gpu", fmt::format("{}", kCounts[random_.below(std::size(kCounts))]));
  } else if (!cores) {
    annotations.set("tessera.dev/gpu-milli", fmt::format("{}", 100 * (1 + random_.below(10))));
  }
  Value requests =
      Value::object({{"cpu", fmt::format("{}m", 250 * (1 + random_.below(cores ? 40 : 12)))},
                     {"memory", fmt::format("{}Mi", 256 * (1 + random_.below(32)))}});
  Value spec = Value::object();
  spec.ref("containers")
      .push_back(Value::object({{"name", "main"},
                                {"image", "registry.example/work:1"},
                                {"resources", Value::object({{"requests", std::move(requests)},
                                                             {"limits", std::move(limits)}})}}));
  if (ends) annotations.set("tessera.dev/run-for", fmt::format("{}s", 10 + random_.below(240)));
  if (random_.chance(0.05)) annotations.set("tessera.dev/exit-code", "1");
  if (random_.chance(0.2))
    annotations.set("tessera.dev/stop-after", fmt::format("{}s", random_.below(40)));
  if (random_.chance(0.4))
    spec.set("terminationGracePeriodSeconds", static_cast<int64_t>(random_.below(40)));
  if (random_.chance(0.5)) {
    constexpr const char* kClasses[] = {"urgent", "spare", "high", "low"};
    spec.set("priorityClassName", kClasses[random_.below(std::size(kClasses))]);
  }
  if (random_.chance(0.25)) spec.set("activeDeadlineSeconds", 30 + upto(400));
  if (random_.chance(0.7)) {
    constexpr const char* kKeys[] = {"tessera.dev/queue", "tessera.dev/queue", "tessera.dev/queue",
                                     "kai.scheduler/queue"};
    const char* key = kKeys[random_.below(std::size(kKeys))];
    (random_.chance(0.5) ? labels : annotations).set(key, any_queue());
  }
  return Value::object(
      {{"metadata", Value::object({{"annotations", annotations}, {"labels", labels}})},
       {"spec", std::move(spec)}});
}

Drawn QueueWorkload::budget(const std::string& app, int size) {
  Value object = named("policy/v1", "PodDisruptionBudget", app);
  Value spec = Value::object({{"selector", Value::object({{"matchLabels", labels_of(app)}})}});
  if (random_.chance(0.7)) {
    spec.set("minAvailable", upto(size));
  } else {
    spec.set("maxUnavailable", upto(2));
  }
  object.set("spec", std::move(spec));
  budgets_.push_back({kBudgets, ns_, app, size});
  return drawn(kBudgets, std::move(object));
}

std::vector<Drawn> QueueWorkload::draw() {
  std::vector<Drawn> out;
  ns_ = kSpaces[random_.below(std::size(kSpaces))];
  switch (random_.below(6)) {
    case 0:
    case 1:
      draw_group(out);
      break;
    case 2:
    case 3:
      draw_job(out);
      break;
    case 4:
      draw_deployment(out);
      break;
    default:
      draw_pod(out);
  }
  return out;
}

// A PodGroup with pods that nobody makes anew; sometimes more than the minimum, sometimes fewer.
void QueueWorkload::draw_group(std::vector<Drawn>& out) {
  const std::string name = fmt::format("g{}", ++count_);
  const int size = static_cast<int>(1 + random_.below(6));
  const int64_t least =
      random_.chance(0.1) ? size + 1 + upto(2) : std::max<int64_t>(1, size - upto(2));
  Value pod = pod_template(random_.chance(0.85));
  pod.set("apiVersion", "v1");
  pod.set("kind", "Pod");
  pod.ref("spec", "restartPolicy") = random_.chance(0.5) ? "Never" : "OnFailure";
  pod.ref("metadata", "namespace") = ns_;
  pod.ref("metadata", "labels", "app") = name;
  Drawn group;
  switch (random_.below(3)) {
    case 0:
      group = {{"scheduling.x-k8s.io", "v1alpha1", "podgroups"},
               named("scheduling.x-k8s.io/v1alpha1", "PodGroup", name)};
      group.object.ref("spec", "minMember") = least;
      pod.ref("metadata", "labels", "scheduling.x-k8s.io/pod-group") = name;
      break;
    case 1:
      group = {{"scheduling.volcano.sh", "v1beta1", "podgroups"},
               named("scheduling.volcano.sh/v1beta1", "PodGroup", name)};
      group.object.ref("spec", "minMember") = least;
      if (random_.chance(0.5)) group.object.ref("spec", "queue") = any_queue();
      pod.ref("metadata", "annotations", "scheduling.k8s.io/group-name") = name;
      break;
    default:
      group = {{"scheduling.k8s.io", "v1beta1", "podgroups"},
               named("scheduling.k8s.io/v1beta1", "PodGroup", name)};
      group.object.ref("spec", "schedulingPolicy", "gang", "minCount") = least;
      pod.ref("spec", "schedulingGroup", "podGroupName") = name;
  }
  groups_.push_back({group.gvr, ns_, name, size});
  const bool late = random_.chance(0.3);  // after its pods
  if (!late) out.push_back(group);
  for (int i = 0; i < size; ++i) {
    Value one = pod;
    one.ref("metadata", "name") = fmt::format("{}-{}", name, i);
    out.push_back(drawn(kube::core_v1("pods"), std::move(one)));
  }
  if (late) out.push_back(group);
  if (random_.chance(0.15)) out.push_back(budget(name, size));
}

void QueueWorkload::draw_job(std::vector<Drawn>& out) {
  const std::string name = fmt::format("j{}", ++count_);
  Value job = named("batch/v1", "Job", name);
  const int64_t parallel = 1 + upto(5);
  Value spec = Value::object({{"parallelism", parallel},
                              {"completions", parallel + upto(3)},
                              {"backoffLimit", upto(4)},
                              {"template", pod_template(true)}});
  spec.ref("template", "spec", "restartPolicy") = random_.chance(0.5) ? "Never" : "OnFailure";
  spec.ref("template", "metadata", "labels", "app") = name;
  if (random_.chance(0.1)) spec.set("activeDeadlineSeconds", 60 + upto(600));
  if (random_.chance(0.7)) {
    job.ref("metadata", "annotations", "tessera.dev/min-members") =
        random_.chance(0.3)
            ? "all"
            : fmt::format("{}", random_.chance(0.1) ? parallel + 1 : 1 + upto(parallel - 1));
  }
  job.set("spec", std::move(spec));
  jobs_.push_back({kJobs, ns_, name, static_cast<int>(parallel)});
  out.push_back(drawn(kJobs, std::move(job)));
  if (random_.chance(0.15)) out.push_back(budget(name, static_cast<int>(parallel)));
}

void QueueWorkload::draw_deployment(std::vector<Drawn>& out) {
  const std::string name = fmt::format("d{}", ++count_);
  const int64_t replicas = 1 + upto(4);
  Value object = named("apps/v1", "Deployment", name);
  Value spec = Value::object({{"replicas", replicas},
                              {"selector", Value::object({{"matchLabels", labels_of(name)}})},
                              {"template", pod_template(false)}});
  spec.ref("template", "metadata", "labels", "app") = name;
  spec.ref("template", "spec").erase("activeDeadlineSeconds");
  object.set("spec", std::move(spec));
  deployments_.push_back({kDeployments, ns_, name, static_cast<int>(replicas)});
  out.push_back(drawn(kDeployments, std::move(object)));
  if (random_.chance(0.4)) out.push_back(budget(name, static_cast<int>(replicas)));
}

void QueueWorkload::draw_pod(std::vector<Drawn>& out) {
  const std::string name = fmt::format("p{}", ++count_);
  Value pod = pod_template(random_.chance(0.8));
  pod.set("apiVersion", "v1");
  pod.set("kind", "Pod");
  pod.ref("spec", "restartPolicy") = random_.chance(0.5) ? "Never" : "OnFailure";
  pod.ref("metadata", "name") = name;
  pod.ref("metadata", "namespace") = ns_;
  pod.ref("metadata", "labels", "app") = name;
  out.push_back(drawn(kube::core_v1("pods"), std::move(pod)));
}

Request QueueWorkload::change_group() {
  if (groups_.empty()) return change_queue();
  const Name& group = groups_[random_.below(groups_.size())];
  Request out = patch(group.gvr, group.ns, group.name);
  if (random_.chance(0.15)) {
    out.verb = Verb::kDelete;
    return out;
  }
  const int64_t least = 1 + upto(group.size + (random_.chance(0.2) ? 3 : -1));
  if (group.gvr.group == "scheduling.k8s.io") {
    out.body.ref("spec", "schedulingPolicy", "gang", "minCount") = least;
  } else {
    out.body.ref("spec", "minMember") = least;
  }
  return out;
}

Request QueueWorkload::change_queue() {
  const size_t at = random_.below(queues_.size());
  Request out = patch(kQueues, "", queues_[at]);
  const double dice = random_.unit();
  if (dice < 0.15) {
    out.verb = Verb::kDelete;
  } else if (dice < 0.5) {  // made anew, where it is gone; else the whole of it is another
    out.verb = random_.chance(0.6) ? Verb::kCreate : Verb::kPatch;
    ns_.clear();
    out.body = named("tessera.dev/v1alpha1", "Queue", queues_[at]);
    out.body.set("spec", queue_spec(at));
  } else if (dice < 0.75) {
    out.body.ref("spec", "limit", "gpu") =
        random_.chance(0.3) ? Value() : Value(fmt::format("{}", upto(12)));
  } else if (dice < 0.9) {
    out.body.ref("spec", "quota", "gpu") = upto(8);
  } else {
    out.body.ref("spec", "closed") = random_.chance(0.3);
  }
  return out;
}

Request QueueWorkload::change_scale() {
  const bool jobs = !jobs_.empty() && (deployments_.empty() || random_.chance(0.5));
  const std::vector<Name>& from = jobs ? jobs_ : deployments_;
  if (from.empty()) return change_queue();
  const Name& name = from[random_.below(from.size())];
  Request out = patch(name.gvr, name.ns, name.name);
  out.body.ref("spec", jobs ? "parallelism" : "replicas") =
      jobs ? 1 + upto(name.size) : upto(name.size + 2);
  if (jobs && random_.chance(0.3)) {
    out.body = Value();
    out.body.ref("metadata", "annotations", "tessera.dev/min-members") =
        fmt::format("{}", 1 + upto(name.size));
  }
  return out;
}

Request QueueWorkload::change() {
  switch (random_.below(8)) {
    case 0:
    case 1:
    case 2:
      return change_group();
    case 3:
    case 4:
      return change_queue();
    case 5:
      return change_scale();
    case 6: {
      Request out = patch(kube::core_v1("namespaces"), "", random_.chance(0.5) ? "team" : "lab");
      out.body.ref("metadata", "annotations", "tessera.dev/queue") =
          random_.chance(0.2) ? Value() : Value(any_queue());
      return out;
    }
    default: {
      if (budgets_.empty()) return change_group();
      const Name& name = budgets_[random_.below(budgets_.size())];
      Request out = patch(name.gvr, name.ns, name.name);
      if (random_.chance(0.3)) {
        out.verb = Verb::kDelete;
      } else {
        out.body.set("spec", Value::object(
                                 {{"minAvailable", upto(name.size)}, {"maxUnavailable", Value()}}));
      }
      return out;
    }
  }
}

}  // namespace tessera::sim
