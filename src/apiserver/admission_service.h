// Cluster addresses and node ports of Services.
//
// Shape:   addresses come from 10.96.0.0/16, the first is the API's own; ports from 30000-32767. A Service holds what it was
//          given until it is gone.
// Errors:  causes as Kubernetes words them, for an address or a port that is taken or out of range.
// Threads: any.
// Source:  Kubernetes Service API (clusterIP, nodePort).
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "apiserver/kind.h"
#include "json/value.h"

namespace tessera::apiserver {

class ClusterIps {
 public:
  // What the Service holds already is taken.
  void hold(const json::Value& service);
  void release(const json::Value& service);
  // Fills spec.clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy and nodePorts. On errors nothing is held.
  void assign(json::Value& service, const std::function<uint64_t(uint64_t bound)>& draw,
              FieldErrors& errors);
  // A client that sends a Service as it wrote it first leaves out what was assigned: that stays.
  static void carry(json::Value& service, const json::Value& before);
  // Takes what is new and gives back what `before` alone had.
  void reassign(json::Value& service, const json::Value& before,
                const std::function<uint64_t(uint64_t bound)>& draw, FieldErrors& errors);

 private:
  void assign_address(json::Value& spec, const std::function<uint64_t(uint64_t)>& draw,
                      FieldErrors& errors);
  void assign_ports(json::Value& spec, const std::function<uint64_t(uint64_t)>& draw,
                    FieldErrors& errors);

  std::mutex mutex_;
  std::set<uint32_t> addresses_;
  std::set<int64_t> ports_;
};

}  // namespace tessera::apiserver
