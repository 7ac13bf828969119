#include "apiserver/controller_job_plan.h"

#include <algorithm>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

// As many pods are made or deleted at once.
constexpr size_t kBurst = 500;

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

JobEnd failure(std::string_view reason, std::string_view message) {
  return {false, std::string(reason), std::string(message)};
}

std::optional<JobEnd> failed_by_policy(const kube::Job& job, const std::vector<Object>& pods) {
  if (!job.failure_policy.is_object()) return std::nullopt;
  for (const Object& pod : pods) {
    if (!pod_failed(job, pod)) continue;
    const std::string why = match_failure(job, pod).fail_job;
    if (!why.empty()) return failure("PodFailurePolicy", why);
  }
  return std::nullopt;
}

std::optional<JobEnd> failed_by_indexes(const kube::Job& job, const JobView& view) {
  if (!view.failed_indexes || view.failed_indexes->empty()) return std::nullopt;
  const size_t failed = view.failed_indexes->size();
  if (job.max_failed_indexes && failed > static_cast<size_t>(*job.max_failed_indexes)) {
    return failure("MaxFailedIndexesExceeded",
                   "Job has exceeded the specified maximal number of failed indexes");
  }
  const auto all = static_cast<size_t>(job.completions.value_or(0));
  if (failed + view.completed_indexes.size() < all) return std::nullopt;
  return failure("FailedIndexes", "Job has failed indexes");
}

// Failures before successes; what was decided once stays.
std::optional<JobEnd> find_end(const kube::Job& job, const Value& status, const JobView& view,
                               const std::vector<Object>& pods, base::Time now) {
  if (auto end = decided_end(status)) return end;
  if (auto end = failed_by_policy(job, pods)) return end;
  if (view.failed > job.backoff_limit || past_restart_limit(job, pods)) {
    return failure("BackoffLimitExceeded", "Job has reached the specified backoff limit");
  }
  if (job.active_deadline_seconds && job.started && !job.suspend &&
      *job.started + base::seconds(*job.active_deadline_seconds) <= now) {
    return failure("DeadlineExceeded", "Job was active longer than specified deadline");
  }
  if (auto end = failed_by_indexes(job, view)) return end;
  if (job.indexed) {
    if (auto met = match_success(job, view.completed_indexes)) {
      return JobEnd{true, "SuccessPolicy", *met};
    }
  }
  const bool complete = job.completions ? view.succeeded >= *job.completions
                                        : view.succeeded > 0 && view.active.empty();
  if (!complete) return std::nullopt;
  return JobEnd{true, "CompletionsReached", "Reached expected number of succeeded pods"};
}

size_t wanted_active(const kube::Job& job, const JobView& view) {
  const auto parallel = static_cast<size_t>(std::max(job.parallelism, 0));
  if (job.suspend) return 0;
  if (!job.completions) return view.succeeded > 0 ? view.active.size() : parallel;
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
    const bool needed = index_counts(job, active[i]) && !view.completed_indexes.contains(*index) &&
                        used.insert(*index).second;
    (needed ? kept : surplus).push_back(active[i]);
  }
  active = std::move(kept);
  return surplus;
}

void earliest(std::optional<base::Time>& at, base::Time time) {
  if (!at || time < *at) at = time;
}

// The first indexes that are neither done nor given up nor in work.
std::vector<int32_t> pending_indexes(const kube::Job& job, const JobView& view,
                                     const std::set<int32_t>& used, size_t count) {
  std::vector<int32_t> out;
  for (int32_t i = 0; i < job.completions.value_or(0) && out.size() < count; ++i) {
    const bool failed = view.failed_indexes && view.failed_indexes->contains(i);
    if (!failed && !used.contains(i) && !view.completed_indexes.contains(i)) out.push_back(i);
  }
  return out;
}

// Each index waits for itself.
void create_by_index(const kube::Job& job, const JobView& view, const std::set<int32_t>& used,
                     size_t count, base::Time now, JobPlan& plan) {
  for (const int32_t index : pending_indexes(job, view, used, count)) {
    const auto last = view.delayed.find(index);
    const base::Time retry = last == view.delayed.end()
                                 ? base::Time{}
                                 : retry_after(int64_t{failures_before(last->second).all()} + 1,
                                               finished_at(last->second));
    if (retry > now) {
      earliest(plan.again, retry);
    } else {
      plan.create.emplace_back(index);
    }
  }
}

