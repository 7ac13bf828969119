#include "apiserver/controller_job.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

std::vector<Object> tracked_pods(std::vector<Object> pods) {
  std::erase_if(pods, [](const Object& pod) { return !has_finalizer(pod, kJobFinalizer); });
  return pods;
}

}  // namespace

JobController::JobController(Cluster& cluster, OwnerIndex& index)
    : cluster_(cluster),
      index_(index),
      jobs_(cluster.cache("batch", "Job")),
      pods_(cluster.cache("", "Pod")),
      queue_(cluster, "job",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }),
      strays_(cluster, "job-stray-pods",
              [this](const std::string& key, Done done) { sync_stray(key, std::move(done)); }) {
  jobs_.subscribe([this](const Object& before, const Object& after) { on_job(before, after); });
  pods_.subscribe([this](const Object& before, const Object& after) { on_pod(before, after); });
}

void JobController::start() {
  queue_.enqueue_all(jobs_);
  for (const auto& [key, pod] : pods_.objects()) check_tracked(pod);
}

void JobController::on_job(const Object& before, const Object& after) {
  queue_.enqueue((after ? after : before).key());
  if (after) return;
  histories_.erase(std::string(before.uid()));
  for (const Object& pod : index_.of_owner(before.uid())) check_tracked(pod);
}

void JobController::on_pod(const Object& before, const Object& after) {
  for (const Object* pod : {&before, &after}) {
    if (!*pod) continue;
    const Value& owner = controller_of(*pod);
    if (owner["kind"].as_string() == "Job") {
      queue_.enqueue(std::string(pod->ns()) + "/" + owner["name"].str());
    }
  }
  if (after) check_tracked(after);
}

void JobController::check_tracked(const Object& pod) {
  if (!has_finalizer(pod, kJobFinalizer)) return;
  const Value& owner = controller_of(pod);
  const Object job = jobs_.find(std::string(pod.ns()) + "/" + owner["name"].str());
  if (!job || job.uid() != owner["uid"].as_string()) strays_.enqueue(pod.key());
}

// The pod's job is gone, or it was let go of: nobody counts it.
void JobController::sync_stray(const std::string& key, Done done) {
  const Object pod = pods_.find(key);
  if (!pod || !has_finalizer(pod, kJobFinalizer)) return done({});
  const Value& owner = controller_of(pod);
  if (owner["kind"].as_string() != "Job") return release_pods({pod}, std::move(done));
  cluster_.get(jobs_, std::string(pod.ns()), owner["name"].str(),
               [this, pod, uid = owner["uid"].str(),
                done = std::move(done)](const base::Result<Object>& job) {
                 if (job && job->uid() == uid) return done({});
                 if (!job && job.error().code != base::Code::kNotFound) {
                   return done(base::error(job.error()));
                 }
                 release_pods({pod}, done);
               });
}

void JobController::release_pods(const std::vector<Object>& pods, Done done) {
  Value patch;
  patch.ref("metadata").set("$deleteFromPrimitiveList/finalizers", Value::array({kJobFinalizer}));
  std::vector<Action> actions;
  for (const Object& pod : pods) {
    actions.push_back([this, pod, patch](Done each) {
      cluster_.patch(pods_, pod, patch, {}, as_status(unless_gone(std::move(each))));
    });
  }
  run_all(std::move(actions), std::move(done));
}

void JobController::sync(const std::string& key, Done done) {
  const Object object = jobs_.find(key);
  if (!object) return done({});
  auto job = kube::decode_job(object);
  if (!job) {
    base::log_warn("job does not read name={} error={}", key, job.error().message);
    return done({});
  }
  if (job->managed_elsewhere()) return expire(object, *job, done);
  if (object.deleting() || job->finished()) return finish(object, *job, std::move(done));
  claim(object, *job, std::move(done));
}

// Takes over the pods that it selects and lets go of those that it does not select any more.
void JobController::claim(const Object& object, const kube::Job& job, Done done) {
  std::vector<Object> orphans = index_.orphans(object.ns());
  std::erase_if(orphans, [&](const Object& pod) {
    return pod.deleting() || !job.selector.matches(pod.metadata()["labels"]);
  });
  std::vector<Object> others = index_.of_owner(object.uid());
  std::erase_if(others,
                [&](const Object& pod) { return job.selector.matches(pod.metadata()["labels"]); });
  auto next = [this, object, job, done = std::move(done)](const base::Status& status) {
    if (!status) return done(status);
    carry_out(object, job, done);
  };
  adopt(
      cluster_, pods_, jobs_, object, std::move(orphans),
      [this, object, others = std::move(others), next](const base::Status& status) {
        if (!status) return next(status);
        release(cluster_, pods_, object, others, next);
      },
      kJobFinalizer);
}

