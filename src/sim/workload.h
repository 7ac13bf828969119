// Workloads drawn from a seed: the manifests that a world's users apply.
//
// Shape:   each draw() is one object with its resource: a Job, a Deployment or a Pod, asking for whole GPUs, a share, a MIG
//          slice, a time-slice replica or CPU alone, with a run time, sometimes init containers, sidecars, a priority, a
//          failing exit code, or more than any node has.
// Threads: one owner.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "json/value.h"
#include "kube/object.h"

namespace tessera::sim {

struct Drawn {
  kube::Gvr gvr;
  json::Value object;
};

class Workload {
 public:
  explicit Workload(base::Random random) : random_(random) {}
  Drawn draw();
  // What the drawn manifests refer to: to be created first.
  static std::vector<Drawn> priority_classes();

 private:
  json::Value pod_template(bool long_running);
  json::Value resources(json::Value& annotations);
  json::Value container(std::string_view name, json::Value resources);

  base::Random random_;
  int count_ = 0;
};

}  // namespace tessera::sim
