// Builders for the tests of the scheduler core.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "scheduler/core/cluster.h"

namespace tessera::scheduler::core::testing {

inline constexpr int64_t kGi = int64_t{1} << 30;

inline NodeSpec node_spec(Cluster& cluster, std::string_view name, int gpus = 8) {
  NodeSpec spec;
  spec.name = cluster.names().string(name);
  spec.cpu_milli = 96'000;
  spec.memory_bytes = 512 * kGi;
  spec.storage_bytes = 1000 * kGi;
  spec.gpus = gpus;
  spec.gpu_memory_mib = 81'920;
  spec.model = cluster.names().model("H100");
  spec.gpu_resource = cluster.names().resource("nvidia.com/gpu");
  return spec;
}

inline Label label(Cluster& cluster, std::string_view key, std::string_view value) {
  return {cluster.names().string(key), cluster.names().string(value)};
}

inline PodRequest pod(int64_t cpu_milli, int64_t gpus = 0, int32_t milli = kMilliPerGpu) {
  PodRequest request;
  request.shape.cpu_milli = cpu_milli;
  request.shape.memory_bytes = kGi;
  request.shape.gpu.count = gpus;
  request.shape.gpu.milli = milli;
  return request;
}

inline std::shared_ptr<const PodRequest> shared(PodRequest request) {
  return std::make_shared<const PodRequest>(std::move(request));
}

}  // namespace tessera::scheduler::core::testing