// Nothing runs any more for a job that has ended or goes away; what is left of its pods is let go.
void JobController::finish(const Object& object, const kube::Job& job, Done done) {
  const std::vector<Object> pods = tracked_pods(index_.of_owner(object.uid()));
  histories_.erase(std::string(object.uid()));
  release_pods(pods, [this, object, job, done = std::move(done)](const base::Status& status) {
    if (!status) return done(status);
    expire(object, job, done);
  });
}

void JobController::expire(const Object& object, const kube::Job& job, const Done& done) {
  const auto expiry = job_expiry(job, object["status"]);
  if (!expiry) return done({});
  const base::Time now = cluster_.now();
  if (*expiry > now) {
    queue_.enqueue_after(object.key(), *expiry - now);
    return done({});
  }
  cluster_.remove(jobs_, object, Value::object({{"propagationPolicy", "Foreground"}}), done);
}

std::vector<Action> JobController::pod_actions(const Object& object, const kube::Job& job,
                                               const JobView& view, JobPlan plan) {
  std::vector<Value> made;
  for (const std::optional<int32_t>& index : plan.create) {
    const auto last = index ? view.delayed.find(*index) : view.delayed.end();
    made.push_back(job_pod(object, job, jobs_.kind(), index,
                           last == view.delayed.end() ? Object() : last->second,
                           cluster_.random()));
  }
  std::vector<Action> actions;
  actions.push_back([this, pods = tracked_pods(plan.release_remove)](Done each) {
    release_pods(pods, std::move(each));
  });
  plan.remove.insert(plan.remove.end(), plan.release_remove.begin(), plan.release_remove.end());
  actions.push_back([this, object, removed = std::move(plan.remove)](Done each) {
    delete_pods(cluster_, object, removed, std::move(each));
  });
  actions.push_back([this, object, made = std::move(made)](Done each) {
    create_pods(cluster_, object, made, std::move(each));
  });
  return actions;
}

void JobController::carry_out(const Object& object, const kube::Job& job, Done done) {
  const std::vector<Object> pods = index_.of_owner(object.uid());
  const JobView view = view_job(job, object["status"], pods);
  JobHistory& history = histories_[std::string(object.uid())];
  history.note(job, pods);
  JobPlan plan = plan_job(job, object["status"], view, pods, cluster_.now(), history);
  if (plan.again) {
    // Times in the API are whole seconds.
    queue_.enqueue_after(
        object.key(), std::max(*plan.again - cluster_.now(), base::Duration{}) + base::millis(10));
  }
  // The pods that go because the job ends give up no index.
  FailedIndexes decided = plan.end ? view.failed_indexes : std::nullopt;
  run_in_order(pod_actions(object, job, view, std::move(plan)),
               [this, key = object.key(), decided = std::move(decided), done = std::move(done)](
                   const base::Status& outcome) { report(key, decided, outcome, done); });
}

// Writes the status from what is there after the pods were made and deleted; then lets go of the pods that it names.
void JobController::report(const std::string& key, const FailedIndexes& decided,
                           const base::Status& outcome, const Done& done) {
  const Object object = jobs_.find(key);
  if (!object) return done({});
  const auto job = kube::decode_job(object);
  if (!job || object.deleting() || job->finished()) return done({});
  const std::vector<Object> pods = index_.of_owner(object.uid());
  JobView view = view_job(*job, object["status"], pods);
  if (decided) view.failed_indexes = decided;
  const base::Time now = cluster_.now();
  const JobPlan plan = plan_job(*job, object["status"], view, pods, now);
  if (plan.end && view.active.empty()) conclude(*job, *plan.end, pods, view);
  Value status = job_status(*job, object["status"], view, plan.end, now);
  tell(object, object["status"], status);
  write_status(cluster_, jobs_, object, std::move(status),
               [this, outcome, done, release = view.to_release](const base::Status& written) {
                 if (!written) return done(written);
                 release_pods(release, [outcome, done](base::Status released) {
                   done(outcome ? std::move(released) : outcome);
                 });
               });
}

void JobController::tell(const Object& object, const Value& before, const Value& after) {
  const auto came = [&](const char* type, std::string_view value) {
    return condition_of(after, type)["status"].as_string() == value &&
           condition_of(before, type)["status"].as_string() != value;
  };
  if (came("Complete", "True")) {
    const Value* wanted = object["spec"].find("completions");
    if (wanted != nullptr && after["succeeded"].as_int() > wanted->as_int()) {
      cluster_.events().warning(object, "TooManySucceededPods",
                                "Too many succeeded pods running after completion count reached");
    }
    cluster_.events().normal(object, "Completed", "Job completed");
  }
  if (came("Failed", "True")) {
    const Value& condition = condition_of(after, "Failed");
    cluster_.events().warning(object, condition["reason"].as_string(),
                              condition["message"].as_string());
  }
  if (came("Suspended", "True")) cluster_.events().normal(object, "Suspended", "Job suspended");
  if (came("Suspended", "False")) cluster_.events().normal(object, "Resumed", "Job resumed");
}

}  // namespace tessera::apiserver::controller
