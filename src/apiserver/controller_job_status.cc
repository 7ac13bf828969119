// The status of a Job.
#include <utility>

#include "apiserver/controller_job_plan.h"

namespace tessera::apiserver::controller {

using json::Value;

namespace {

Value strings(const std::vector<std::string>& items) {
  Value out = Value::array();
  for (const std::string& item : items) out.push_back(item);
  return out;
}

// Unlike Deployments, Jobs also say when they last looked.
void add_condition(Value& status, std::string_view type, std::string_view value,
                   std::string_view reason, std::string_view message, base::Time now) {
  if (condition_of(status, type)["status"].as_string() == value) return;
  set_condition(status,
                Value::object({{"type", type},
                               {"status", value},
                               {"reason", reason},
                               {"message", message},
                               {"lastProbeTime", base::to_rfc3339(now)}}),
                now);
}

void set_suspended(const kube::Job& job, Value& status, base::Time now) {
  const std::string_view is = condition_of(status, "Suspended")["status"].as_string();
  if (job.suspend) {
    add_condition(status, "Suspended", "True", "JobSuspended", "Job suspended", now);
    status.erase("startTime");
    return;
  }
  if (is == "True") {
    add_condition(status, "Suspended", "False", "JobResumed", "Job resumed", now);
  }
  if (!status.contains("startTime")) status.set("startTime", base::to_rfc3339(now));
}

void set_counts(const kube::Job& job, const JobView& view, Value& status) {
  const auto put = [&](const char* field, int64_t value) {
    if (value != 0) {
      status.set(field, value);
    } else {
      status.erase(field);
    }
  };
  put("active", static_cast<int64_t>(view.active.size()));
  put("failed", view.failed_counted);
  put("succeeded", job.indexed ? view.succeeded : view.succeeded_counted);
  status.set("ready", view.ready);
  status.set("terminating", view.terminating);
  Value uncounted = Value::object();
  if (!view.succeeded_uids.empty()) uncounted.set("succeeded", strings(view.succeeded_uids));
  if (!view.failed_uids.empty()) uncounted.set("failed", strings(view.failed_uids));
  status.set("uncountedTerminatedPods", std::move(uncounted));
  if (!job.indexed) return;
  if (view.completed_indexes.empty()) {
    status.erase("completedIndexes");
  } else {
    status.set("completedIndexes", format_indexes(view.completed_indexes));
  }
  if (view.failed_indexes) {
    status.set("failedIndexes", format_indexes(*view.failed_indexes));
  } else {
    status.erase("failedIndexes");
  }
}

}  // namespace

Value job_status(const kube::Job& job, const Value& before, const JobView& view,
                 const std::optional<JobEnd>& end, base::Time now) {
  Value status = before;
  set_counts(job, view, status);
  if (!end) {
    set_suspended(job, status, now);
    return status;
  }
  if (!status.contains("startTime") && !job.suspend) {
    status.set("startTime", base::to_rfc3339(now));
  }
  add_condition(status, end->success ? "SuccessCriteriaMet" : "FailureTarget", "True", end->reason,
                end->message, now);
  // The last word waits until every pod is counted and none runs.
  if (!view.active.empty() || view.terminating > 0 || !view.to_release.empty() ||
      !status["uncountedTerminatedPods"].empty() || job.finished()) {
    return status;
  }
  add_condition(status, end->success ? "Complete" : "Failed", "True", end->reason, end->message,
                now);
  if (end->success) status.set("completionTime", base::to_rfc3339(now));
  return status;
}

std::optional<base::Time> job_expiry(const kube::Job& job, const Value& status) {
  if (!job.ttl_seconds_after_finished || job.meta.deleted) return std::nullopt;
  for (const char* type : {"Complete", "Failed"}) {
    const Value& condition = condition_of(status, type);
    if (condition["status"].as_string() != "True") continue;
    const auto at = base::parse_rfc3339(condition["lastTransitionTime"].as_string());
    if (at) return *at + base::seconds(*job.ttl_seconds_after_finished);
  }
  return std::nullopt;
}

}  // namespace tessera::apiserver::controller
