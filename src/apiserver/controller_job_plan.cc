#include "apiserver/controller_job_plan.h"

#include <algorithm>
#include <charconv>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

// As many uids are written into a status at once.
constexpr size_t kUncountedMax = 500;
constexpr base::Duration kBackoffFirst = base::seconds(10);
constexpr base::Duration kBackoffMax = base::seconds(600);

bool is_failed(const Object& pod) {
  const std::string_view phase = pod.get("status", "phase").as_string();
  return phase == "Failed" || (pod.deleting() && phase != "Succeeded");
}

bool is_succeeded(const Object& pod) {
  return pod.get("status", "phase").as_string() == "Succeeded";
}

std::optional<int32_t> index_of(const Object& pod) {
  const std::string_view text = pod.annotation(kCompletionIndex);
  int32_t index = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), index);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return index;
}

bool index_in_range(const kube::Job& job, const Object& pod) {
  const auto index = index_of(pod);
  return index && *index >= 0 && *index < job.completions.value_or(0);
}

base::Time time_of(const Value& text) {
  const auto time = base::parse_rfc3339(text.as_string());
  return time ? *time : base::Time{};
}

base::Time finished_at(const Object& pod) {
  base::Time last;
  for (const Value& container : pod.get("status", "containerStatuses").items()) {
    last = std::max(last, time_of(container.get("state", "terminated", "finishedAt")));
  }
  if (last.ns == 0) last = time_of(pod.metadata()["deletionTimestamp"]);
  if (last.ns == 0) last = time_of(condition_of(pod["status"], "Ready")["lastTransitionTime"]);
  return last.ns != 0 ? last : time_of(pod.metadata()["creationTimestamp"]);
}

int64_t restarts(const Object& pod) {
  int64_t sum = 0;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Value& container : pod["status"][list].items()) {
      sum += container["restartCount"].as_int();
    }
  }
  return sum;
}

// Containers that restart in place count against the limit too.
bool past_restart_limit(const kube::Job& job, const std::vector<Object>& pods) {
  if (job.pod_template.get("spec", "restartPolicy").as_string() != "OnFailure") return false;
  int64_t sum = 0;
  for (const Object& pod : pods) {
    if (!is_finished(pod)) sum += restarts(pod);
  }
  return job.backoff_limit == 0 ? sum > 0 : sum >= job.backoff_limit;
}

// The moment before which nothing new is made: failures since the last success double the wait.
base::Time retry_at(const std::vector<Object>& pods) {
  base::Time success;
  for (const Object& pod : pods) {
    if (is_succeeded(pod)) success = std::max(success, finished_at(pod));
  }
  int failures = 0;
  base::Time last;
  for (const Object& pod : pods) {
    if (pod.get("status", "phase").as_string() != "Failed") continue;
    const base::Time at = finished_at(pod);
    if (at <= success) continue;
    ++failures;
    last = std::max(last, at);
  }
  if (failures == 0) return {};
  base::Duration wait = kBackoffFirst;
  for (int i = 1; i < failures && wait < kBackoffMax; ++i) wait = wait * 2;
  return last + std::min(wait, kBackoffMax);
}

void count_end(const kube::Job& job, const Object& pod,
               const std::set<std::string>& known_succeeded,
               const std::set<std::string>& known_failed, JobView& view) {
  const std::string uid(pod.uid());
  if (view.to_release.size() >= kUncountedMax) return;
  if (is_succeeded(pod) && !known_failed.contains(uid)) {
    if (job.indexed) {
      if (index_in_range(job, pod)) view.completed_indexes.insert(*index_of(pod));
    } else if (!known_succeeded.contains(uid)) {
      view.succeeded_uids.push_back(uid);
    }
  } else if (is_failed(pod)) {
    if (!known_failed.contains(uid) && (!job.indexed || index_in_range(job, pod))) {
      view.failed_uids.push_back(uid);
    }
  } else {
    return;
  }
  view.to_release.push_back(pod);
}

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

std::optional<JobEnd> decided_end(const Value& status) {
  for (const char* type : {"SuccessCriteriaMet", "Complete", "FailureTarget", "Failed"}) {
    const Value& condition = condition_of(status, type);
    if (condition["status"].as_string() != "True") continue;
    const std::string_view word = type;
    return JobEnd{word == "SuccessCriteriaMet" || word == "Complete", condition["reason"].str(),
                  condition["message"].str()};
  }
  return std::nullopt;
}

