#include "apiserver/defaults_sets.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/defaults_pod.h"
#include "apiserver/defaults_storage.h"
#include "apiserver/defaults_workload.h"
#include "apiserver/json_edit.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

void default_stateful_strategy(Value& strategy) {
  if (!strategy.contains("type")) {
    strategy.set("type", "RollingUpdate");
    set_missing(strategy, "rollingUpdate", Value::object());
  }
  if (strategy["type"].as_string() != "RollingUpdate") return;
  inside(strategy, "rollingUpdate", [](Value& rolling) {
    set_missing(rolling, "partition", 0);
    // Behind a feature gate that is off.
    rolling.erase("maxUnavailable");
  });
}

// Claim templates are whole objects; their kind is written out whatever the user gave.
void default_claim_template(Value& claim) {
  default_persistent_volume_claim(claim);
  claim.set("apiVersion", "v1");
  claim.set("kind", "PersistentVolumeClaim");
}

void default_daemon_strategy(Value& strategy) {
  set_missing(strategy, "type", "RollingUpdate");
  if (strategy["type"].as_string() != "RollingUpdate") return;
  set_missing(strategy, "rollingUpdate", Value::object());
  set_missing(strategy.ref("rollingUpdate"), "maxUnavailable", 1);
  set_missing(strategy.ref("rollingUpdate"), "maxSurge", 0);
}

int64_t template_generation(const Value& object) {
  const std::string text = object["metadata"]["annotations"][kTemplateGeneration].str();
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void set_template_generation(Value& object, int64_t number) {
  const std::string text = std::to_string(number);
  if (object["metadata"]["annotations"][kTemplateGeneration].as_string() == text) return;
  object.ref("metadata", "annotations").set(kTemplateGeneration, text);
}

}  // namespace

void default_stateful_set(Value& object) {
  inside(object, "spec", [](Value& spec) {
    set_missing(spec, "podManagementPolicy", "OrderedReady");
    set_missing(spec, "updateStrategy", Value::object());
    default_stateful_strategy(spec.ref("updateStrategy"));
    Value& retention = spec.ref("persistentVolumeClaimRetentionPolicy");
    set_missing(retention, "whenDeleted", "Retain");
    set_missing(retention, "whenScaled", "Retain");
    set_missing(spec, "replicas", 1);
    set_missing(spec, "revisionHistoryLimit", 10);
    inside(spec, "template", default_pod_template);
    each_of(spec, "volumeClaimTemplates", default_claim_template);
  });
}

void default_daemon_set(Value& object) {
  inside(object, "spec", [](Value& spec) {
    set_missing(spec, "updateStrategy", Value::object());
    default_daemon_strategy(spec.ref("updateStrategy"));
    set_missing(spec, "revisionHistoryLimit", 10);
    inside(spec, "template", default_pod_template);
  });
}

void prepare_new_daemon_set(Value& object) {
  object.set("status", Value::object({{"currentNumberScheduled", 0},
                                      {"numberMisscheduled", 0},
                                      {"desiredNumberScheduled", 0},
                                      {"numberReady", 0}}));
  set_template_generation(object, std::max<int64_t>(1, template_generation(object)));
}

void prepare_daemon_set_update(Value& object, const Value& before) {
  keep_status(object, before);
  const bool same = object["spec"]["template"] == before["spec"]["template"];
  set_template_generation(object, template_generation(before) + (same ? 0 : 1));
}

void default_cron_job(Value& object) {
  inside(object, "spec", [](Value& spec) {
    set_missing(spec, "concurrencyPolicy", "Allow");
    set_missing(spec, "suspend", false);
    set_missing(spec, "successfulJobsHistoryLimit", 3);
    set_missing(spec, "failedJobsHistoryLimit", 1);
    inside(spec, "jobTemplate", [](Value& job) {
      inside(job, "spec", [](Value& job_spec) {
        inside(job_spec, "template", default_pod_template);
        default_failure_conditions(job_spec);
      });
    });
  });
}

}  // namespace tessera::apiserver
