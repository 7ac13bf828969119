// The pods that a manifest would come to, as its controllers would make them, without any of them.
//
// Shape:   make() takes one manifest of a Pod, Job, CronJob (one run of it), ReplicaSet, Deployment, StatefulSet, DaemonSet,
//          PyTorchJob and its siblings, JobSet, LeaderWorkerSet, RayCluster, RayJob, RayService or Volcano Job, and answers with
//          what stands between it and its pods (ReplicaSet, Job, PodGroup, claims) and the pods themselves, with owners, labels
//          and annotations as far as the scheduler reads them. Names are counted, not random. Kinds that make no pods come back
//          as they are. What an API adds to a pod that the scheduler reads is added: scheduler and priority.
// Errors:  Made::problem: the kind is not known, or too much is asked for.
// Threads: pure.
// Source:  as groups.h; Kubernetes 1.36 (names and labels of pods).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "kube/object.h"

namespace tessera::scheduler {

struct Made {
  std::string title{};                  // "Job ml/train"
  std::vector<kube::Object> objects{};  // the manifest's own first
  std::vector<kube::Object> pods{};
  std::vector<std::string> notes{};
  std::string problem{};
};

class PodMaker {
 public:
  struct Options {
    std::string ns = "default";                        // where the manifest names none
    std::string scheduler_name = "default-scheduler";  // where the pod names none
    base::Time now{};
    std::function<kube::Object(std::string_view name)> priority_class{};
    kube::Object default_priority_class{};
    std::vector<std::string> nodes{};  // for daemons
  };
  explicit PodMaker(Options options) : options_(std::move(options)) {}

  Made make(const json::Value& manifest);

 private:
  struct Mark {
    std::string key;
    std::string value;
  };
  using Marks = std::vector<Mark>;

  kube::Object owned(json::Value object, std::string_view name, const kube::Object& owner);
  void pod(const json::Value& from, std::string_view name, const kube::Object& owner,
           const Marks& labels, const Marks& annotations, Made& out);
  void complete(json::Value& pod, Made& out) const;
  void job(const kube::Object& object, const Marks& labels, Made& out);
  void set_of_pods(const kube::Object& object, Made& out);
  void stateful(const kube::Object& object, Made& out);
  void daemons(const kube::Object& object, Made& out);
  void roles(const kube::Object& object, std::string_view field, Made& out);
  void job_set(const kube::Object& object, Made& out);
  void leader_workers(const kube::Object& object, Made& out);
  void ray(const kube::Object& cluster, Made& out);
  void tasks(const kube::Object& object, Made& out);
  bool expand(const kube::Object& object, Made& out);

  Options options_;
  int64_t made_ = 0;  // uids
};

}  // namespace tessera::scheduler
