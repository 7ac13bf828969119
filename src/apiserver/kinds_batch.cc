#include "apiserver/columns.h"
#include "apiserver/defaults_sets.h"
#include "apiserver/defaults_workload.h"
#include "apiserver/json_edit.h"
#include "apiserver/kind.h"
#include "apiserver/validate_cron_job.h"
#include "apiserver/validate_workload.h"

namespace tessera::apiserver {
namespace {

void prepare_new_job(json::Value& object) {
  generate_job_selector(object);
  // A job without labels of its own shows those of its template, the generated ones too.
  const json::Value generated = object["spec"]["template"]["metadata"]["labels"];
  if (object["metadata"]["labels"].empty() && !generated.empty()) {
    object.ref("metadata").set("labels", generated);
  }
  reset_status(object);
}

}  // namespace

void add_batch_kinds(Kinds& kinds) {
  kinds.add({.group = "batch",
             .kind = "Job",
             .plural = "jobs",
             .singular = "job",
             .categories = {"all"},
             .status_subresource = true,
             .has_generation = true,
             .defaults = default_job,
             .prepare_create = prepare_new_job,
             .prepare_update = keep_status,
             .validate = validate_job,
             .validate_update = validate_job_update,
             .selectable_fields = {"status.successful"},
             .field_value = [](const json::Value& job,
                               std::string_view field) -> std::optional<std::string> {
               if (field != "status.successful") return std::nullopt;
               return fmt::format("{}", job["status"]["succeeded"].as_int());
             },
             .columns = job_columns()});
  kinds.add({.group = "batch",
             .kind = "CronJob",
             .plural = "cronjobs",
             .singular = "cronjob",
             .short_names = {"cj"},
             .categories = {"all"},
             .status_subresource = true,
             .has_generation = true,
             .defaults = default_cron_job,
             .prepare_create = reset_status,
             .prepare_update = keep_status,
             .validate = validate_cron_job,
             .columns = cron_job_columns()});
}

}  // namespace tessera::apiserver
