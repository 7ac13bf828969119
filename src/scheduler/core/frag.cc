#include "scheduler/core/frag.h"

#include <algorithm>
#include <array>

#include "scheduler/core/search.h"

namespace tessera::scheduler::core {
namespace {

constexpr size_t kMemorySizeMin = size_t{1} << 12;
constexpr size_t kMemorySizeMax = size_t{1} << 20;  // 16 MiB; started afresh when full

}  // namespace

FragMeter::FragMeter(TypicalMix mix) : mix_(std::move(mix)), memory_(kMemorySizeMin) {}

uint32_t FragMeter::view_index(ModelId model) const {
  size_t at = static_cast<size_t>(model.value + 1);
  if (at >= view_of_model_.size()) view_of_model_.resize(at + 1, -1);
  if (view_of_model_[at] >= 0) return static_cast<uint32_t>(view_of_model_[at]);
  std::vector<bool> allowed;
  for (const TypicalPod& pod : mix_.pods) {
    allowed.push_back(pod.models.empty() ||
                      std::binary_search(pod.models.begin(), pod.models.end(), model));
  }
  auto same = std::find_if(views_.begin(), views_.end(),
                           [&](const View& view) { return view.allowed == allowed; });
  view_of_model_[at] = static_cast<int32_t>(same - views_.begin());
  if (same == views_.end()) views_.push_back(make_view(std::move(allowed)));
  return static_cast<uint32_t>(view_of_model_[at]);
}

FragMeter::View FragMeter::make_view(std::vector<bool> allowed) const {
  View view;
  view.allowed = std::move(allowed);
  auto runs = [&](size_t i) { return view.allowed[i] && mix_.pods[i].gpus > 0; };
  for (size_t i = 0; i < mix_.pods.size(); ++i) {
    if (!runs(i)) {
      view.weight_outside += mix_.pods[i].weight;
      continue;
    }
    view.cpu_steps.push_back(mix_.pods[i].cpu_milli);
    view.thresholds.push_back(static_cast<int16_t>(mix_.pods[i].gpu_milli));
  }
  auto sort_unique = [](auto& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  };
  sort_unique(view.cpu_steps);
  sort_unique(view.thresholds);
  for (size_t i = 0; i < mix_.pods.size(); ++i) {
    if (!runs(i)) continue;
    const TypicalPod& pod = mix_.pods[i];
    auto step = std::lower_bound(view.cpu_steps.begin(), view.cpu_steps.end(), pod.cpu_milli);
    auto threshold =
        std::lower_bound(view.thresholds.begin(), view.thresholds.end(), pod.gpu_milli);
    view.rows.push_back({static_cast<uint32_t>(step - view.cpu_steps.begin()) + 1,
                         static_cast<uint32_t>(threshold - view.thresholds.begin()), pod.gpus,
                         pod.weight});
  }
  return view;
}

uint32_t FragMeter::bracket(const View& view, int64_t cpu_free) {
  return static_cast<uint32_t>(count_not_above(view.cpu_steps, cpu_free));
}

int64_t FragMeter::compute(const View& view, uint32_t cpu_bracket,
                           std::span<const int16_t> gpu_free) {
  // Devices by rising idle share: pieces below a threshold are a prefix.
  std::array<int16_t, kGpusPerNodeMax> sorted{};
  std::copy(gpu_free.begin(), gpu_free.end(), sorted.begin());
  auto last = sorted.begin() + static_cast<std::ptrdiff_t>(gpu_free.size());
  std::sort(sorted.begin(), last);
  int64_t total = 0;
  for (int16_t free : gpu_free) total += free;
  std::array<int32_t, kMilliPerGpu> fitting;  // by threshold; at most 1000 distinct
  std::array<int32_t, kMilliPerGpu> too_small;
  size_t device = 0;
  int32_t small = 0;
  for (size_t t = 0; t < view.thresholds.size(); ++t) {
    while (device < gpu_free.size() && sorted[device] < view.thresholds[t])
      small += sorted[device++];
    too_small[t] = small;
    fitting[t] = static_cast<int32_t>(gpu_free.size() - device);
  }
  int64_t sum = view.weight_outside * total;
  for (const Row& row : view.rows) {
    bool runs = row.cpu_bracket <= cpu_bracket && fitting[row.threshold] >= row.gpus;
    sum += row.weight * (runs ? too_small[row.threshold] : total);
  }
  return sum;
}

int64_t FragMeter::look_up(uint32_t view_at, uint64_t gpu_state, int64_t cpu_free,
                           std::span<const int16_t> gpu_free) const {
  if (gpu_state == 0) return 0;
  const View& view = views_[view_at];
  uint32_t cpu_bracket = bracket(view, cpu_free);
  uint64_t key = core::mix(gpu_state, uint64_t{view_at} << 32 | cpu_bracket) | 1;
  size_t mask = memory_.size() - 1;
  size_t at = static_cast<size_t>(key >> 20) & mask;
  while (memory_[at].key != 0) {
    if (memory_[at].key == key) return memory_[at].value;
    at = (at + 1) & mask;
  }
  int64_t value = compute(view, cpu_bracket, gpu_free);
  memory_[at] = {key, value};
  if (++remembered_ * 2 > memory_.size()) grow();
  return value;
}

void FragMeter::grow() const {
  std::vector<Entry> old(std::min(memory_.size() * 2, kMemorySizeMax));
  bool full = memory_.size() == kMemorySizeMax;
  old.swap(memory_);
  remembered_ = 0;
  if (full) return;
  size_t mask = memory_.size() - 1;
  for (const Entry& entry : old) {
    if (entry.key == 0) continue;
    size_t at = static_cast<size_t>(entry.key >> 20) & mask;
    while (memory_[at].key != 0) at = (at + 1) & mask;
    memory_[at] = entry;
    ++remembered_;
  }
}

int64_t FragMeter::of(const NodeLoad& node) const {
  return look_up(view_index(node.model), node.gpu_state, node.cpu_free,
                 std::span(node.gpu_free.data(), node.gpus));
}

int64_t FragMeter::of(const NodeLoad& node, NodeId slot) const {
  size_t at = static_cast<size_t>(slot.value);
  if (at >= last_.size()) last_.resize(at + at / 2 + 64);
  Last& last = last_[at];
  if (last.gpu_state != node.gpu_state || last.cpu_free != node.cpu_free ||
      last.model != node.model) {
    last = {node.gpu_state, node.cpu_free, of(node), node.model};
  }
  return last.value;
}

int64_t FragMeter::after(const NodeLoad& node, int64_t cpu_milli, uint32_t devices,
                         int32_t milli) const {
  std::array<int16_t, kGpusPerNodeMax> left = node.gpu_free;
  uint64_t gpu_state = node.gpu_state;
  for (uint32_t rest = devices; rest != 0; rest &= rest - 1) {
    int16_t& free = left[static_cast<size_t>(__builtin_ctz(rest))];
    gpu_state -= gpu_state_of(free);
    free = static_cast<int16_t>(free - milli);
    gpu_state += gpu_state_of(free);
  }
  return look_up(view_index(node.model), gpu_state, node.cpu_free - cpu_milli,
                 std::span(left.data(), node.gpus));
}

int64_t FragMeter::compute(ModelId model, int64_t cpu_free,
                           std::span<const int16_t> gpu_free) const {
  int64_t sum = 0;
  int64_t idle = 0;
  for (int16_t free : gpu_free) idle += free;
  for (const TypicalPod& pod : mix_.pods) {
    int32_t fitting = 0;
    int64_t too_small = 0;
    for (int16_t free : gpu_free) {
      fitting += free >= pod.gpu_milli;
      if (free < pod.gpu_milli) too_small += free;
    }
    bool allowed =
        pod.models.empty() || std::binary_search(pod.models.begin(), pod.models.end(), model);
    bool runs = pod.gpus > 0 && allowed && cpu_free >= pod.cpu_milli && fitting >= pod.gpus;
    sum += pod.weight * (runs ? too_small : idle);
  }
  return sum;
}

}  // namespace tessera::scheduler::core
