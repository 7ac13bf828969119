// AMD partition modes: one GPU divided into equal devices (compute mode) over one or several memory
// domains (NPS).
//
// Shape:   all partitions of a GPU share its mode; with fewer memory domains than partitions the
//          memory of a domain is a pool that its partitions share without isolation.
// Errors:  kInvalid for what is no resource of this form; kNever for a mode that the model does not
//          have.
// Source:  Linux amdgpu kernel driver (gfx9.4.3 family); ROCm/k8s-device-plugin (names of the mixed
//          strategy).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu/catalog.h"

namespace tessera::gpu {

struct PartitionMode {
  const ComputePartition* compute = nullptr;
  int memory_domains = 1;  // n of NPSn

  base::Mib memory_share(const Model& model) const;  // an equal share for one partition
  // True where a partition has a memory domain of its own, so that its memory is its own in
  // hardware.
  bool isolates_memory() const { return compute->partitions == memory_domains; }
};

// "SPX" and "NPS1", in any case.
base::Result<PartitionMode> partition_mode(const Model& model, std::string_view compute,
                                           std::string_view memory);
// "amd.com/cpx_nps4" and back.
std::string partition_resource(const PartitionMode& mode);
base::Result<PartitionMode> mode_of_resource(const Model& model, std::string_view resource);

}  // namespace tessera::gpu
