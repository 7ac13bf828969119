#include "apiserver/controller_cron_job.h"

#include <algorithm>
#include <utility>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr base::Duration kLongestWait = base::seconds(60);

}  // namespace

CronJobController::CronJobController(Cluster& cluster)
    : cluster_(cluster),
      crons_(cluster.cache("batch", "CronJob")),
      jobs_(cluster.cache("batch", "Job")),
      index_(jobs_),
      queue_(cluster, "cronjob",
             [this](const std::string& key, Done done) { sync(key, std::move(done)); }) {
  crons_.subscribe(
      [this](const Object& before, const Object& after) { on_cron_job(before, after); });
  jobs_.subscribe([this](const Object& before, const Object& after) { on_job(before, after); });
}

void CronJobController::on_cron_job(const Object& before, const Object& after) {
  if (!after) {
    waits_.erase(before.key());
    return;
  }
  const bool new_times = before && cluster_.ready() &&
                         (before["spec"]["schedule"] != after["spec"]["schedule"] ||
                          before["spec"]["timeZone"] != after["spec"]["timeZone"]);
  if (!new_times) return queue_.enqueue(after.key());
  // What the new schedule would have had until now is not made up for.
  if (const auto at = next_cron_look(after, cluster_.now())) wait_until(after.key(), *at);
}

void CronJobController::on_job(const Object& before, const Object& after) {
  for (const Object* job : {&before, &after}) {
    if (!*job) continue;
    const Value& owner = controller_of(*job);
    if (owner["kind"].as_string() == "CronJob") {
      queue_.enqueue(std::string(job->ns()) + "/" + owner["name"].str());
    }
  }
}

void CronJobController::wait_until(const std::string& key, base::Time until) {
  waits_[key] = {until, ++tickets_};
  wait_on(key, tickets_);
}

void CronJobController::wait_on(const std::string& key, uint64_t ticket) {
  const auto wait = waits_.find(key);
  if (wait == waits_.end() || wait->second.ticket != ticket) return;
  const base::Duration left = wait->second.until - cluster_.now();
  if (left <= base::Duration{}) {
    waits_.erase(wait);
    return queue_.enqueue(key);
  }
  cluster_.after(std::min(left, kLongestWait), [this, key, ticket] { wait_on(key, ticket); });
}

void CronJobController::tell(const Object& cron, const CronEvent& event) {
  if (event.warning) {
    cluster_.events().warning(cron, event.reason, event.message);
  } else {
    cluster_.events().normal(cron, event.reason, event.message);
  }
}

void CronJobController::sync(const std::string& key, Done done) {
  const Object cron = crons_.find(key);
  if (!cron) return done({});
  std::vector<Value> missing;
  for (const Value& job : cron.get("status", "active").items()) {
    const Object known = jobs_.find(std::string(cron.ns()) + "/" + job["name"].str());
    if (!known || known.uid() != job["uid"].as_string()) missing.push_back(job);
  }
  look_for_missing(cron, std::move(missing), {}, std::move(done));
}

// The cache may be behind: the API has the last word.
void CronJobController::look_for_missing(const Object& cron, std::vector<Value> missing,
                                         std::set<std::string> gone, Done done) {
  if (missing.empty()) return carry_out(cron, gone, std::move(done));
  const Value job = missing.back();
  missing.pop_back();
  cluster_.get(jobs_, std::string(cron.ns()), job["name"].str(),
               [this, cron, job, missing = std::move(missing), gone = std::move(gone),
                done = std::move(done)](const base::Result<Object>& found) mutable {
                 if (!found && found.error().code != base::Code::kNotFound) {
                   return done(base::error(found.error()));
                 }
                 if (!found || found->uid() != job["uid"].as_string()) {
                   gone.insert(job["uid"].str());
                 }
                 look_for_missing(cron, std::move(missing), std::move(gone), std::move(done));
               });
}

Action CronJobController::remove_job(const TurnPtr& turn, const Object& job) {
  return [this, turn, job](const Done& done) {
    cluster_.remove(
        jobs_, job, Value::object({{"propagationPolicy", "Background"}}),
        [this, turn, job, done](base::Status status) {
          if (!status) {
            tell(turn->cron, {true, "FailedDelete", "Deleted job: " + status.error().message});
            return done(std::move(status));
          }
          drop_active(turn->plan.status, job.uid());
          tell(turn->cron, {false, "SuccessfulDelete", fmt::format("Deleted job {}", job.name())});
          done({});
        });
  };
}

Action CronJobController::replace_job(const TurnPtr& turn, const Value& reference) {
  return [this, turn, reference](const Done& done) {
    cluster_.get(jobs_, std::string(turn->cron.ns()), reference["name"].str(),
                 [this, turn, done](const base::Result<Object>& job) {
                   if (job) return remove_job(turn, *job)(done);
                   tell(turn->cron, {true, "FailedGet", "Get job: " + job.error().message});
                   done(base::error(job.error()));
                 });
  };
}

Action CronJobController::start_job(const TurnPtr& turn) {
  return [this, turn](const Done& done) {
    cluster_.create(
        jobs_, cron_job_of(turn->cron, crons_.kind(), *turn->plan.start),
        [this, turn, done](const base::Result<Object>& made) { take_made(turn, made, done); });
  };
}

void CronJobController::take_made(const TurnPtr& turn, const base::Result<Object>& made,
                                  const Done& done) {
  const base::Time time = *turn->plan.start;
  if (made) {
    tell(turn->cron, {false, "SuccessfulCreate", fmt::format("Created job {}", made->name())});
    add_active(turn->plan.status, *made, time);
    return done({});
  }
  if (made.error().code == base::Code::kAlreadyExists) {
    // We made it and could not write it down; or it is another's, who looks after it.
    const Object job =
        jobs_.find(std::string(turn->cron.ns()) + "/" + cron_job_name(turn->cron, time));
    const bool ours = job && controller_of(job)["uid"].as_string() == turn->cron.uid();
    if (ours && !is_active_job(turn->plan.status, job.uid())) {
      add_active(turn->plan.status, job, time);
    }
    return done({});
  }
  if (!is_namespace_terminating(made.error())) {
    tell(turn->cron, {true, "FailedCreate", "Error creating job: " + made.error().message});
  }
  done(base::error(made.error()));
}

void CronJobController::carry_out(const Object& cron, const std::set<std::string>& gone,
                                  Done done) {
  const auto turn = std::make_shared<Turn>();
  turn->cron = cron;
  turn->plan = plan_cron_job(cron, index_.of_owner(cron.uid()), gone, cluster_.now());
  const CronPlan& plan = turn->plan;
  for (const CronEvent& event : plan.events) tell(cron, event);
  if (plan.look_at) wait_until(cron.key(), *plan.look_at);
  std::vector<Action> actions;
  for (const Object& job : plan.expired) {
    // One that cannot be deleted now holds up nothing.
    actions.push_back([remove = remove_job(turn, job)](const Done& each) {
      remove([each](const base::Status&) { each({}); });
    });
  }
  for (const Value& job : plan.replace) actions.push_back(replace_job(turn, job));
  if (plan.start) actions.push_back(start_job(turn));
  run_in_order(std::move(actions), [this, turn, done = std::move(done)](base::Status outcome) {
    write_status(cluster_, crons_, turn->cron, turn->plan.status,
                 [outcome = std::move(outcome), done](base::Status written) {
                   done(outcome ? std::move(written) : outcome);
                 });
  });
}

}  // namespace tessera::apiserver::controller
