// The CronJob controller: makes jobs at their times, as controller_cron_job_plan.h says.
//
// Shape:   each CronJob is looked at when it or one of its jobs changes, and when its next time has come. Timers run on the
//          monotonic clock, times on the wall clock: no wait is longer than a minute, so that a jump forward is seen.
// Threads: the controllers' executor.
// Source:  Kubernetes 1.36 pkg/controller/cronjob (behaviour).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "apiserver/controller_cron_job_plan.h"
#include "apiserver/controllers_pod_control.h"

namespace tessera::apiserver::controller {

class CronJobController {
 public:
  explicit CronJobController(Cluster& cluster);
  void start() { queue_.enqueue_all(crons_); }

 private:
  // One CronJob while its plan is carried out.
  struct Turn {
    kube::Object cron;
    CronPlan plan;
  };
  using TurnPtr = std::shared_ptr<Turn>;

  void on_cron_job(const kube::Object& before, const kube::Object& after);
  void on_job(const kube::Object& before, const kube::Object& after);
  void sync(const std::string& key, Done done);
  void look_for_missing(const kube::Object& cron, std::vector<json::Value> missing,
                        std::set<std::string> gone, Done done);
  void carry_out(const kube::Object& cron, const std::set<std::string>& gone, Done done);
  Action remove_job(const TurnPtr& turn, const kube::Object& job);
  Action replace_job(const TurnPtr& turn, const json::Value& reference);
  Action start_job(const TurnPtr& turn);
  void take_made(const TurnPtr& turn, const base::Result<kube::Object>& made, const Done& done);
  void tell(const kube::Object& cron, const CronEvent& event);

  struct Wait {
    base::Time until;
    uint64_t ticket = 0;
  };
  void wait_until(const std::string& key, base::Time until);
  void wait_on(const std::string& key, uint64_t ticket);

  Cluster& cluster_;
  Cache& crons_;
  Cache& jobs_;
  OwnerIndex index_;
  Reconciler queue_;
  std::map<std::string, Wait> waits_;
  uint64_t tickets_ = 0;
};

}  // namespace tessera::apiserver::controller
