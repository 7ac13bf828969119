#include "sim/workload.h"

#include <fmt/core.h>

#include <iterator>

namespace tessera::sim {

using json::Value;

Value Workload::container(std::string_view name, Value resources) {
  return Value::object(
      {{"name", name}, {"image", "registry.example/work:1"}, {"resources", std::move(resources)}});
}

// One container's resources; shares are asked for by annotation.
Value Workload::resources(Value& annotations) {
  Value requests = Value::object({{"cpu", fmt::format("{}m", 250 * (1 + random_.below(16)))},
                                  {"memory", fmt::format("{}Mi", 256 * (1 + random_.below(32)))}});
  Value limits = Value::object();
  switch (random_.below(8)) {
    case 0:
    case 1:
    case 2: {
      constexpr int kCounts[] = {1, 1, 1, 2, 2, 4, 8, 16};  // 16: more than any node of the fleet
      limits.set("nvidia.com/gpu", fmt::format("{}", kCounts[random_.below(std::size(kCounts))]));
      break;
    }
    case 3:
      annotations.set("tessera.dev/gpu-milli", fmt::format("{}", 100 * (1 + random_.below(10))));
      break;
    case 4:
      annotations.set("gpu-fraction", fmt::format("0.{}", 1 + random_.below(9)));
      break;
    case 5:
      limits.set(random_.chance(0.5) ? "nvidia.com/mig-1g.10gb" : "nvidia.com/mig-3g.40gb", "1");
      break;
    case 6:
      limits.set("nvidia.com/gpu.shared", "1");
      break;
    default:
      break;
  }
  return Value::object({{"requests", std::move(requests)}, {"limits", std::move(limits)}});
}

Value Workload::pod_template(bool long_running) {
  Value annotations = Value::object();
  Value spec = Value::object();
  Value& containers = spec.ref("containers");
  Value first = resources(annotations);
  const bool gpus = first["limits"].contains("nvidia.com/gpu");
  containers.push_back(container("main", std::move(first)));
  if (random_.chance(0.2)) containers.push_back(container("side", Value::object()));
  if (random_.chance(0.2)) {
    Value limits = Value::object();
    if (gpus) limits.set("nvidia.com/gpu", fmt::format("{}", 1 + random_.below(2)));
    Value init = container("prepare", Value::object({{"limits", std::move(limits)}}));
    if (random_.chance(0.4)) init.set("restartPolicy", "Always");
    spec.ref("initContainers").push_back(std::move(init));
    annotations.set("tessera.dev/init-run-for", fmt::format("{}s", 1 + random_.below(20)));
  }
  if (!long_running || random_.chance(0.1)) {
    annotations.set("tessera.dev/run-for", fmt::format("{}s", 5 + random_.below(240)));
  }
  if (random_.chance(0.1)) annotations.set("tessera.dev/exit-code", "1");
  if (random_.chance(0.2))
    annotations.set("tessera.dev/stop-after", fmt::format("{}s", random_.below(50)));
  if (random_.chance(0.3))
    spec.set("terminationGracePeriodSeconds", static_cast<int64_t>(random_.below(40)));
  if (random_.chance(0.3)) {
    spec.set("priorityClassName", random_.chance(0.5) ? "urgent" : "spare");
  }
  if (random_.chance(0.2)) spec.set("nodeSelector", Value::object({{"kubernetes.io/os", "linux"}}));
  return Value::object({{"metadata", Value::object({{"annotations", std::move(annotations)}})},
                        {"spec", std::move(spec)}});
}

std::vector<Drawn> Workload::priority_classes() {
  std::vector<Drawn> out;
  for (const auto& [name, value] : {std::pair("urgent", 1000), std::pair("spare", -10)}) {
    out.push_back({{"scheduling.k8s.io", "v1", "priorityclasses"},
                   Value::object({{"apiVersion", "scheduling.k8s.io/v1"},
                                  {"kind", "PriorityClass"},
                                  {"metadata", Value::object({{"name", name}})},
                                  {"value", value}})});
  }
  return out;
}

Drawn Workload::draw() {
  const std::string name = fmt::format("w{}", ++count_);
  const Value meta = Value::object({{"name", name}, {"namespace", "default"}});
  const Value labels = Value::object({{"app", name}});
  switch (random_.below(3)) {
    case 0: {
      Value spec = Value::object({{"parallelism", static_cast<int64_t>(1 + random_.below(6))},
                                  {"completions", static_cast<int64_t>(1 + random_.below(8))},
                                  {"backoffLimit", static_cast<int64_t>(random_.below(4))},
                                  {"template", pod_template(false)}});
      spec.ref("template", "spec", "restartPolicy") = random_.chance(0.5) ? "Never" : "OnFailure";
      return {
          {"batch", "v1", "jobs"},
          Value::object(
              {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", meta}, {"spec", spec}})};
    }
    case 1: {
      Value spec = Value::object({{"replicas", static_cast<int64_t>(1 + random_.below(5))},
                                  {"selector", Value::object({{"matchLabels", labels}})},
                                  {"template", pod_template(true)}});
      spec.ref("template", "metadata", "labels") = labels;
      return {{"apps", "v1", "deployments"},
              Value::object({{"apiVersion", "apps/v1"},
                             {"kind", "Deployment"},
                             {"metadata", meta},
                             {"spec", spec}})};
    }
    default: {
      Value pod = pod_template(random_.chance(0.3));
      constexpr const char* kPolicies[] = {"Always", "OnFailure", "Never"};
      pod.ref("spec", "restartPolicy") = kPolicies[random_.below(3)];
      pod.set("apiVersion", "v1");
      pod.set("kind", "Pod");
      pod.ref("metadata", "name") = name;
      pod.ref("metadata", "namespace") = "default";
      return {kube::core_v1("pods"), std::move(pod)};
    }
  }
}

}  // namespace tessera::sim