std::optional<JobEnd> find_end(const kube::Job& job, const Value& status, const JobView& view,
                               const std::vector<Object>& pods, base::Time now) {
  if (auto end = decided_end(status)) return end;
  if (view.failed > job.backoff_limit || past_restart_limit(job, pods)) {
    return JobEnd{false, "BackoffLimitExceeded", "Job has reached the specified backoff limit"};
  }
  if (job.active_deadline_seconds && job.started && !job.suspend &&
      *job.started + base::seconds(*job.active_deadline_seconds) <= now) {
    return JobEnd{false, "DeadlineExceeded", "Job was active longer than specified deadline"};
  }
  const bool complete = job.completions ? view.succeeded >= *job.completions
                                        : view.succeeded > 0 && view.active.empty();
  if (!complete) return std::nullopt;
  return JobEnd{true, "CompletionsReached", "Reached expected number of succeeded pods"};
}

size_t wanted_active(const kube::Job& job, const JobView& view) {
  const auto parallel = static_cast<size_t>(std::max(job.parallelism, 0));
  if (job.suspend) return 0;
  if (!job.completions)
    return view.succeeded > 0 ? std::min(view.active.size(), parallel) : parallel;
  const int64_t left = std::max<int64_t>(0, *job.completions - view.succeeded);
  return std::min(parallel, static_cast<size_t>(left));
}

// Active pods of an Indexed job that nobody needs: of a finished index, out of range, or the second of one.
std::vector<Object> take_surplus_indexes(const kube::Job& job, const JobView& view,
                                         std::vector<Object>& active, std::set<int32_t>& used) {
  std::vector<Object> surplus;
  std::vector<Object> kept;
  sort_for_deletion(active);
  for (size_t i = active.size(); i-- > 0;) {
    const auto index = index_of(active[i]);
    const bool needed = index_in_range(job, active[i]) &&
                        !view.completed_indexes.contains(*index) && used.insert(*index).second;
    (needed ? kept : surplus).push_back(active[i]);
  }
  active = std::move(kept);
  return surplus;
}

std::vector<std::optional<int32_t>> pick_new(const kube::Job& job, const JobView& view,
                                             const std::set<int32_t>& used, size_t count) {
  if (!job.indexed) return std::vector<std::optional<int32_t>>(count);
  std::vector<std::optional<int32_t>> out;
  for (int32_t i = 0; i < job.completions.value_or(0) && out.size() < count; ++i) {
    if (!used.contains(i) && !view.completed_indexes.contains(i)) out.emplace_back(i);
  }
  return out;
}

void earliest(std::optional<base::Time>& at, base::Time time) {
  if (!at || time < *at) at = time;
}

void plan_size(const kube::Job& job, const JobView& view, const std::vector<Object>& pods,
               base::Time now, JobPlan& plan) {
  std::vector<Object> active = view.active;
  std::set<int32_t> used;
  if (job.indexed) plan.release_remove = take_surplus_indexes(job, view, active, used);
  const size_t wanted = wanted_active(job, view);
  if (active.size() > wanted) {
    sort_for_deletion(active);
    active.resize(std::min(active.size() - wanted, kUncountedMax));
    plan.release_remove.insert(plan.release_remove.end(), active.begin(), active.end());
    return;
  }
  if (active.size() == wanted) return;
  const base::Time retry = retry_at(pods);
  if (retry > now) {
    earliest(plan.again, retry);
    return;
  }
  plan.create = pick_new(job, view, used, std::min(wanted - active.size(), kUncountedMax));
}

}  // namespace

std::set<int32_t> parse_indexes(std::string_view text) {
  std::set<int32_t> out;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const char* const part_end = part.data() + part.size();
    int32_t first = 0;
    auto read = std::from_chars(part.data(), part_end, first);
    if (read.ec != std::errc() || first < 0) continue;
    int32_t last = first;
    if (read.ptr != part_end && *read.ptr == '-') {
      read = std::from_chars(read.ptr + 1, part_end, last);
      if (read.ec != std::errc()) continue;
    }
    constexpr int32_t kIndexesMax = 100'000;
    for (int32_t i = first; i <= last && i < kIndexesMax; ++i) out.insert(i);
  }
  return out;
}

