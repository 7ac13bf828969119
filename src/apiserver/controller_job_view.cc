// The counts of a Job.
#include <algorithm>

#include "apiserver/controller_job_plan.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

// As many uids are written into a status at once.
constexpr size_t kUncountedMax = 500;

struct Known {
  std::set<std::string> tracked;  // carry the finalizer
  std::set<std::string> succeeded;
  std::set<std::string> failed;
};

// Keeps those that still carry the finalizer; the others have become numbers.
std::set<std::string> read_uncounted(const Value& list, const std::set<std::string>& tracked,
                                     std::vector<std::string>& uids, int64_t& counted) {
  std::set<std::string> known;
  for (const Value& uid : list.items()) {
    if (tracked.contains(uid.str())) {
      uids.push_back(uid.str());
      known.insert(uid.str());
    } else {
      ++counted;
    }
  }
  return known;
}

Known read_known(const Value& status, const std::vector<Object>& pods, JobView& view) {
  Known known;
  for (const Object& pod : pods) {
    if (has_finalizer(pod, kJobFinalizer)) known.tracked.emplace(pod.uid());
  }
  const Value& uncounted = status["uncountedTerminatedPods"];
  view.succeeded_counted = status["succeeded"].as_int();
  view.failed_counted = status["failed"].as_int();
  known.succeeded = read_uncounted(uncounted["succeeded"], known.tracked, view.succeeded_uids,
                                   view.succeeded_counted);
  known.failed =
      read_uncounted(uncounted["failed"], known.tracked, view.failed_uids, view.failed_counted);
  return known;
}

void count_running(const std::vector<Object>& pods, JobView& view) {
  for (const Object& pod : pods) {
    if (is_active(pod)) {
      view.active.push_back(pod);
      view.ready += is_ready(pod);
    } else if (pod.deleting() && !is_finished(pod)) {
      ++view.terminating;
    }
  }
}

void count_indexes(const kube::Job& job, const Value& status, const std::vector<Object>& pods,
                   const Known& known, JobView& view) {
  if (!job.indexed) return;
  const int32_t limit = job.completions.value_or(0);
  view.completed_indexes = parse_indexes(status["completedIndexes"].as_string(), limit);
  if (job.backoff_limit_per_index) {
    view.failed_indexes = parse_indexes(status["failedIndexes"].as_string(), limit);
  }
  for (const Object& pod : pods) {
    if (!known.tracked.contains(std::string(pod.uid())) || !index_counts(job, pod)) continue;
    if (pod_succeeded(pod)) view.completed_indexes.insert(*index_of(pod));
    if (view.failed_indexes && index_failed(job, pod)) view.failed_indexes->insert(*index_of(pod));
  }
}

// Later attempts stand for earlier ones.
bool follows(const Object& pod, const Object& other) {
  return failures_before(other).all() <= failures_before(pod).all() &&
         finished_at(pod) >= finished_at(other);
}

void find_delayed(const kube::Job& job, const std::vector<Object>& pods, const Known& known,
                  JobView& view) {
  if (!view.failed_indexes) return;
  std::set<int32_t> busy;
  for (const Object& pod : view.active) {
    if (const auto index = index_of(pod)) busy.insert(*index);
  }
  for (const Object& pod : pods) {
    if (!known.tracked.contains(std::string(pod.uid())) || !index_counts(job, pod)) continue;
    if (!pod_failed(job, pod)) continue;
    const int32_t index = *index_of(pod);
    if (busy.contains(index) || view.completed_indexes.contains(index) ||
        view.failed_indexes->contains(index)) {
      continue;
    }
    const auto [at, fresh] = view.delayed.try_emplace(index, pod);
    if (!fresh && follows(pod, at->second)) at->second = pod;
  }
}

bool is_delayed(const JobView& view, const Object& pod) {
  const auto index = index_of(pod);
  const auto at = index ? view.delayed.find(*index) : view.delayed.end();
  return at != view.delayed.end() && at->second.uid() == pod.uid();
}

void count_end(const kube::Job& job, const Object& pod, const Known& known, JobView& view) {
  const std::string uid(pod.uid());
  if (view.to_release.size() >= kUncountedMax) return;
  if (pod_succeeded(pod) && !known.failed.contains(uid)) {
    if (!job.indexed && !known.succeeded.contains(uid)) view.succeeded_uids.push_back(uid);
  } else if (pod_failed(job, pod)) {
    const bool counts =
        !known.failed.contains(uid) && index_counts(job, pod) && match_failure(job, pod).counts;
    if (is_delayed(view, pod)) {
      if (counts) ++view.failed;
      return;
    }
    if (counts) view.failed_uids.push_back(uid);
  } else {
    return;
  }
  view.to_release.push_back(pod);
}

}  // namespace

JobView view_job(const kube::Job& job, const Value& status, const std::vector<Object>& pods) {
  JobView view;
  const Known known = read_known(status, pods, view);
  count_running(pods, view);
  count_indexes(job, status, pods, known, view);
  find_delayed(job, pods, known, view);
  for (const Object& pod : pods) {
    if (known.tracked.contains(std::string(pod.uid()))) count_end(job, pod, known, view);
  }
  view.succeeded = job.indexed
                       ? static_cast<int64_t>(view.completed_indexes.size())
                       : view.succeeded_counted + static_cast<int64_t>(view.succeeded_uids.size());
  view.failed += view.failed_counted + static_cast<int64_t>(view.failed_uids.size());
  return view;
}

void conclude(const kube::Job& job, const JobEnd& end, const std::vector<Object>& pods,
              JobView& view) {
  std::set<std::string> settled(view.failed_uids.begin(), view.failed_uids.end());
  for (const Object& pod : view.to_release) settled.emplace(pod.uid());
  for (const Object& pod : pods) {
    if (view.to_release.size() >= kUncountedMax) return;
    const std::string uid(pod.uid());
    if (!has_finalizer(pod, kJobFinalizer) || settled.contains(uid)) continue;
    const bool failed = pod_failed(job, pod) || !end.success;
    if (failed && index_counts(job, pod) && match_failure(job, pod).counts) {
      view.failed_uids.push_back(uid);
    }
    view.to_release.push_back(pod);
  }
}

}  // namespace tessera::apiserver::controller
