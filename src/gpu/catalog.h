// The catalogue of GPU products: what a model is, how it can be cut, how its usual server is wired.
//
// Shape:   Model (a product with its memory, architecture and MIG profiles) has Boards (form
//          factors: labels, PCI ids, power, usual server). All of it is constant data, compiled in
//          from data/*.yaml; pointers and spans into it live for ever, and Model::index is dense,
//          so arrays per model may be used.
// Units:   memory in MiB; one link in MB/s (10^6), one direction; power in watts. 0 means "not
//          known" where a field says so.
// Errors:  find_* answer nothing where there is no such thing; model_named explains.
// Threads: constant data; any thread.
// Source:  each row of data/*.yaml names its own; `unconfirmed` lists the fields not seen in a
//          program's output.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace tessera::gpu {

enum class Vendor : uint8_t { kNvidia, kAmd };
enum class Interconnect : uint8_t { kNone, kNvlink, kXgmi };
// How the GPUs of one server are joined: not at all, bridges over some of them, point to point,
// through switches inside the server, or through switches of the whole rack.
enum class Fabric : uint8_t { kNone, kBridge, kMesh, kSwitch, kRack };
// What a MIG profile takes of the media engines: nothing ("-me"), its share, the one set with the
// extensions ("+me"), or every engine of the board ("+me.all" and the whole board).
enum class Media : uint8_t { kNone, kPart, kExtended, kAll };
// The path between two devices, as nvidia-smi topo -m names it, best first. kLink stands for NV#
// and XGMI.
enum class Path : uint8_t { kSelf, kLink, kPix, kPxb, kPhb, kNode, kSys };

struct LinkSpec {
  Interconnect kind = Interconnect::kNone;
  int generation = 0;
  int links_max = 0;           // links of one GPU
  int32_t raw_mb_s = 0;        // one link, one direction, as the vendor counts
  int32_t effective_mb_s = 0;  // one link, one direction, as a collective gets it
};

struct Engines {
  bool known = false;
  uint8_t copy = 0, decoder = 0, encoder = 0, jpeg = 0, ofa = 0;
};

struct MigProfile {
  std::string_view name;  // "1g.10gb+me"
  uint8_t compute_slices = 0;
  uint8_t memory_slices = 0;
  uint16_t starts = 0;  // bit s: an instance may start at memory slice s
  uint8_t instances_max = 0;
  Media media = Media::kPart;
  bool graphics = false;
  base::Mib memory;       // 0: not known
  int compute_units = 0;  // SMs; 0: not known
  int smi_id = -1;        // as nvidia-smi mig -lgip prints it
  Engines engines;
  bool confirmed = true;
};

// One place where an instance of a profile may stand.
struct MigSlot {
  uint8_t profile = 0;  // index in MigTable::profiles
  uint8_t start = 0;
  uint8_t size = 0;
  uint32_t memory_mask = 0;  // bits [start, start + size)
};

struct MigTable {
  uint8_t compute_slices = 0;
  uint8_t memory_slices = 0;
  std::span<const MigProfile> profiles;
  std::span<const MigSlot> slots;  // at most 64, by profile, then by start
  std::string_view unconfirmed;    // "smi_id, memory_mib"
  std::string_view source;
};

struct Nic {
  int numa = -1;
  int pcie_switch = -1;
  int gbit_s = 0;
};

struct Server {
  std::string_view name;  // "hgx-h100-8"
  Fabric fabric = Fabric::kNone;
  int gpus = 0;
  int domain_gpus = 0;  // GPUs that reach each other over links; more than `gpus` for a rack fabric
  int numa_nodes = 0;
  int pcie_generation = 0;
  Path switch_link = Path::kPix;  // two devices on one PCIe switch
  Path host_link = Path::kNode;   // two devices on one NUMA node, no common switch
  std::string_view cpu;
  int32_t cpu_link_mb_s = 0;  // between sockets
  int root_permille = 0;      // of PCIe, through one root complex
  std::span<const int8_t> gpu_numa;
  std::span<const int8_t> gpu_switch;  // -1: none
  std::span<const uint8_t> links;      // gpus x gpus, row by row: links' bandwidth between two GPUs
  std::span<const Nic> nics;
  std::string_view unconfirmed;
  std::string_view source;
};

struct Power {
  int default_w = 0;
  int min_w = 0;  // 0: not known
  int max_w = 0;
};

struct Board {
  std::string_view name;                     // "SXM5", "PCIe"
  std::span<const std::string_view> labels;  // values of nvidia.com/gpu.product
  std::span<const uint16_t> pci_devices;
  int compute_units = 0;
  Power power;
  const Server* server = nullptr;
  std::string_view unconfirmed;
  std::string_view source;
};

// One way to divide an AMD GPU. NPS memory modes are bits: bit n is NPSn (kNps1, ...).
struct ComputePartition {
  std::string_view name;  // "CPX"
  int partitions = 1;
  int compute_units = 0;  // of one partition
  uint8_t memory_modes = 0;
  uint8_t memory_modes_qualified = 0;  // those that AMD documents for the product
  std::string_view source;
};

struct Model {
  int index = 0;
  std::string_view name;  // "H100-80"
  Vendor vendor = Vendor::kNvidia;
  std::span<const std::string_view> aliases;
  std::string_view architecture;  // "hopper"
  std::string_view family;        // value of nvidia.com/gpu.family
  int capability_major = 0;
  int capability_minor = 0;
  base::Mib memory;       // as the driver and nvidia.com/gpu.memory say
  base::Mib reserved;     // kept by the driver; 0: not known
  int compute_units = 0;  // SMs or CUs, of the first board
  LinkSpec link;
  std::span<const Board> boards;  // the usual one first
  const MigTable* mig = nullptr;  // nullptr: cannot be cut
  std::span<const ComputePartition> partitions;
  std::string_view unconfirmed;
  std::string_view source;

  base::Mib usable_memory() const { return memory - reserved; }
  const Server& server() const { return *boards.front().server; }
  const Power& power() const { return boards.front().power; }
};

struct Match {
  const Model* model = nullptr;
  const Board* board = nullptr;
  explicit operator bool() const { return model != nullptr; }
};

std::span<const Model> models();
std::span<const Server> servers();

// Finds by canonical name, alias, product label ("NVIDIA-H100-80GB-HBM3", also with "-SHARED" or
// "-MIG-1g.10gb" behind) or PCI id ("10de:2330"). Case, blanks, '_' and the words NVIDIA, Tesla,
// AMD in front do not matter.
Match find(std::string_view text);
Match find_pci(uint16_t vendor, uint16_t device);
const Model* find_model(std::string_view text);
const Server* find_server(std::string_view name);
// find_model, or kNotFound with the names that come near.
base::Result<const Model*> model_named(std::string_view text);

std::string_view to_text(Vendor vendor);
std::string_view to_text(Path path);

}  // namespace tessera::gpu
