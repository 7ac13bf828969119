#include "sim/kubelet_node.h"

namespace tessera::sim {

using json::Value;

KubeletNode::KubeletNode(FleetNode node, size_t index)
    : spec(std::move(node)), pool(spec.devices, spec.gpus), index_(index) {}

tl::expected<PodDevices, KubeletNode::Refusal> KubeletNode::admit(
    const std::string& uid, const kube::ResourceList& requests, const PodAsk& ask) {
  const Used want{kube::amount_of(requests, "cpu").milli_value(),
                  kube::amount_of(requests, "memory").value()};
  auto refuse = [](std::string_view resource, int64_t requested, int64_t used, int64_t capacity) {
    return tl::unexpected(Refusal(
        fmt::format("OutOf{}", resource),
        fmt::format("Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}",
                    resource, requested, used, capacity)));
  };
  const auto pods = static_cast<int64_t>(admitted_.size());
  if (pods >= spec.pods_max) return refuse("pods", 1, pods, spec.pods_max);
  if (want.cpu_milli > spec.cpu_milli - used_.cpu_milli) {
    return refuse("cpu", want.cpu_milli, used_.cpu_milli, spec.cpu_milli);
  }
  if (want.memory_bytes > spec.memory_bytes - used_.memory_bytes) {
    return refuse("memory", want.memory_bytes, used_.memory_bytes, spec.memory_bytes);
  }
  auto devices = pool.reserve(uid, ask);
  if (!devices) return tl::unexpected(Refusal("UnexpectedAdmissionError", devices.error().message));
  used_.cpu_milli += want.cpu_milli;
  used_.memory_bytes += want.memory_bytes;
  admitted_.emplace(uid, want);
  return std::move(*devices);
}

void KubeletNode::release(const std::string& uid) {
  const auto it = admitted_.find(uid);
  if (it == admitted_.end()) return;
  used_.cpu_milli -= it->second.cpu_milli;
  used_.memory_bytes -= it->second.memory_bytes;
  admitted_.erase(it);
  pool.release(uid);
}

Value KubeletNode::lease(base::Duration duration, base::Time now) const {
  return Value::object(
      {{"apiVersion", "coordination.k8s.io/v1"},
       {"kind", "Lease"},
       {"metadata", Value::object({{"name", spec.name}, {"namespace", "kube-node-lease"}})},
       {"spec", Value::object({{"holderIdentity", spec.name},
                               {"leaseDurationSeconds", duration.ns / 1'000'000'000},
                               {"renewTime", base::to_rfc3339_micro(now)}})}});
}

Value KubeletNode::status_patch(base::Time now) const {
  Value conditions = node_object(spec, now)["status"]["conditions"];
  for (size_t i = 0; i < conditions.size(); ++i) {
    conditions.ref_at(i).set("lastTransitionTime", base::to_rfc3339(ready_since));
  }
  return Value::object(
      {{"status", Value::object({{"capacity", node_resources(spec, pool.capacity())},
                                 {"allocatable", node_resources(spec, pool.allocatable())},
                                 {"conditions", std::move(conditions)}})}});
}

Value KubeletNode::health_patch() const {
  std::string sick;
  for (int gpu = 0; gpu < pool.gpus(); ++gpu) {
    if (!pool.healthy(gpu)) sick += fmt::format("{}{}", sick.empty() ? "" : ",", gpu);
  }
  return Value::object(
      {{"metadata", Value::object({{"annotations",
                                    Value::object({{"tessera.dev/unhealthy-gpus",
                                                    sick.empty() ? Value() : Value(sick)}})}})}});
}

std::string KubeletNode::ip() const {
  return fmt::format("10.{}.{}.{}", 128 + ((index_ >> 16) & 63), (index_ >> 8) & 255, index_ & 255);
}

std::string KubeletNode::next_pod_ip() {
  const uint32_t n = next_ip_++;
  return fmt::format("10.{}.{}.{}", index_ % 64 + 1, (index_ / 64 * 4 + n / 250) & 255,
                     n % 250 + 2);
}

}  // namespace tessera::sim
