// What a CronJob does next: pure.
//
// Shape:   one look finds the job to start, if any: that of the most recent time which is due, missed ones before it are
//          given up. A job is named after its CronJob and the minute, so that no time is served twice, however often this
//          looks and whatever the clock does; a time at or before status.lastScheduleTime is past for good.
// Units:   wall time, whole seconds; the zone of spec.timeZone, or UTC.
// Source:  Kubernetes 1.36 pkg/controller/cronjob (behaviour).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apiserver/controllers_pods.h"

namespace tessera::apiserver::controller {

struct CronEvent {
  bool warning = false;
  std::string reason;
  std::string message;
};

struct CronPlan {
  std::vector<CronEvent> events;
  std::vector<kube::Object> expired;  // past the limits of history
  std::vector<json::Value> replace;   // references of status.active that give way to the new job
  std::optional<base::Time> start;    // the time whose job is made now
  json::Value status;                 // without what is still to be done
  std::optional<base::Time> look_at;  // nothing: only a change of some object brings news
};

// `jobs`: those it controls. `gone`: uids of status.active that are known to exist no more.
CronPlan plan_cron_job(const kube::Object& cron, const std::vector<kube::Object>& jobs,
                       const std::set<std::string>& gone, base::Time now);
// When to look next, without starting anything: for a schedule that has just changed.
std::optional<base::Time> next_cron_look(const kube::Object& cron, base::Time now);
json::Value cron_job_of(const kube::Object& cron, const Kind& kind, base::Time scheduled);
std::string cron_job_name(const kube::Object& cron, base::Time scheduled);
void add_active(json::Value& status, const kube::Object& job, base::Time scheduled);
void drop_active(json::Value& status, std::string_view uid);
bool is_active_job(const json::Value& status, std::string_view uid);

}  // namespace tessera::apiserver::controller
