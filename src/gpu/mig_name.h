// Names of MIG profiles: "1g.10gb+me" in NVIDIA's tools, "nvidia.com/mig-1g.10gb.me" as a
// Kubernetes resource.
//
// Shape:   [<C>c.]<G>g.<GB>gb, then nothing, "-me", or "+" and attributes among me, me.all, gfx
//          joined by commas. C is printed only where it is not G.
// Errors:  kInvalid for what is no such name.
// Threads: plain functions.
// Source:  NVIDIA go-nvlib (naming rule), NVIDIA/k8s-device-plugin (resource names).
#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace tessera::gpu {

struct ProfileName {
  int compute = 0;  // compute slices of the compute instance; G where the name does not say
  int slices = 0;   // G: compute slices of the GPU instance
  int memory_gb = 0;
  bool media = false;      // +me
  bool media_all = false;  // +me.all
  bool graphics = false;   // +gfx
  bool no_media = false;   // -me

  bool operator==(const ProfileName&) const = default;
};

base::Result<ProfileName> parse_profile_name(std::string_view text);
std::string to_text(const ProfileName& name);

// "1g.10gb+me" -> "nvidia.com/mig-1g.10gb.me" and back.
std::string resource_name(const ProfileName& name);
base::Result<ProfileName> profile_of_resource(std::string_view resource);

// The GB figure in a profile's name: eighths of the board's GiB (rounded up), rounded half up.
// `total` must be positive.
int profile_memory_gb(base::Mib profile, base::Mib total);

}  // namespace tessera::gpu
