#include "scheduler/core/request.h"

#include <algorithm>

namespace tessera::scheduler::core {
namespace {

uint64_t hash_of(const NodeTerm& term, uint64_t seed) {
  return core::hash_of(term.fields, core::hash_of(term.expressions, seed));
}

}  // namespace

uint64_t hash_of(const Shape& shape) {
  uint64_t h =
      mix(static_cast<uint64_t>(shape.cpu_milli), static_cast<uint64_t>(shape.memory_bytes));
  h = mix(h, static_cast<uint64_t>(shape.storage_bytes));
  h = mix(h, static_cast<uint64_t>(shape.gpu.count));
  h = mix(h, static_cast<uint64_t>(shape.gpu.milli) ^
                 (static_cast<uint64_t>(shape.gpu.memory_mib) << 12));
  h = mix(h, static_cast<uint64_t>(shape.gpu.resource.value));
  for (const ResourceAmount& r : shape.extended) {
    h = mix(h, static_cast<uint64_t>(r.id.value) ^ static_cast<uint64_t>(r.amount) << 8);
  }
  for (ModelId model : shape.models) h = mix(h, static_cast<uint64_t>(model.value));
  for (const Label& label : shape.node_selector) {
    h = mix(
        h, static_cast<uint64_t>(label.key.value) << 32 | static_cast<uint32_t>(label.value.value));
  }
  for (const NodeTerm& term : shape.required) h = hash_of(term, h);
  for (const VolumeRule& rule : shape.volumes) {
    h = mix(h, static_cast<uint64_t>(rule.why));
    for (const NodeTerm& term : rule.terms) h = hash_of(term, h);
  }
  for (const PreferredTerm& p : shape.preferred) {
    h = hash_of(p.term, mix(h, static_cast<uint64_t>(p.weight)));
  }
  for (const Toleration& t : shape.tolerations) {
    h = mix(h, static_cast<uint64_t>(t.key.value) * 16 + static_cast<uint64_t>(t.effect) * 2 +
                   t.exists);
    h = mix(h, static_cast<uint64_t>(t.value.value));
  }
  return h;
}

base::Status check(const PodRequest& request) {
  const Shape& shape = request.shape;
  using base::Code;
  if (shape.cpu_milli < 0 || shape.memory_bytes < 0 || shape.storage_bytes < 0) {
    return base::error(Code::kInvalid, "cpu, memory and ephemeral storage must not be negative");
  }
  if (shape.gpu.count < 0 || shape.gpu.memory_mib < 0) {
    return base::error(Code::kInvalid, "GPU count and GPU memory must not be negative");
  }
  if (shape.gpu.milli < 1 || shape.gpu.milli > kMilliPerGpu) {
    return base::error(Code::kInvalid, "share of a GPU is {}/1000: must be 1 to 1000",
                       shape.gpu.milli);
  }
  for (const ResourceAmount& r : shape.extended) {
    if (r.amount < 0) return base::error(Code::kInvalid, "extended resource must not be negative");
  }
  auto not_ascending = [](const auto& a, const auto& b) { return !(a < b); };
  if (std::adjacent_find(shape.extended.begin(), shape.extended.end(),
                         [](const auto& a, const auto& b) { return !(a.id < b.id); }) !=
      shape.extended.end()) {
    return base::error(Code::kInvalid, "extended resources must be sorted by id, each once");
  }
  if (std::adjacent_find(request.labels.begin(), request.labels.end(), not_ascending) !=
      request.labels.end()) {
    return base::error(Code::kInvalid, "pod labels must be sorted, each key once");
  }
  for (const SpreadRule& rule : request.spread) {
    if (rule.max_skew < 1) {
      return base::error(Code::kInvalid, "maxSkew is {}: must be 1 or more", rule.max_skew);
    }
  }
  return {};
}

}  // namespace tessera::scheduler::core
