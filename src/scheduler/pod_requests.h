// Calls about one pod, as the parts of the driver make them, and how long is waited before one is made again.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "base/time.h"
#include "kube/client.h"

namespace tessera::scheduler {

inline constexpr base::Duration kBackOffFirst = base::seconds(1);
inline constexpr base::Duration kBackOffMax = base::seconds(10);

// After so many failures in a row.
inline base::Duration back_off(int failures) {
  base::Duration wait = kBackOffFirst;
  for (int i = 1; i < failures && wait < kBackOffMax; ++i) wait = wait * 2;
  return std::min(wait, kBackOffMax);
}

inline kube::Request pod_request(kube::Verb verb, std::string ns, std::string name,
                                 std::string subresource) {
  kube::Request request;
  request.verb = verb;
  request.gvr = kube::core_v1("pods");
  request.ns = std::move(ns);
  request.name = std::move(name);
  request.subresource = std::move(subresource);
  return request;
}

// A patch of the status of just this pod, not of another by its name.
inline kube::Request pod_status_patch(const kube::Object& pod, kube::PatchType type,
                                      json::Value status) {
  kube::Request request =
      pod_request(kube::Verb::kPatch, std::string(pod.ns()), std::string(pod.name()), "status");
  request.patch_type = type;
  request.body = json::Value::object(
      {{"metadata", json::Value::object({{"uid", pod.uid()}})}, {"status", std::move(status)}});
  return request;
}

}  // namespace tessera::scheduler