std::string format_indexes(const std::set<int32_t>& indexes) {
  std::string out;
  for (auto it = indexes.begin(); it != indexes.end();) {
    const int32_t first = *it;
    int32_t last = first;
    while (++it != indexes.end() && *it == last + 1) last = *it;
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    if (last > first) out += (last == first + 1 ? "," : "-") + std::to_string(last);
  }
  return out;
}

JobView view_job(const kube::Job& job, const Value& status, const std::vector<Object>& pods) {
  JobView view;
  std::set<std::string> tracked;
  for (const Object& pod : pods) {
    if (has_finalizer(pod, kJobFinalizer)) tracked.emplace(pod.uid());
  }
  const Value& uncounted = status["uncountedTerminatedPods"];
  view.succeeded_counted = status["succeeded"].as_int();
  view.failed_counted = status["failed"].as_int();
  const auto known_succeeded =
      read_uncounted(uncounted["succeeded"], tracked, view.succeeded_uids, view.succeeded_counted);
  const auto known_failed =
      read_uncounted(uncounted["failed"], tracked, view.failed_uids, view.failed_counted);
  if (job.indexed) {
    view.completed_indexes = parse_indexes(status["completedIndexes"].as_string());
    std::erase_if(view.completed_indexes,
                  [&](int32_t index) { return index >= job.completions.value_or(0); });
  }
  for (const Object& pod : pods) {
    if (is_active(pod)) {
      view.active.push_back(pod);
      view.ready += is_ready(pod);
    } else if (pod.deleting() && !is_finished(pod)) {
      ++view.terminating;
    }
    if (tracked.contains(std::string(pod.uid()))) {
      count_end(job, pod, known_succeeded, known_failed, view);
    }
  }
  view.succeeded = job.indexed
                       ? static_cast<int64_t>(view.completed_indexes.size())
                       : view.succeeded_counted + static_cast<int64_t>(view.succeeded_uids.size());
  view.failed = view.failed_counted + static_cast<int64_t>(view.failed_uids.size());
  return view;
}

JobPlan plan_job(const kube::Job& job, const Value& status, const JobView& view,
                 const std::vector<Object>& pods, base::Time now) {
  JobPlan plan;
  if (job.meta.deleted) return plan;
  plan.end = find_end(job, status, view, pods, now);
  if (plan.end) {
    (plan.end->success ? plan.release_remove : plan.remove) = view.active;
    return plan;
  }
  plan_size(job, view, pods, now, plan);
  if (job.active_deadline_seconds && !job.suspend) {
    earliest(plan.again, job.started.value_or(now) + base::seconds(*job.active_deadline_seconds));
  }
  return plan;
}

Value job_pod(const Object& object, const kube::Job& job, const Kind& kind,
              std::optional<int32_t> index, base::Random& random) {
  Value pod = pod_from_template(job.pod_template, object, kind, random);
  Value& meta = pod.ref("metadata");
  meta.ref("finalizers").push_back(kJobFinalizer);
  if (!index) return pod;
  const std::string number = std::to_string(*index);
  const std::string stem = std::string(object.name()) + "-" + number;
  meta.set("generateName", stem + "-");
  meta.set("name", generated_name(stem, random));
  meta.ref("annotations").set(kCompletionIndex, number);
  meta.ref("labels").set(kCompletionIndex, number);
  Value& spec = pod.ref("spec");
  if (spec["hostname"].as_string().empty()) spec.set("hostname", stem);
  const Value variable = Value::object(
      {{"name", "JOB_COMPLETION_INDEX"},
       {"valueFrom",
        Value::object(
            {{"fieldRef", Value::object({{"apiVersion", "v1"},
                                         {"fieldPath", fmt::format("metadata.labels['{}']",
                                                                   kCompletionIndex)}})}})}});
  for (const char* list : {"initContainers", "containers"}) {
    if (!spec.contains(list)) continue;
    Value& containers = spec.ref(list);
    for (size_t i = 0; i < containers.size(); ++i) {
      containers.ref_at(i).ref("env").push_back(variable);
    }
  }
  return pod;
}

}  // namespace tessera::apiserver::controller
