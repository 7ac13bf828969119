// What must hold once nothing fails any more: every pod has got as far as it can, and nothing of the faults is left.
//
// Shape:   rules, each with the time that a healthy cluster may take for it:
//          - nodes are ready, not cordoned, without taints of the node controller, with all their GPUs;
//          - a terminating pod goes, a bound pod starts, a waiting pod is told why;
//          - no waiting pod has a place: a scheduler that starts with nothing but these objects finds none either;
//          - an unfinished Job has a pod under way (or had one within its back-off), a Deployment its replicas.
// Errors:  kInternal with the first object that breaks a rule.
// Threads: pure.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"

namespace tessera::sim {

struct RestView {
  std::vector<kube::Object> nodes;
  std::vector<kube::Object> pods;
  std::vector<kube::Object> jobs;
  std::vector<kube::Object> deployments;
  base::Time now;
  std::vector<kube::Object>
      scheduling{};  // queues, groups, budgets and what else the scheduler reads
};

base::Status check_rest(const RestView& view);

}  // namespace tessera::sim