void plan_size(const kube::Job& job, const JobView& view, const std::vector<Object>& pods,
               base::Time now, const JobHistory& history, JobPlan& plan) {
  std::vector<Object> active = view.active;
  std::set<int32_t> used;
  if (job.indexed) plan.release_remove = take_surplus_indexes(job, view, active, used);
  const size_t wanted = wanted_active(job, view);
  if (active.size() > wanted) {
    sort_for_deletion(active);
    active.resize(std::min(active.size() - wanted, kBurst));
    plan.release_remove.insert(plan.release_remove.end(), active.begin(), active.end());
  }
  // What is too many goes first.
  if (!plan.release_remove.empty()) return;
  size_t taken = active.size();
  if (job.only_replace_failed) {
    taken += static_cast<size_t>(view.terminating);
    for (const Object& pod : pods) {
      const auto index = index_of(pod);
      if (index && pod.deleting() && !is_finished(pod)) used.insert(*index);
    }
  }
  if (taken >= wanted) return;
  const size_t count = std::min(wanted - taken, kBurst);
  if (job.backoff_limit_per_index) return create_by_index(job, view, used, count, now, plan);
  if (const base::Time retry = history.retry_at(); retry > now) {
    return earliest(plan.again, retry);
  }
  if (!job.indexed) {
    plan.create.resize(count);
    return;
  }
  for (const int32_t index : pending_indexes(job, view, used, count)) {
    plan.create.emplace_back(index);
  }
}

}  // namespace

JobPlan plan_job(const kube::Job& job, const Value& status, const JobView& view,
                 const std::vector<Object>& pods, base::Time now, JobHistory history) {
  JobPlan plan;
  if (job.meta.deleted) return plan;
  plan.end = find_end(job, status, view, pods, now);
  if (plan.end) {
    (plan.end->success ? plan.release_remove : plan.remove) = view.active;
    return plan;
  }
  history.note(job, pods);
  plan_size(job, view, pods, now, history, plan);
  if (job.active_deadline_seconds && !job.suspend) {
    earliest(plan.again, job.started.value_or(now) + base::seconds(*job.active_deadline_seconds));
  }
  return plan;
}

namespace {

void tell_index(Value& spec) {
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
      const auto env = containers.at(i)["env"].items();
      const bool has = std::ranges::any_of(
          env, [&](const Value& each) { return each["name"] == variable["name"]; });
      if (!has) containers.ref_at(i).ref("env").push_back(variable);
    }
  }
}

}  // namespace

Value job_pod(const Object& object, const kube::Job& job, const Kind& kind,
              std::optional<int32_t> index, const Object& replaced, base::Random& random) {
  Value pod = pod_from_template(job.pod_template, object, kind, random);
  Value& meta = pod.ref("metadata");
  meta.ref("finalizers").push_back(kJobFinalizer);
  if (!index) return pod;
  const std::string number = std::to_string(*index);
  // The end of a long name gives way to the index.
  constexpr size_t kPrefixMax = 58;
  const std::string end = "-" + number + "-";
  const std::string name(object.name());
  const std::string prefix = name.size() + end.size() > kPrefixMax
                                 ? name.substr(0, kPrefixMax - end.size()) + end
                                 : name + end;
  meta.set("generateName", prefix);
  meta.set("name", prefix + random.suffix(5));
  meta.ref("annotations").set(kCompletionIndex, number);
  meta.ref("labels").set(kCompletionIndex, number);
  if (job.backoff_limit_per_index) {
    annotate_failures(meta.ref("annotations"),
                      replaced ? failures_after(job, replaced) : IndexFailures{});
  }
  Value& spec = pod.ref("spec");
  spec.set("hostname", name + "-" + number);
  tell_index(spec);
  return pod;
}

}  // namespace tessera::apiserver::controller
