#include "kube/pod_resources.h"

#include <algorithm>

namespace tessera::kube {
namespace {

using Part = ResourceList Container::*;

// What may be given for a pod as a whole.
bool pod_level(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource.starts_with("hugepages-");
}

ResourceList sum_of_containers(const Pod& pod, Part part) {
  ResourceList steady;
  for (const Container& container : pod.containers) add_to(steady, container.*part);
  ResourceList sidecars;
  ResourceList while_starting;
  for (const Container& container : pod.init_containers) {
    if (container.sidecar) {
      add_to(steady, container.*part);
      add_to(sidecars, container.*part);
      raise_to(while_starting, sidecars);
      continue;
    }
    ResourceList now = container.*part;
    add_to(now, sidecars);
    raise_to(while_starting, now);
  }
  raise_to(steady, while_starting);
  return steady;
}

void replace_pod_level(ResourceList& list, const ResourceList& whole) {
  for (const auto& [name, amount] : whole) {
    if (pod_level(name)) list.insert_or_assign(name, amount);
  }
}

// cpu and memory above zero, added up.
void add_compute(ResourceList& sum, const ResourceList& list) {
  for (const char* name : {"cpu", "memory"}) {
    const Quantity& amount = amount_of(list, name);
    if (amount.sign() <= 0) continue;
    const auto [at, added] = sum.try_emplace(name, amount);
    if (!added) at->second += amount;
  }
}

bool limits_all_compute(const ResourceList& limits) {
  return amount_of(limits, "cpu").sign() > 0 && amount_of(limits, "memory").sign() > 0;
}

}  // namespace

ResourceList pod_requests(const Pod& pod) {
  ResourceList out = sum_of_containers(pod, &Container::requests);
  replace_pod_level(out, pod.pod_requests);
  add_to(out, pod.overhead);
  return out;
}

ResourceList pod_limits(const Pod& pod) {
  ResourceList out = sum_of_containers(pod, &Container::limits);
  replace_pod_level(out, pod.pod_limits);
  for (const auto& [name, amount] : pod.overhead) {
    const auto limit = out.find(name);
    if (limit != out.end() && !limit->second.is_zero()) limit->second += amount;
  }
  return out;
}

std::string_view qos_class(const Pod& pod) {
  ResourceList requests;
  ResourceList limits;
  bool guaranteed = true;
  if (!pod.pod_requests.empty() || !pod.pod_limits.empty()) {
    add_compute(requests, pod.pod_requests);
    add_compute(limits, pod.pod_limits);
    if (!pod.pod_limits.empty()) guaranteed = limits_all_compute(pod.pod_limits);
  } else {
    for (const auto* list : {&pod.containers, &pod.init_containers}) {
      for (const Container& container : *list) {
        add_compute(requests, container.requests);
        add_compute(limits, container.limits);
        guaranteed = guaranteed && limits_all_compute(container.limits);
      }
    }
  }
  if (requests.empty() && limits.empty()) return "BestEffort";
  if (!guaranteed || requests.size() != limits.size()) return "Burstable";
  const bool equal = std::ranges::all_of(
      requests, [&](const auto& entry) { return amount_of(limits, entry.first) == entry.second; });
  return equal ? "Guaranteed" : "Burstable";
}

}  // namespace tessera::kube
