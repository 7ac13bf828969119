// Why a pod waits: for every reason the number of nodes it rules out, and the node that comes
// nearest.
//
// Shape:   Verdict{code, nodes, counts, nearest}. kBusy: a node could hold the pod if others left;
//          kNever: no node of this cluster could, even empty.
// Source:  the wording of FailedScheduling events of kube-scheduler 1.36, which users and tools
//          search for.
#pragma once

#include <string>
#include <vector>

#include "scheduler/core/filter.h"

namespace tessera::scheduler::core {

struct ReasonCount {
  Reason reason = Reason::kNone;
  Taint taint;
  ResourceId resource;
  int32_t nodes = 0;
};

struct Verdict {
  base::Code code = base::Code::kBusy;
  int32_t nodes = 0;
  std::vector<ReasonCount> counts;  // most nodes first
  NodeId nearest;                   // invalid where rules keep the pod off every node
  std::vector<Finding> nearest_missing;

  // "0/24 nodes are available: 3 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
  std::string message(const Interner& names) const;
  // "nearest: node-7, short of 2 nvidia.com/gpu"; empty where there is none.
  std::string nearest_text(const Cluster& cluster) const;
  // "2 nvidia.com/gpu, 500m cpu": what the nearest node is short of; empty where there is none.
  std::string short_of(const Cluster& cluster) const;
};

Verdict explain(const Cluster& cluster, const PodRequest& request);

}  // namespace tessera::scheduler::core
