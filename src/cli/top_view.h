// The picture that `tessera top` draws of a cluster, as text.
//
// Shape:   summarize() adds up objects; render() draws: one bar for all GPUs, one line a node with one cell a GPU, one line
//          a namespace, and why pods wait.
// Units:   thousandths of a GPU; percent of allocatable.
// Threads: pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kube/object.h"

namespace tessera::cli {

struct NodeLine {
  std::string name;
  std::string model;
  bool ready = false;
  bool cordoned = false;
  std::vector<int64_t> gpu_milli;  // given out of each whole GPU; -1: sick
  // "mig-1g.10gb" -> {used, of}: MIG slices and time-slice replicas.
  std::map<std::string, std::pair<int64_t, int64_t>> slices;
  int64_t cpu_used = 0, cpu = 0;  // thousandths
  int64_t memory_used = 0, memory = 0;
  int pods = 0;
};

struct NamespaceLine {
  int running = 0;
  int pending = 0;
  int done = 0;
  int failed = 0;
  int64_t gpu_milli = 0;
};

struct Picture {
  std::vector<NodeLine> nodes;
  std::map<std::string, NamespaceLine> namespaces;
  std::map<std::string, int> reasons;  // why pods wait -> how many
  int64_t gpus = 0;                    // whole ones
  int64_t gpu_milli_used = 0;
};

Picture summarize(const std::vector<kube::Object>& nodes, const std::vector<kube::Object>& pods);
// At most `rows` lines; colour uses ANSI sequences.
std::string render(const Picture& picture, int columns, int rows, bool colour);

}  // namespace tessera::cli
