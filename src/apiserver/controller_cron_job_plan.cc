#include "apiserver/controller_cron_job_plan.h"

#include <algorithm>
#include <array>

#include "apiserver/cron_schedule.h"

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kManyMissed = 100;
// Clocks of the parts of a cluster differ a little.
constexpr base::Duration kLookDelay = base::millis(100);

base::Time whole(int64_t seconds) {
  return {seconds * kSecond};
}
int64_t seconds_of(base::Time time) {
  return time.ns / kSecond - (time.ns % kSecond < 0 ? 1 : 0);
}

std::optional<base::Time> time_at(const Value& text) {
  const auto time = base::parse_rfc3339(text.as_string());
  return time ? std::optional<base::Time>(*time) : std::nullopt;
}

// "Mon, 02 Jan 2006 15:04:05 +0000".
std::string to_rfc1123(base::Time time) {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const LocalTime t = TimeZone::utc().local(seconds_of(time));
  return fmt::format(
      "{}, {:02} {} {:04} {:02}:{:02}:{:02} +0000", kDays.at(static_cast<size_t>(t.weekday())),
      t.day, kMonths.at(static_cast<size_t>(t.month - 1)), t.year, t.hour, t.minute, t.second);
}

// "2026-01-01T06:30:00+05:30".
std::string to_rfc3339_in(base::Time time, const TimeZone& zone) {
  const int64_t at = seconds_of(time);
  const int32_t offset = zone.offset_at(at);
  std::string text = base::to_rfc3339(whole(at + offset));
  if (offset == 0) return text;
  const int32_t minutes = std::abs(offset) / 60;
  text.back() = offset < 0 ? '-' : '+';
  return text + fmt::format("{:02}:{:02}", minutes / 60, minutes % 60);
}

// The end of a job: "Complete", "Failed", or nothing yet.
std::string_view end_of(const Object& job) {
  for (const Value& condition : job.get("status", "conditions").items()) {
    const std::string_view type = condition["type"].as_string();
    const bool last = type == "Complete" || type == "Failed";
    if (last && condition["status"].as_string() == "True") return type;
  }
  return {};
}

struct Timetable {
  CronSchedule schedule;
  const TimeZone* zone = nullptr;
  std::optional<base::Time> next(base::Time time) const { return schedule.next(time, *zone); }
};

const TimeZone* zone_of(const Object& cron) {
  const Value* name = cron["spec"].find("timeZone");
  return name == nullptr ? &TimeZone::utc() : TimeZone::find(name->as_string());
}

std::optional<base::Duration> starting_deadline(const Object& cron) {
  const Value* deadline = cron["spec"].find("startingDeadlineSeconds");
  if (deadline == nullptr) return std::nullopt;
  constexpr int64_t kCenturySeconds = 100LL * 366 * 86'400;
  return base::seconds(std::clamp<int64_t>(deadline->as_int(), 0, kCenturySeconds));
}

struct Due {
  base::Time earliest;             // the last time served, or the making of the CronJob
  std::optional<base::Time> time;  // the most recent one that is due
  int64_t missed = 0;
  bool never = false;  // the schedule matches no date
};

// Guesses from the first two times how many have passed, and looks at the last of them closely.
Due find_due(const Object& cron, const Timetable& table, base::Time now, bool heed_deadline) {
  Due due;
  const auto created = time_at(cron.metadata()["creationTimestamp"]);
  const auto served = time_at(cron.get("status", "lastScheduleTime"));
  due.earliest = served ? *served : created.value_or(now);
  const auto deadline = starting_deadline(cron);
  if (heed_deadline && deadline) due.earliest = std::max(due.earliest, now - *deadline);
  const auto first = table.next(due.earliest);
  const auto second = first ? table.next(*first) : std::nullopt;
  due.never = !first;
  if (!first || now < *first) return due;
  if (!second || now < *second) {
    due.time = first;
    return due;
  }
  const int64_t step = std::max<int64_t>(1, seconds_of(*second) - seconds_of(*first));
  due.missed = (seconds_of(now) - seconds_of(*first)) / step + 1;
  const int64_t from = seconds_of(*first) + (due.missed - 2) * step;
  for (auto at = table.next(whole(from)); at && *at <= now; at = table.next(*at)) due.time = at;
  return due;
}

