// The rules of a Job about its pods: which of them failed, what a failure means, which indexes are done, how long to wait
// before the next attempt. Pure.
//
// Shape:   sets of completion indexes are written "0,2-5,7".
// Source:  Kubernetes 1.36 pkg/controller/job (behaviour); KEP-3329 (failure policy), KEP-3850 (limits per index),
//          KEP-3998 (success policy), KEP-3939 (replacement policy).
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/controllers_pods.h"
#include "kube/job.h"

namespace tessera::apiserver::controller {

inline constexpr std::string_view kJobFinalizer = "batch.kubernetes.io/job-tracking";
inline constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";

// What does not read is left out, and so is what is not below `limit`.
std::set<int32_t> parse_indexes(std::string_view text, int32_t limit = 1'000'000);
std::string format_indexes(const std::set<int32_t>& indexes);

// The completion index of a pod.
std::optional<int32_t> index_of(const kube::Object& pod);
// Below spec.completions; true for pods of jobs that are not Indexed.
bool index_counts(const kube::Job& job, const kube::Object& pod);

bool pod_succeeded(const kube::Object& pod);
// A pod on its way out has failed too, unless only those that have ended are replaced.
bool pod_failed(const kube::Job& job, const kube::Object& pod);
base::Time finished_at(const kube::Object& pod);

struct FailureMatch {
  bool counts = true;       // towards the limits
  bool fail_index = false;  // the index is given up
  std::string fail_job{};   // why the job is given up; empty: it is not
};
// The first rule of spec.podFailurePolicy that fits.
FailureMatch match_failure(const kube::Job& job, const kube::Object& pod);
// "Matched rules at index 0", or nothing.
std::optional<std::string> match_success(const kube::Job& job, const std::set<int32_t>& succeeded);

// Failures of the index before this pod, as its annotations say.
struct IndexFailures {
  int32_t counted = 0;
  int32_t ignored = 0;
  int32_t all() const {
    return counted > std::numeric_limits<int32_t>::max() - ignored ? counted : counted + ignored;
  }
};
IndexFailures failures_before(const kube::Object& pod);
// What the pod that replaces it is to say.
IndexFailures failures_after(const kube::Job& job, const kube::Object& pod);
void annotate_failures(json::Value& annotations, const IndexFailures& failures);
bool index_failed(const kube::Job& job, const kube::Object& pod);

// 10 s after the first failure, twice as long after each further one, 10 min at most.
base::Time retry_after(int64_t failures, base::Time last);

// The failures since the last success, of pods that may be gone by now.
class JobHistory {
 public:
  void note(const kube::Job& job, const std::vector<kube::Object>& pods);
  // The moment before which nothing new is made.
  base::Time retry_at() const;

 private:
  base::Time success_;
  std::map<std::string, base::Time> failures_;  // by uid
};

}  // namespace tessera::apiserver::controller
