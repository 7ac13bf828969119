// Fragmentation of a node: the part of its idle GPU that the typical pods, weighted by how often
// they come, cannot use.
//
// Shape:   F(node) = sum over typical pods m of weight(m) x F(node, m), an exact integer. F(node,
//          m) is all idle milli where no m can run on the node, else only the idle pieces too small
//          for m. Answers are remembered by the state of the GPUs (a multiset), the CPU bracket and
//          the model, so most questions are one look-up.
// Units:   thousandths of a GPU x weight; divide by weight_total() for thousandths of a GPU.
// Threads: the scheduler's strand.
// Source:  Weng et al., USENIX ATC 2023, equations 1 to 4.
#pragma once

#include <span>

#include "scheduler/core/node.h"
#include "scheduler/core/typical.h"

namespace tessera::scheduler::core {

class FragMeter {
 public:
  explicit FragMeter(TypicalMix mix);

  int64_t weight_total() const { return mix_.weight_total; }
  const TypicalMix& typical() const { return mix_; }

  int64_t of(const NodeLoad& node) const;
  // The same for the node in a slot, whose last answer is kept beside its neighbours': for passes over all nodes.
  int64_t of(const NodeLoad& node, NodeId slot) const;
  // The same node with `cpu_milli` less CPU and `milli` less on each device of the mask.
  int64_t after(const NodeLoad& node, int64_t cpu_milli, uint32_t devices, int32_t milli) const;

  // From the definition, without memory: what the tests hold of() against.
  int64_t compute(ModelId model, int64_t cpu_free, std::span<const int16_t> gpu_free) const;

 private:
  struct Row {
    uint32_t cpu_bracket = 0;  // runs where the node's bracket is at least this
    uint32_t threshold = 0;    // index into View::thresholds
    int32_t gpus = 0;
    int64_t weight = 0;
  };
  struct View {                 // the mix as nodes of some models see it
    std::vector<bool> allowed;  // by typical pod
    std::vector<Row> rows;
    std::vector<int64_t> cpu_steps;   // ascending
    std::vector<int16_t> thresholds;  // ascending
    int64_t weight_outside = 0;       // of pods that never run there or need no GPU
  };
  struct Entry {
    uint64_t key = 0;
    int64_t value = 0;
  };

  struct Last {
    uint64_t gpu_state = 0;
    int64_t cpu_free = -1;
    int64_t value = 0;
    ModelId model;
  };

  uint32_t view_index(ModelId model) const;
  View make_view(std::vector<bool> allowed) const;
  static uint32_t bracket(const View& view, int64_t cpu_free);
  int64_t look_up(uint32_t view, uint64_t gpu_state, int64_t cpu_free,
                  std::span<const int16_t> gpu_free) const;
  static int64_t compute(const View& view, uint32_t cpu_bracket, std::span<const int16_t> gpu_free);
  void grow() const;

  TypicalMix mix_;
  mutable std::vector<View> views_;
  mutable std::vector<int32_t> view_of_model_;  // by model id + 1; -1: not yet known
  mutable std::vector<Entry> memory_;           // open addressing, power of two
  mutable size_t remembered_ = 0;
  mutable std::vector<Last> last_;  // by node slot
};

}  // namespace tessera::scheduler::core
