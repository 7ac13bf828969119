#include "kube/pod.h"

#include "kube/node.h"

namespace tessera::kube {
namespace {

using base::Code;

base::Result<Container> decode_container(const json::Value& value, const std::string& path) {
  Container out;
  out.name = value["name"].as_string();
  out.image = value["image"].as_string();
  const json::Value& resources = value["resources"];
  TS_TRY(out.requests, decode_resource_list(resources["requests"], path + ".resources.requests"));
  TS_TRY(out.limits, decode_resource_list(resources["limits"], path + ".resources.limits"));
  for (const auto& [name, amount] : out.limits) out.requests.try_emplace(name, amount);
  out.sidecar = value["restartPolicy"].as_string() == "Always";
  return out;
}

base::Status decode_containers(const json::Value& list, std::string_view path,
                               std::vector<Container>& out) {
  out.reserve(list.size());
  for (const json::Value& item : list.items()) {
    TS_TRY(auto made, decode_container(item, fmt::format("{}[{}]", path, out.size())));
    out.push_back(std::move(made));
  }
  return {};
}

base::Result<Toleration> decode_toleration(const json::Value& value, size_t index) {
  Toleration out;
  out.key = value["key"].as_string();
  out.value = value["value"].as_string();
  const std::string_view op = value["operator"].as_string();
  if (op == "Exists") {
    out.op = Toleration::Op::kExists;
  } else if (op == "Lt") {
    out.op = Toleration::Op::kLt;
  } else if (op == "Gt") {
    out.op = Toleration::Op::kGt;
  } else if (!op.empty() && op != "Equal") {
    return base::error(Code::kInvalid,
                       "spec.tolerations[{}].operator: \"{}\" is not one of Equal, Exists, Lt, Gt",
                       index, op);
  }
  const auto effect = taint_effect_of(value["effect"].as_string());
  if (!effect) {
    return base::error(Code::kInvalid,
                       "spec.tolerations[{}].effect: \"{}\" is not one of NoSchedule, "
                       "PreferNoSchedule, NoExecute",
                       index, value["effect"].as_string());
  }
  out.effect = *effect;
  if (const json::Value* seconds = value.find("tolerationSeconds")) out.seconds = seconds->as_int();
  return out;
}

PodPhase phase_of(std::string_view text) {
  for (const PodPhase phase :
       {PodPhase::kRunning, PodPhase::kSucceeded, PodPhase::kFailed, PodPhase::kUnknown}) {
    if (to_string(phase) == text) return phase;
  }
  return PodPhase::kPending;
}

RestartPolicy restart_policy_of(std::string_view text) {
  if (text == "Never") return RestartPolicy::kNever;
  return text == "OnFailure" ? RestartPolicy::kOnFailure : RestartPolicy::kAlways;
}

ContainerState decode_container_state(const json::Value& value) {
  ContainerState out;
  out.name = value["name"].as_string();
  out.restarts = static_cast<int32_t>(value["restartCount"].as_int());
  out.ready = value["ready"].as_bool();
  const json::Value& state = value["state"];
  const json::Value* at = state.find("waiting");
  if (state.contains("terminated")) {
    out.kind = ContainerState::Kind::kTerminated;
    at = state.find("terminated");
    out.exit_code = static_cast<int32_t>((*at)["exitCode"].as_int());
  } else if (state.contains("running")) {
    out.kind = ContainerState::Kind::kRunning;
  }
  if (at != nullptr) out.reason = (*at)["reason"].as_string();
  return out;
}

void decode_host_ports(const json::Value& containers, std::vector<int32_t>& out) {
  for (const json::Value& container : containers.items()) {
    for (const json::Value& port : container["ports"].items()) {
      const auto number = static_cast<int32_t>(port["hostPort"].as_int());
      if (number > 0) out.push_back(number);
    }
  }
}

base::Status decode_spec(const json::Value& spec, Pod& out) {
  out.node_name = spec["nodeName"].as_string();
  out.scheduler_name = spec["schedulerName"].as_string();
  out.priority = static_cast<int32_t>(spec["priority"].as_int());
  out.priority_class = spec["priorityClassName"].as_string();
  out.preempts = spec["preemptionPolicy"].as_string() != "Never";
  out.restart_policy = restart_policy_of(spec["restartPolicy"].as_string());
  TS_TRY_STATUS(
      decode_containers(spec["initContainers"], "spec.initContainers", out.init_containers));
  TS_TRY_STATUS(decode_containers(spec["containers"], "spec.containers", out.containers));
  for (Container& container : out.containers) container.sidecar = false;
  TS_TRY(out.overhead, decode_resource_list(spec["overhead"], "spec.overhead"));
  TS_TRY(out.pod_requests,
         decode_resource_list(spec.get("resources", "requests"), "spec.resources.requests"));
  TS_TRY(out.pod_limits,
         decode_resource_list(spec.get("resources", "limits"), "spec.resources.limits"));
  out.node_selector = decode_string_map(spec["nodeSelector"]);
  TS_TRY(out.affinity, decode_affinity(spec["affinity"], "spec.affinity"));
  for (const json::Value& item : spec["tolerations"].items()) {
    TS_TRY(auto made, decode_toleration(item, out.tolerations.size()));
    out.tolerations.push_back(std::move(made));
  }
  TS_TRY(out.spread, decode_topology_spread(spec["topologySpreadConstraints"],
                                            "spec.topologySpreadConstraints"));
  for (const json::Value& gate : spec["schedulingGates"].items()) {
    out.scheduling_gates.push_back(gate["name"].str());
  }
  out.termination_grace_seconds = spec["terminationGracePeriodSeconds"].as_int(30);
  if (const json::Value* deadline = spec.find("activeDeadlineSeconds")) {
    out.active_deadline_seconds = deadline->as_int();
  }
  out.runtime_class = spec["runtimeClassName"].as_string();
  out.host_network = spec["hostNetwork"].as_bool();
  decode_host_ports(spec["containers"], out.host_ports);
  return {};
}

base::Status decode_status(const json::Value& status, Pod& out) {
  out.phase = phase_of(status["phase"].as_string());
  out.reason = status["reason"].as_string();
  out.nominated_node = status["nominatedNodeName"].as_string();
  TS_TRY(out.started, decode_time(status["startTime"], "status.startTime"));
  for (const json::Value& item : status["containerStatuses"].items()) {
    out.container_states.push_back(decode_container_state(item));
  }
  for (const json::Value& item : status["initContainerStatuses"].items()) {
    out.init_container_states.push_back(decode_container_state(item));
  }
  return {};
}

}  // namespace

base::Result<Pod> decode_pod(const Object& object) {
  Pod out;
  TS_TRY(out.meta, decode_meta(object));
  TS_TRY_STATUS(decode_spec(object["spec"], out));
  TS_TRY_STATUS(decode_status(object["status"], out));
  return out;
}

std::string_view to_string(PodPhase phase) {
  switch (phase) {
    case PodPhase::kPending:
      return "Pending";
    case PodPhase::kRunning:
      return "Running";
    case PodPhase::kSucceeded:
      return "Succeeded";
    case PodPhase::kFailed:
      return "Failed";
    case PodPhase::kUnknown:
      return "Unknown";
  }
  return "Unknown";
}

std::string_view to_string(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kNever:
      return "Never";
  }
  return "Always";
}

}  // namespace tessera::kube
