// What a Job does next, and what its status says: pure.
//
// Shape:   view_job counts the pods, plan_job decides, job_status writes down. A pod that ended is counted in two steps that
//          survive a crash between any two writes: its uid goes into status.uncountedTerminatedPods while it still carries
//          the finalizer; once the finalizer is off, the uid turns into a number. A pod without the finalizer never counts.
//          With a limit per index the last failed pod of an index keeps its finalizer until the next one, which takes over
//          the count of failures, is there.
// Source:  Kubernetes 1.36 pkg/controller/job (behaviour); KEP-2307 (tracking with finalizers).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apiserver/controller_job_policy.h"

namespace tessera::apiserver::controller {

struct JobView {
  std::vector<kube::Object> active;
  std::vector<std::string> succeeded_uids;  // to be counted: in the status already, or new
  std::vector<std::string> failed_uids;
  int64_t succeeded_counted = 0;  // whose finalizer is off
  int64_t failed_counted = 0;
  std::set<int32_t> completed_indexes;              // Indexed only
  std::optional<std::set<int32_t>> failed_indexes;  // with a limit per index only
  std::map<int32_t, kube::Object> delayed;  // what failed last of indexes that wait for a new pod
  int64_t succeeded = 0;                    // all in all
  int64_t failed = 0;
  int64_t ready = 0;
  int64_t terminating = 0;
  // Pods whose finalizer may go once the status above is written.
  std::vector<kube::Object> to_release;
};

// How a job ends: Complete or Failed, with its reason.
struct JobEnd {
  bool success = false;
  std::string reason;
  std::string message;
};

struct JobPlan {
  std::optional<JobEnd> end;
  std::vector<kube::Object> remove;            // they count as failed
  std::vector<kube::Object> release_remove;    // they do not count
  std::vector<std::optional<int32_t>> create;  // completion indexes; nothing for NonIndexed
  std::optional<base::Time> again;             // when time alone changes the plan
};

JobView view_job(const kube::Job& job, const json::Value& status,
                 const std::vector<kube::Object>& pods);
// The end is decided and nothing runs: pods that are still on their way out are counted or let go, too.
void conclude(const kube::Job& job, const JobEnd& end, const std::vector<kube::Object>& pods,
              JobView& view);
JobPlan plan_job(const kube::Job& job, const json::Value& status, const JobView& view,
                 const std::vector<kube::Object>& pods, base::Time now, JobHistory history = {});
json::Value job_status(const kube::Job& job, const json::Value& before, const JobView& view,
                       const std::optional<JobEnd>& end, base::Time now);
// `replaced`: the failed pod of the same index, where its failures are passed on; else an empty object.
json::Value job_pod(const kube::Object& object, const kube::Job& job, const Kind& kind,
                    std::optional<int32_t> index, const kube::Object& replaced,
                    base::Random& random);
// When a finished job is deleted; nothing where it stays.
std::optional<base::Time> job_expiry(const kube::Job& job, const json::Value& status);

}  // namespace tessera::apiserver::controller
