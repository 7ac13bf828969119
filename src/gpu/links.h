// The links between the GPUs of one server: what joins each pair, how fast it is for a collective,
// how good a set is.
//
// Shape:   LinkMatrix is symmetric; GPUs are numbered as the driver does (0 .. gpus-1), sets are
//          64-bit masks of them.
// Units:   MB/s (10^6), one direction, as a collective gets it; so NV18 of H100 is 370 800.
// Errors:  kInvalid for more than 64 GPUs; indices out of range are bugs.
// Threads: a value; reads may be concurrent.
// Source:  nvidia-smi topo -m (names of paths); NCCL src/graph/topo.h@069a3d4 (constants of links,
//          PCIe, CPUs and NICs). The factors for PXB (0.95), PHB (0.8, Intel 1/1.2), NODE and SYS
//          (0.6) are estimates: their order is certain.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/catalog.h"

namespace tessera::gpu {

struct PairLink {
  Path path = Path::kSelf;
  Interconnect interconnect = Interconnect::kNone;  // of Path::kLink
  uint8_t links = 0;                                // of Path::kLink
  int32_t mb_s = 0;
};

// A set is better with a faster slowest pair, then with a larger sum over pairs. A set of one has
// no pair: its bottleneck is kNoPair, above any link.
struct SetScore {
  static constexpr int32_t kNoPair = INT32_MAX;
  int32_t bottleneck_mb_s = kNoPair;
  int64_t sum_mb_s = 0;
  auto operator<=>(const SetScore&) const = default;
};

class LinkMatrix {
 public:
  // GPUs without any path between them known yet: every pair is SYS at 0 MB/s.
  explicit LinkMatrix(int gpus);
  // The matrix of a server full of one board's GPUs.
  LinkMatrix(const Model& model, const Server& server);

  int gpus() const { return gpus_; }
  const PairLink& at(int a, int b) const { return pairs_[index(a, b)]; }
  void set(int a, int b, PairLink link);  // both directions

  // Mask of GPUs; bits at or above gpus() are bugs.
  SetScore score(uint64_t set) const;
  // Between one GPU and its best NIC; 0 where the server has none.
  int32_t nic_mb_s(int gpu) const { return nic_mb_s_[static_cast<size_t>(gpu)]; }

  // "NV18", "XGMI", "PIX" ... as in the table of nvidia-smi topo -m.
  std::string cell(int a, int b) const;

 private:
  size_t index(int a, int b) const;

  int gpus_;
  std::vector<PairLink> pairs_;
  std::vector<int32_t> nic_mb_s_;
};

// Effective rates of a x16 slot and of a NIC.
int32_t pcie_mb_s(int generation);
int32_t nic_rate_mb_s(int gbit_s);
// The path of a GPU to a NIC of its server.
Path nic_path(const Server& server, int gpu, const Nic& nic);

}  // namespace tessera::gpu
