// A pod, decoded: what scheduling, the kubelet and controllers look at.
//
// Errors:  decode_pod answers kInvalid naming the field; unknown fields are skipped.
// Source:  Kubernetes API reference, Pod (v1.36).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/affinity.h"
#include "kube/meta.h"
#include "kube/quantity.h"
#include "kube/taints.h"

namespace tessera::kube {

enum class PodPhase : uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };
enum class RestartPolicy : uint8_t { kAlways, kOnFailure, kNever };

struct Container {
  std::string name;
  std::string image;
  ResourceList requests;  // where only a limit is given, Kubernetes' defaulting has copied it here;
                          // decode does so too
  ResourceList limits;
  bool sidecar = false;  // an init container with restartPolicy: Always
};

struct ContainerState {
  enum class Kind : uint8_t { kWaiting, kRunning, kTerminated };
  std::string name;
  Kind kind = Kind::kWaiting;
  std::string reason;
  int32_t exit_code = 0;
  int32_t restarts = 0;
  bool ready = false;
};

struct Pod {
  Meta meta;

  std::string node_name;
  std::string scheduler_name;
  int32_t priority = 0;
  std::string priority_class;
  bool preempts = true;  // preemptionPolicy is not Never
  RestartPolicy restart_policy = RestartPolicy::kAlways;
  std::vector<Container> init_containers;
  std::vector<Container> containers;
  ResourceList overhead;
  ResourceList pod_requests;  // spec.resources
  ResourceList pod_limits;
  StringMap node_selector;
  Affinity affinity;
  std::vector<Toleration> tolerations;
  std::vector<TopologySpread> spread;
  std::vector<std::string> scheduling_gates;
  int64_t termination_grace_seconds = 30;
  std::optional<int64_t> active_deadline_seconds;
  std::string runtime_class;
  bool host_network = false;
  std::vector<int32_t> host_ports;

  PodPhase phase = PodPhase::kPending;
  std::string reason;
  std::string nominated_node;
  std::optional<base::Time> started;
  std::vector<ContainerState> container_states;
  std::vector<ContainerState> init_container_states;

  bool finished() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  bool deleting() const { return meta.deleted.has_value(); }
};

base::Result<Pod> decode_pod(const Object& object);
std::string_view to_string(PodPhase phase);
std::string_view to_string(RestartPolicy policy);

}  // namespace tessera::kube