std::optional<base::Time> look_after(const Object& cron, const Timetable& table, base::Time now) {
  const Due due = find_due(cron, table, now, false);
  base::Time from = now;
  if (!due.never) from = due.time.value_or(due.missed == 0 ? due.earliest : now);
  const auto next = table.next(from);
  return next ? std::optional<base::Time>(*next + kLookDelay) : std::nullopt;
}

std::vector<Object> past_limit(std::vector<Object> jobs, const Value* limit) {
  if (limit == nullptr) return {};
  const auto keep = static_cast<size_t>(std::max<int64_t>(0, limit->as_int()));
  if (jobs.size() <= keep) return {};
  std::ranges::sort(jobs, [](const Object& a, const Object& b) {
    const auto x = time_at(a.get("status", "startTime"));
    const auto y = time_at(b.get("status", "startTime"));
    if (x.has_value() != y.has_value()) return x.has_value();
    return x != y ? *x < *y : a.name() < b.name();
  });
  jobs.resize(jobs.size() - keep);
  return jobs;
}

void plan_history(const Object& cron, const std::vector<Object>& jobs, CronPlan& plan) {
  const auto add = [&](std::string_view end, const char* limit) {
    std::vector<Object> ended;
    std::ranges::copy_if(jobs, std::back_inserter(ended),
                         [&](const Object& job) { return end_of(job) == end && !job.deleting(); });
    std::vector<Object> old = past_limit(std::move(ended), cron["spec"].find(limit));
    plan.expired.insert(plan.expired.end(), old.begin(), old.end());
  };
  add("Complete", "successfulJobsHistoryLimit");
  add("Failed", "failedJobsHistoryLimit");
}

// Ended jobs leave the list of active ones.
void plan_ends(const std::vector<Object>& jobs, CronPlan& plan) {
  for (const Object& job : jobs) {
    const std::string_view end = end_of(job);
    const bool listed = is_active_job(plan.status, job.uid());
    if (end.empty()) {
      if (listed) continue;
      plan.events.push_back(
          {true, "UnexpectedJob",
           fmt::format("Saw a job that the controller did not create or forgot: {}", job.name())});
      continue;
    }
    if (listed) {
      drop_active(plan.status, job.uid());
      plan.events.push_back({false, "SawCompletedJob",
                             fmt::format("Saw completed job: {}, condition: {}", job.name(), end)});
    }
    const Value& completed = job.get("status", "completionTime");
    const auto at = time_at(completed);
    const auto before = time_at(plan.status["lastSuccessfulTime"]);
    if (end == "Complete" && at && (!before || *at > *before)) {
      plan.status.set("lastSuccessfulTime", completed);
    }
  }
}

void plan_gone(const std::set<std::string>& gone, CronPlan& plan) {
  const Value active = plan.status["active"];
  for (const Value& job : active.items()) {
    if (!gone.contains(job["uid"].str())) continue;
    plan.events.push_back(
        {false, "MissingJob", fmt::format("Active job went missing: {}", job["name"].as_string())});
    drop_active(plan.status, job["uid"].as_string());
  }
}

std::optional<Timetable> timetable_of(const Object& cron, CronPlan& plan) {
  const Value& spec = cron["spec"];
  const TimeZone* zone = zone_of(cron);
  if (zone == nullptr) {
    const std::string_view name = spec["timeZone"].as_string();
    plan.events.push_back(
        {true, "UnknownTimeZone",
         fmt::format("invalid timeZone: \"{}\": unknown time zone {}", name, name)});
    return std::nullopt;
  }
  if (spec["suspend"].as_bool()) return std::nullopt;
  auto schedule = CronSchedule::parse(spec["schedule"].as_string());
  if (!schedule) {
    plan.events.push_back({true, "UnparseableSchedule",
                           fmt::format("unparseable schedule: \"{}\" : {}",
                                       spec["schedule"].as_string(), schedule.error().message)});
    return std::nullopt;
  }
  return Timetable{*schedule, zone};
}

