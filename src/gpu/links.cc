#include "gpu/links.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace tessera::gpu {
namespace {

constexpr int kGpusMax = 64;
constexpr int32_t kNodeMbSMax = 24'000;  // what passes between host bridges of one socket

// The rate of a path over PCIe and, for SYS, between sockets.
int32_t host_mb_s(const Server& server, Path path) {
  const int32_t pcie = pcie_mb_s(server.pcie_generation);
  switch (path) {
    case Path::kPix:
      return pcie;
    case Path::kPxb:
      return pcie / 100 * 95;
    case Path::kPhb:
      return pcie / 1000 * server.root_permille;
    case Path::kNode:
      return std::min(pcie, kNodeMbSMax) / 10 * 6;
    case Path::kSys:
      return std::min(pcie, server.cpu_link_mb_s) / 10 * 6;
    case Path::kSelf:
    case Path::kLink:
      break;
  }
  return 0;
}

Path host_path(const Server& server, int numa_a, int switch_a, int numa_b, int switch_b) {
  if (switch_a >= 0 && switch_a == switch_b) return server.switch_link;
  if (numa_a >= 0 && numa_a == numa_b) return server.host_link;
  return Path::kSys;
}

PairLink pair_of(const Model& model, const Server& server, size_t a, size_t b) {
  const auto gpus = static_cast<size_t>(server.gpus);
  const uint8_t links =
      model.link.kind == Interconnect::kNone ? uint8_t{0} : server.links[a * gpus + b];
  if (links > 0) return {Path::kLink, model.link.kind, links, links * model.link.effective_mb_s};
  const Path path = host_path(server, server.gpu_numa[a], server.gpu_switch[a], server.gpu_numa[b],
                              server.gpu_switch[b]);
  return {path, Interconnect::kNone, 0, host_mb_s(server, path)};
}

// A NIC behind other host bridges loses half, behind another socket more.
int32_t nic_rate(const Server& server, int gpu, const Nic& nic) {
  const int32_t rate = std::min(nic_rate_mb_s(nic.gbit_s), pcie_mb_s(server.pcie_generation));
  switch (nic_path(server, gpu, nic)) {
    case Path::kSys:
      return static_cast<int32_t>(int64_t{rate} * 35 / 100);
    case Path::kNode:
      return rate / 2;
    default:
      return rate;
  }
}

}  // namespace

LinkMatrix::LinkMatrix(int gpus) : gpus_(gpus) {
  TS_CHECK(gpus >= 0 && gpus <= kGpusMax, "{} GPUs", gpus);
  const auto count = static_cast<size_t>(gpus);
  pairs_.assign(count * count, PairLink{Path::kSys, Interconnect::kNone, 0, 0});
  for (size_t g = 0; g < count; ++g) pairs_[g * count + g] = {};
  nic_mb_s_.assign(count, 0);
}

LinkMatrix::LinkMatrix(const Model& model, const Server& server) : LinkMatrix(server.gpus) {
  for (int a = 0; a < gpus_; ++a) {
    for (int b = a + 1; b < gpus_; ++b) {
      set(a, b, pair_of(model, server, static_cast<size_t>(a), static_cast<size_t>(b)));
    }
    for (const Nic& nic : server.nics) {
      int32_t& best = nic_mb_s_[static_cast<size_t>(a)];
      best = std::max(best, nic_rate(server, a, nic));
    }
  }
}

size_t LinkMatrix::index(int a, int b) const {
  TS_CHECK(a >= 0 && a < gpus_ && b >= 0 && b < gpus_, "GPUs {} and {} of {}", a, b, gpus_);
  return static_cast<size_t>(a) * static_cast<size_t>(gpus_) + static_cast<size_t>(b);
}

void LinkMatrix::set(int a, int b, PairLink link) {
  TS_CHECK(a != b, "a link from GPU {} to itself", a);
  pairs_[index(a, b)] = pairs_[index(b, a)] = link;
}

SetScore LinkMatrix::score(uint64_t set) const {
  TS_CHECK(gpus_ == kGpusMax || set >> gpus_ == 0, "set {:#x} of {} GPUs", set, gpus_);
  SetScore result;
  for (uint64_t rest = set; rest != 0; rest &= rest - 1) {
    const int a = std::countr_zero(rest);
    for (uint64_t others = rest & (rest - 1); others != 0; others &= others - 1) {
      const int32_t rate = at(a, std::countr_zero(others)).mb_s;
      result.bottleneck_mb_s = std::min(result.bottleneck_mb_s, rate);
      result.sum_mb_s += rate;
    }
  }
  return result;
}

std::string LinkMatrix::cell(int a, int b) const {
  const PairLink& link = at(a, b);
  if (link.path != Path::kLink) return std::string(to_text(link.path));
  return link.interconnect == Interconnect::kXgmi ? "XGMI" : fmt::format("NV{}", link.links);
}

int32_t pcie_mb_s(int generation) {
  TS_CHECK(generation >= 1 && generation <= 7, "PCIe generation {}", generation);
  return generation >= 3 ? 12'000 << (generation - 3) : 12'000 >> (3 - generation);
}

int32_t nic_rate_mb_s(int gbit_s) {
  return static_cast<int32_t>(int64_t{gbit_s} * 1000 * 97 / 800);
}

Path nic_path(const Server& server, int gpu, const Nic& nic) {
  TS_CHECK(gpu >= 0 && gpu < server.gpus, "GPU {} of {}", gpu, server.gpus);
  const auto g = static_cast<size_t>(gpu);
  return host_path(server, server.gpu_numa[g], server.gpu_switch[g], nic.numa, nic.pcie_switch);
}

}  // namespace tessera::gpu
