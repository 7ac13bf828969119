// The devices of one simulated node, handed out as kubelet's device manager does it, with shares of whole GPUs on top.
//
// Shape:   each Device is one schedulable unit of an extended resource: a whole GPU, a MIG instance, or one replica of a
//          time-sliced GPU; all name the physical GPU beneath them. A pod reserves once, for its life, as many devices as
//          its containers need at the same time; init containers use devices of that reservation, which the containers
//          after them use again.
// Units:   devices; thousandths of one GPU for shares.
// Errors:  kBusy names the resource, what was asked and what is free; nothing is taken then.
// Threads: one owner.
// Source:  pkg/kubelet/cm/devicemanager of Kubernetes 1.36 (behaviour); KEP-753 (sidecars).
// Does not model: NUMA hints, device plugin restarts, container runtime.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tessera::sim {

struct Device {
  std::string id;        // "GPU-...", "MIG-...", "GPU-...::3"
  std::string resource;  // "nvidia.com/gpu"
  int gpu = 0;           // index of the physical GPU on its node
};

struct ContainerAsk {
  enum class Role { kInit, kSidecar, kApp };
  std::string name;
  Role role = Role::kApp;
  std::map<std::string, int64_t, std::less<>> devices;  // extended resource -> count
};

struct PodAsk {
  std::vector<ContainerAsk> containers;  // init containers first, in order
  int64_t share_gpus = 0;                // GPUs shared by thousandths
  int64_t share_milli = 0;               // of each
  std::vector<int> gpus;                 // the scheduler's choice, which is kept; empty: any
};

struct PodDevices {
  std::map<std::string, std::vector<Device>, std::less<>> by_container;
  std::vector<int> gpus;  // physical GPUs held, sorted, each once
};

// Devices of `resource` that the pod needs at the same time (cases C13: init containers, sidecars).
int64_t devices_needed(const PodAsk& ask, std::string_view resource);

class DevicePool {
 public:
  DevicePool() = default;
  DevicePool(std::vector<Device> devices, int gpus);

  base::Result<PodDevices> reserve(const std::string& pod, const PodAsk& ask);
  void release(const std::string& pod);
  void set_healthy(int gpu, bool healthy);
  bool healthy(int gpu) const { return gpu_healthy_[static_cast<size_t>(gpu)]; }
  int gpus() const { return static_cast<int>(gpu_healthy_.size()); }

  // Devices of a resource: all of them, and the healthy ones (capacity and allocatable).
  std::map<std::string, int64_t, std::less<>> capacity() const;
  std::map<std::string, int64_t, std::less<>> allocatable() const;

 private:
  struct Held {
    std::vector<size_t> devices;
    std::vector<int> share_gpus;
    int64_t share_milli = 0;
  };
  bool usable(size_t device) const;
  std::vector<size_t> pick(std::string_view resource, int64_t count,
                           const std::vector<int>& gpus) const;
  std::vector<int> pick_shares(const PodAsk& ask) const;

  std::vector<Device> devices_;
  std::vector<bool> taken_;
  std::vector<bool> gpu_healthy_;
  std::vector<int64_t> share_used_;   // thousandths of each GPU given out as shares
  std::vector<int64_t> whole_users_;  // devices taken on each GPU
  std::map<std::string, Held> held_;
};

}  // namespace tessera::sim
