#include "apiserver/validate_cron_job.h"

#include <algorithm>

#include "apiserver/cron_schedule.h"
#include "apiserver/time_zones.h"
#include "apiserver/validate_container.h"
#include "apiserver/validate_meta.h"
#include "apiserver/validate_workload.h"

namespace tessera::apiserver {
namespace {

using json::Value;

// The controller appends 11 characters to make the name of a job, which has at most 63.
constexpr size_t kNameBytesMax = 52;

void validate_schedule(const Value& schedule, const Path& at, FieldErrors& errors) {
  if (schedule.as_string().empty()) {
    errors.required(at.text());
    return;
  }
  auto parsed = CronSchedule::parse(schedule.as_string());
  if (!parsed) errors.invalid(at.text(), schedule, parsed.error().message);
  if (schedule.as_string().find("TZ") != std::string_view::npos) {
    errors.invalid(at.text(), schedule,
                   "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  }
}

// "Local" in any letters, which would be the server's own.
bool is_local(std::string_view name) {
  constexpr std::string_view kLocal = "local";
  return std::ranges::equal(name, kLocal, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
}

void validate_zone(const Value* zone, const Path& at, FieldErrors& errors) {
  if (zone == nullptr) return;
  const std::string_view name = zone->as_string();
  if (name.empty()) {
    errors.invalid(at.text(), *zone, "timeZone must be nil or non-empty string");
  } else if (is_local(name)) {
    errors.invalid(at.text(), *zone,
                   "timeZone must be an explicit time zone as defined in "
                   "https://www.iana.org/time-zones");
  } else if (!is_time_zone(name)) {
    errors.invalid(at.text(), *zone, fmt::format("unknown time zone {}", name));
  }
}

void validate_template(const Value& job, const Path& at, FieldErrors& errors) {
  const Path spec = at.child("spec");
  validate_job_spec(job["spec"], spec, errors);
  if (job["spec"].contains("selector")) {
    errors.invalid(spec.text("selector"), job["spec"]["selector"],
                   "`selector` will be auto-generated");
  }
  if (job["spec"]["manualSelector"].as_bool()) {
    errors.not_supported(spec.text("manualSelector"), Value(true), {"nil", "false"});
  }
}

}  // namespace

void validate_cron_job(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = object["spec"];
  validate_schedule(spec["schedule"], at.child("schedule"), errors);
  for (const char* field :
       {"startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) {
    validate_not_negative(spec[field], at.child(field), errors);
  }
  validate_zone(spec.find("timeZone"), at.child("timeZone"), errors);
  validate_word(spec["concurrencyPolicy"], {"Allow", "Forbid", "Replace"},
                at.child("concurrencyPolicy"), errors);
  validate_template(spec["jobTemplate"], at.child("jobTemplate"), errors);
  if (object["metadata"]["name"].as_string().size() > kNameBytesMax) {
    errors.invalid("metadata.name", object["metadata"]["name"],
                   "must be no more than 52 characters");
  }
}

}  // namespace tessera::apiserver
