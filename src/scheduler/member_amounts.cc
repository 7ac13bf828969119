#include "scheduler/member_amounts.h"

#include <algorithm>

#include "gpu/catalog.h"
#include "gpu/mig_name.h"
#include "gpu/sharing.h"

namespace tessera::scheduler {
namespace {

using queueing::kUnitsPerGpu;

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kSlicesPerGpu = 7;  // where the catalogue does not know the profile
constexpr std::string_view kReplicas[] = {"nvidia.com/gpu.shared", "amd.com/gpu.shared"};

int64_t rounded_up(int64_t amount, int64_t unit) {
  return amount <= 0 ? 0 : (amount - 1) / unit + 1;
}

// A compute instance ("1c.3g.40gb") takes its own slices of a GPU instance that the catalogue knows.
int64_t slice_units(const gpu::ProfileName& name) {
  gpu::ProfileName instance = name;
  instance.compute = instance.slices;
  const std::string wanted = gpu::to_text(instance);
  int64_t most = 0;
  for (const gpu::Model& model : gpu::models()) {
    if (model.mig == nullptr || model.mig->compute_slices == 0) continue;
    for (const gpu::MigProfile& profile : model.mig->profiles) {
      if (profile.name == wanted)
        most = std::max(most, rounded_up(name.compute * kUnitsPerGpu, model.mig->compute_slices));
    }
  }
  if (most == 0) most = name.compute * kUnitsPerGpu / kSlicesPerGpu;
  return std::min(most, kUnitsPerGpu);
}

// A device's part of a share; by memory it is what the smallest device of those it may get would give.
int64_t share_units(const core::Shape& shape, const core::Interner& names,
                    const ShareRules& rules) {
  const core::GpuAsk& ask = shape.gpu;
  if (ask.memory_mib <= 0)
    return rounded_up(std::clamp<int64_t>(ask.milli, 0, core::kMilliPerGpu) * kUnitsPerGpu,
                      core::kMilliPerGpu);
  int64_t device = 0;
  for (const core::ModelId id : shape.models) {
    const gpu::Model* model = gpu::find_model(names.text(id));
    if (model == nullptr) continue;
    const int64_t usable = model->usable_memory().value;
    if (usable >= ask.memory_mib) device = device == 0 ? usable : std::min(device, usable);
  }
  if (device == 0) device = rules.gpu_memory_mib;
  if (device <= ask.memory_mib) return kUnitsPerGpu;
  return rounded_up(core::sat_mul(ask.memory_mib, kUnitsPerGpu), device);
}

bool known(const queueing::Dims& dims, std::string_view name) {
  for (queueing::Dim dim = 0; dim < dims.size(); ++dim) {
    if (dims.name(dim) == name) return true;
  }
  return false;
}

void add_named(std::string_view name, int64_t amount, queueing::Dims& dims,
               queueing::Amounts& out) {
  if (amount <= 0 || (dims.size() >= kNamesMax && !known(dims, name))) return;
  out.add(dims.intern(name), amount);
}

}  // namespace

std::optional<int64_t> gpu_units_of(std::string_view resource, const ShareRules& rules) {
  if (resource == "nvidia.com/gpu" || resource == "amd.com/gpu") return kUnitsPerGpu;
  if (std::ranges::find(kReplicas, resource) != std::end(kReplicas))
    return rounded_up(kUnitsPerGpu, std::max<int64_t>(rules.replicas_per_gpu, 1));
  if (const auto name = gpu::profile_of_resource(resource)) return slice_units(*name);
  return std::nullopt;
}

queueing::Amounts member_amounts(const core::PodRequest& request, const core::Interner& names,
                                 queueing::Dims& dims, const ShareRules& rules) {
  const core::Shape& shape = request.shape;
  queueing::Amounts out;
  const auto add = [&out](queueing::Dim dim, int64_t amount) {
    if (amount > 0) out.add(dim, amount);
  };
  if (shape.gpu.count > 0)
    add(queueing::kGpu, core::sat_mul(shape.gpu.count, share_units(shape, names, rules)));
  add(queueing::kCpu, shape.cpu_milli);
  add(queueing::kMemory, rounded_up(shape.memory_bytes, kMib));
  for (const core::ResourceAmount& item : shape.extended) {
    const std::string_view name = names.text(item.id);
    if (const auto units = gpu_units_of(name, rules))
      add(queueing::kGpu, core::sat_mul(std::max<int64_t>(item.amount, 0), *units));
    add_named(name, item.amount, dims, out);
  }
  // Nobody divides these but a queue that names them.
  if (known(dims, "ephemeral-storage"))
    add_named("ephemeral-storage", shape.storage_bytes, dims, out);
  if (known(dims, "pods")) add_named("pods", 1, dims, out);
  return out;
}

}  // namespace tessera::scheduler
