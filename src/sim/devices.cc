#include "sim/devices.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace tessera::sim {
namespace {

constexpr int64_t kMilliPerGpu = 1000;

int64_t sat_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t count_of(const ContainerAsk& container, std::string_view resource) {
  const auto it = container.devices.find(resource);
  return it != container.devices.end() ? it->second : 0;
}

// Gives each container its part of a reservation: sidecars keep theirs from the front on, every other container starts
// behind the sidecars running beside it; app containers stand side by side.
void hand_out(const PodAsk& ask, std::string_view resource, const std::vector<Device>& reserved,
              PodDevices& out) {
  size_t sidecars = 0;
  size_t apps = 0;
  for (const ContainerAsk& container : ask.containers) {
    const auto count = static_cast<size_t>(count_of(container, resource));
    if (count == 0) continue;
    size_t first = sidecars;
    if (container.role == ContainerAsk::Role::kApp) first += apps;
    TS_CHECK(first + count <= reserved.size());
    auto& mine = out.by_container[container.name];
    mine.insert(mine.end(), reserved.begin() + static_cast<std::ptrdiff_t>(first),
                reserved.begin() + static_cast<std::ptrdiff_t>(first + count));
    if (container.role == ContainerAsk::Role::kSidecar) sidecars += count;
    if (container.role == ContainerAsk::Role::kApp) apps += count;
  }
}

std::set<std::string, std::less<>> resources_of(const PodAsk& ask) {
  std::set<std::string, std::less<>> names;
  for (const ContainerAsk& container : ask.containers) {
    for (const auto& [resource, count] : container.devices) names.insert(resource);
  }
  return names;
}

}  // namespace

int64_t devices_needed(const PodAsk& ask, std::string_view resource) {
  int64_t sidecars = 0;
  int64_t apps = 0;
  int64_t peak = 0;
  for (const ContainerAsk& container : ask.containers) {
    const int64_t count = count_of(container, resource);
    switch (container.role) {
      case ContainerAsk::Role::kInit:
        peak = std::max(peak, sat_add(sidecars, count));
        break;
      case ContainerAsk::Role::kSidecar:
        sidecars = sat_add(sidecars, count);
        break;
      case ContainerAsk::Role::kApp:
        apps = sat_add(apps, count);
        break;
    }
  }
  return std::max(peak, sat_add(sidecars, apps));
}

DevicePool::DevicePool(std::vector<Device> devices, int gpus)
    : devices_(std::move(devices)),
      taken_(devices_.size(), false),
      gpu_healthy_(static_cast<size_t>(gpus), true),
      share_used_(static_cast<size_t>(gpus), 0),
      whole_users_(static_cast<size_t>(gpus), 0) {
  for (const Device& device : devices_) {
    TS_CHECK(device.gpu >= 0 && device.gpu < gpus, "device {} on GPU {}", device.id, device.gpu);
  }
}

bool DevicePool::usable(size_t device) const {
  const auto gpu = static_cast<size_t>(devices_[device].gpu);
  return !taken_[device] && gpu_healthy_[gpu] && share_used_[gpu] == 0;
}

std::vector<size_t> DevicePool::pick(std::string_view resource, int64_t count,
                                     const std::vector<int>& gpus) const {
  std::vector<size_t> picked;
  const auto want = static_cast<size_t>(std::min<int64_t>(count, INT32_MAX));
  for (size_t i = 0; i < devices_.size() && picked.size() < want; ++i) {
    const bool chosen = gpus.empty() || std::ranges::find(gpus, devices_[i].gpu) != gpus.end();
    if (chosen && devices_[i].resource == resource && usable(i)) picked.push_back(i);
  }
  return picked;
}

std::vector<int> DevicePool::pick_shares(const PodAsk& ask) const {
  std::vector<int> picked;
  for (int gpu = 0; gpu < this->gpus(); ++gpu) {
    if (static_cast<int64_t>(picked.size()) == ask.share_gpus) break;
    const auto i = static_cast<size_t>(gpu);
    const bool chosen = ask.gpus.empty() || std::ranges::find(ask.gpus, gpu) != ask.gpus.end();
    const bool fits =
        gpu_healthy_[i] && whole_users_[i] == 0 && share_used_[i] + ask.share_milli <= kMilliPerGpu;
    if (chosen && fits) picked.push_back(gpu);
  }
  return picked;
}

base::Result<PodDevices> DevicePool::reserve(const std::string& pod, const PodAsk& ask) {
  TS_CHECK(!held_.contains(pod), "pod {} reserves twice", pod);
  PodDevices out;
  Held held;
  std::set<int> gpus;
  for (const std::string& resource : resources_of(ask)) {
    const int64_t need = devices_needed(ask, resource);
    const std::vector<size_t> picked = pick(resource, need, ask.gpus);
    if (static_cast<int64_t>(picked.size()) < need) {
      return base::error(base::Code::kBusy,
                         "Allocate failed due to requested number of devices unavailable for {}. "
                         "Requested: {}, Available: {}, which is unexpected",
                         resource, need, picked.size());
    }
    std::vector<Device> reserved;
    for (const size_t i : picked) {
      reserved.push_back(devices_[i]);
      gpus.insert(devices_[i].gpu);
      held.devices.push_back(i);
    }
    hand_out(ask, resource, reserved, out);
  }
  if (ask.share_gpus > 0) {
    held.share_gpus = pick_shares(ask);
    held.share_milli = ask.share_milli;
    if (static_cast<int64_t>(held.share_gpus.size()) < ask.share_gpus) {
      return base::error(base::Code::kBusy,
                         "no GPU of this node has {} thousandths free for a share on {} GPUs",
                         ask.share_milli, ask.share_gpus);
    }
    gpus.insert(held.share_gpus.begin(), held.share_gpus.end());
  }
  for (const size_t i : held.devices) {
    taken_[i] = true;
    ++whole_users_[static_cast<size_t>(devices_[i].gpu)];
  }
  for (const int gpu : held.share_gpus) share_used_[static_cast<size_t>(gpu)] += ask.share_milli;
  held_.emplace(pod, std::move(held));
  out.gpus.assign(gpus.begin(), gpus.end());
  return out;
}

void DevicePool::release(const std::string& pod) {
  const auto it = held_.find(pod);
  if (it == held_.end()) return;
  for (const size_t i : it->second.devices) {
    taken_[i] = false;
    --whole_users_[static_cast<size_t>(devices_[i].gpu)];
  }
  for (const int gpu : it->second.share_gpus) {
    share_used_[static_cast<size_t>(gpu)] -= it->second.share_milli;
  }
  held_.erase(it);
}

void DevicePool::set_healthy(int gpu, bool healthy) {
  gpu_healthy_[static_cast<size_t>(gpu)] = healthy;
}

std::map<std::string, int64_t, std::less<>> DevicePool::capacity() const {
  std::map<std::string, int64_t, std::less<>> out;
  for (const Device& device : devices_) ++out[device.resource];
  return out;
}

std::map<std::string, int64_t, std::less<>> DevicePool::allocatable() const {
  std::map<std::string, int64_t, std::less<>> out;
  for (const Device& device : devices_) {
    out[device.resource] += gpu_healthy_[static_cast<size_t>(device.gpu)] ? 1 : 0;
  }
  return out;
}

}  // namespace tessera::sim
