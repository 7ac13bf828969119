// The Job controller: runs pods until enough have succeeded, as controller_job_plan.h says.
//
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/job, pkg/controller/ttlafterfinished (behaviour).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/controller_job_plan.h"
#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class JobController {
 public:
  JobController(Cluster& cluster, OwnerIndex& index);
  void start();

 private:
  using FailedIndexes = std::optional<std::set<int32_t>>;

  void on_job(const kube::Object& before, const kube::Object& after);
  void on_pod(const kube::Object& before, const kube::Object& after);
  void check_tracked(const kube::Object& pod);
  void sync(const std::string& key, Done done);
  void sync_stray(const std::string& key, Done done);
  void claim(const kube::Object& object, const kube::Job& job, Done done);
  void carry_out(const kube::Object& object, const kube::Job& job, Done done);
  std::vector<Action> pod_actions(const kube::Object& object, const kube::Job& job,
                                  const JobView& view, JobPlan plan);
  void report(const std::string& key, const FailedIndexes& decided, const base::Status& outcome,
              const Done& done);
  void finish(const kube::Object& object, const kube::Job& job, Done done);
  void release_pods(const std::vector<kube::Object>& pods, Done done);
  void expire(const kube::Object& object, const kube::Job& job, const Done& done);
  void tell(const kube::Object& object, const json::Value& before, const json::Value& after);

  Cluster& cluster_;
  OwnerIndex& index_;
  Cache& jobs_;
  Cache& pods_;
  Reconciler queue_;
  std::unordered_map<std::string, JobHistory> histories_;  // by uid, of jobs that still run
  Reconciler strays_;  // pods that carry the finalizer and belong to no job
};

}  // namespace tessera::apiserver::controller
