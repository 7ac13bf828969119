// One simulated node as its kubelet keeps it: what is admitted, the devices, the addresses.
//
// Errors:  admit() answers the reason and message that the kubelet puts into a refused pod's status.
// Threads: one owner.
// Source:  pkg/kubelet/lifecycle/predicate.go of Kubernetes 1.36 (order and reasons).
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/time.h"
#include "json/value.h"
#include "kube/quantity.h"
#include "sim/fleet.h"

namespace tessera::sim {

struct KubeletNode {
  KubeletNode(FleetNode node, size_t index);

  using Refusal = std::pair<std::string, std::string>;  // reason, message
  tl::expected<PodDevices, Refusal> admit(const std::string& uid,
                                          const kube::ResourceList& requests, const PodAsk& ask);
  void release(const std::string& uid);

  json::Value lease(base::Duration duration, base::Time now) const;
  json::Value status_patch(base::Time now) const;
  // metadata.annotations that name the sick GPUs (tessera.dev/unhealthy-gpus: "0,3"); null where there are none.
  json::Value health_patch() const;
  std::string ip() const;
  std::string next_pod_ip();

  FleetNode spec;
  DevicePool pool;
  bool failed = false;
  base::Time ready_since;

 private:
  struct Used {
    int64_t cpu_milli = 0;
    int64_t memory_bytes = 0;
  };
  size_t index_;
  uint32_t next_ip_ = 2;
  Used used_;
  std::map<std::string, Used> admitted_;
};

}  // namespace tessera::sim