// What there is to say of the time that is due; true where its job is to be started.
bool may_start(const Object& cron, base::Time time, base::Time now, CronPlan& plan) {
  const Value& spec = cron["spec"];
  const auto deadline = starting_deadline(cron);
  if (deadline && now - time > *deadline) {
    plan.events.push_back(
        {true, "MissSchedule", "Missed scheduled time to start a job: " + to_rfc1123(time)});
    return false;
  }
  const std::string name = cron_job_name(cron, time);
  const auto active = plan.status["active"].items();
  const bool named = std::ranges::any_of(
      active, [&](const Value& job) { return job["name"].as_string() == name; });
  if (named || time_at(plan.status["lastScheduleTime"]) == time) return false;
  if (spec["concurrencyPolicy"].as_string() == "Forbid" && !active.empty()) {
    plan.events.push_back({false, "JobAlreadyActive",
                           "Not starting job because prior execution is running and concurrency "
                           "policy is Forbid"});
    return false;
  }
  if (spec["concurrencyPolicy"].as_string() == "Replace") {
    plan.replace.assign(active.begin(), active.end());
  }
  return true;
}

void plan_start(const Object& cron, base::Time now, CronPlan& plan) {
  const auto table = timetable_of(cron, plan);
  if (!table) return;
  const Due due = find_due(cron, *table, now, true);
  if (due.never) {
    plan.events.push_back({true, "InvalidSchedule",
                           fmt::format("invalid schedule: {} : time difference between two "
                                       "schedules is less than 1 second",
                                       cron.get("spec", "schedule").as_string())});
    return;
  }
  plan.look_at = look_after(cron, *table, now);
  if (!due.time) return;
  if (due.missed > kManyMissed) {
    plan.events.push_back({true, "TooManyMissedTimes",
                           "too many missed start times. Set or decrease "
                           ".spec.startingDeadlineSeconds or check clock skew"});
  }
  if (may_start(cron, *due.time, now, plan)) plan.start = due.time;
}

}  // namespace

bool is_active_job(const Value& status, std::string_view uid) {
  return std::ranges::any_of(status["active"].items(),
                             [&](const Value& job) { return job["uid"].as_string() == uid; });
}

void drop_active(Value& status, std::string_view uid) {
  Value kept = Value::array();
  for (const Value& job : status["active"].items()) {
    if (job["uid"].as_string() != uid) kept.push_back(job);
  }
  if (kept.empty()) {
    status.erase("active");
  } else {
    status.set("active", std::move(kept));
  }
}

void add_active(Value& status, const Object& job, base::Time scheduled) {
  status.ref("active").push_back(Value::object({{"apiVersion", "batch/v1"},
                                                {"kind", "Job"},
                                                {"namespace", job.ns()},
                                                {"name", job.name()},
                                                {"uid", job.uid()},
                                                {"resourceVersion", job.resource_version()}}));
  status.set("lastScheduleTime", base::to_rfc3339(scheduled));
}

std::string cron_job_name(const Object& cron, base::Time scheduled) {
  return fmt::format("{}-{}", cron.name(), seconds_of(scheduled) / 60);
}

Value cron_job_of(const Object& cron, const Kind& kind, base::Time scheduled) {
  const Value& pattern = cron["spec"]["jobTemplate"];
  Value job = Value::object({{"apiVersion", "batch/v1"}, {"kind", "Job"}});
  Value& meta = job.ref("metadata");
  for (const char* field : {"labels", "annotations"}) {
    const Value& value = pattern["metadata"][field];
    if (!value.empty()) meta.set(field, value);
  }
  const TimeZone* zone = zone_of(cron);
  meta.ref("annotations")
      .set("batch.kubernetes.io/cronjob-scheduled-timestamp",
           to_rfc3339_in(scheduled, zone != nullptr ? *zone : TimeZone::utc()));
  meta.set("name", cron_job_name(cron, scheduled));
  meta.set("namespace", cron.ns());
  meta.set("ownerReferences", Value::array({controller_reference(cron, kind)}));
  job.set("spec", pattern["spec"]);
  return job;
}

std::optional<base::Time> next_cron_look(const Object& cron, base::Time now) {
  CronPlan unused;
  const auto table = timetable_of(cron, unused);
  return table ? look_after(cron, *table, now) : std::nullopt;
}

CronPlan plan_cron_job(const Object& cron, const std::vector<Object>& jobs,
                       const std::set<std::string>& gone, base::Time now) {
  CronPlan plan;
  plan.status = cron["status"];
  plan_history(cron, jobs, plan);
  plan_ends(jobs, plan);
  plan_gone(gone, plan);
  if (!cron.deleting()) plan_start(cron, now, plan);
  return plan;
}

}  // namespace tessera::apiserver::controller
