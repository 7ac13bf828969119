#include "kube/job.h"

#include <algorithm>
#include <charconv>

namespace tessera::kube {
namespace {

int32_t int_at(const json::Value& value, std::string_view key, int32_t otherwise) {
  return static_cast<int32_t>(value[key].as_int(otherwise));
}

template <class T>
std::optional<T> optional_int(const json::Value& value, std::string_view key) {
  if (!value[key].is_int()) return std::nullopt;
  return static_cast<T>(value[key].as_int());
}

}  // namespace

bool Job::finished() const {
  return std::ranges::any_of(conditions, [](const Condition& c) {
    return c.is_true() && (c.type == "Complete" || c.type == "Failed");
  });
}

bool Job::managed_elsewhere() const {
  return !managed_by.empty() && managed_by != "kubernetes.io/job-controller";
}

base::Result<Job> decode_job(const Object& object) {
  Job out;
  TS_TRY(out.meta, decode_meta(object));
  const json::Value& spec = object["spec"];
  out.parallelism = int_at(spec, "parallelism", 1);
  out.completions = optional_int<int32_t>(spec, "completions");
  out.backoff_limit = int_at(spec, "backoffLimit", 6);
  out.active_deadline_seconds = optional_int<int64_t>(spec, "activeDeadlineSeconds");
  out.ttl_seconds_after_finished = optional_int<int64_t>(spec, "ttlSecondsAfterFinished");
  out.backoff_limit_per_index = optional_int<int32_t>(spec, "backoffLimitPerIndex");
  out.max_failed_indexes = optional_int<int32_t>(spec, "maxFailedIndexes");
  out.failure_policy = spec["podFailurePolicy"];
  out.success_policy = spec["successPolicy"];
  out.only_replace_failed =
      spec["podReplacementPolicy"].as_string() == "Failed" || out.failure_policy.is_object();
  out.managed_by = spec["managedBy"].str();
  out.suspend = spec["suspend"].as_bool();
  out.indexed = spec["completionMode"].as_string() == "Indexed";
  TS_TRY(out.selector, LabelSelector::from_json(spec["selector"], "spec.selector"));
  out.pod_template = spec["template"];
  const json::Value& status = object["status"];
  out.active = int_at(status, "active", 0);
  out.succeeded = int_at(status, "succeeded", 0);
  out.failed = int_at(status, "failed", 0);
  TS_TRY(out.started, decode_time(status["startTime"], "status.startTime"));
  out.conditions = decode_conditions(status["conditions"]);
  return out;
}

base::Result<ReplicaSet> decode_replica_set(const Object& object) {
  ReplicaSet out;
  TS_TRY(out.meta, decode_meta(object));
  const json::Value& spec = object["spec"];
  out.replicas = int_at(spec, "replicas", 1);
  out.min_ready_seconds = int_at(spec, "minReadySeconds", 0);
  TS_TRY(out.selector, LabelSelector::from_json(spec["selector"], "spec.selector"));
  out.pod_template = spec["template"];
  const json::Value& status = object["status"];
  out.status_replicas = int_at(status, "replicas", 0);
  out.ready_replicas = int_at(status, "readyReplicas", 0);
  out.available_replicas = int_at(status, "availableReplicas", 0);
  out.observed_generation = status["observedGeneration"].as_int();
  return out;
}

base::Result<int32_t> resolve_int_or_percent(const json::Value& value, int32_t total, bool round_up,
                                             std::string_view path) {
  if (value.is_int()) return static_cast<int32_t>(value.as_int());
  std::string_view text = value.as_string();
  int32_t percent = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (end.ec != std::errc() || std::string_view(end.ptr, text.data() + text.size()) != "%") {
    return base::error(base::Code::kInvalid,
                       "{}: {} is neither a number nor a percentage; write 1 or \"25%\"", path,
                       value.dump());
  }
  const int64_t product = int64_t{percent} * total;
  return static_cast<int32_t>(round_up && product > 0 ? (product + 99) / 100 : product / 100);
}

base::Result<Deployment> decode_deployment(const Object& object) {
  Deployment out;
  TS_TRY(out.meta, decode_meta(object));
  const json::Value& spec = object["spec"];
  out.replicas = int_at(spec, "replicas", 1);
  out.min_ready_seconds = int_at(spec, "minReadySeconds", 0);
  out.progress_deadline_seconds = int_at(spec, "progressDeadlineSeconds", 600);
  out.revision_history_limit = int_at(spec, "revisionHistoryLimit", 10);
  out.paused = spec["paused"].as_bool();
  out.recreate = spec.get("strategy", "type").as_string() == "Recreate";
  TS_TRY(out.selector, LabelSelector::from_json(spec["selector"], "spec.selector"));
  out.pod_template = spec["template"];
  out.observed_generation = object.get("status", "observedGeneration").as_int();
  if (out.recreate) return out;
  const json::Value quarter("25%");
  const json::Value& rolling = spec["strategy"]["rollingUpdate"];
  const json::Value* surge = rolling.find("maxSurge");
  const json::Value* unavailable = rolling.find("maxUnavailable");
  TS_TRY(out.surge_max, resolve_int_or_percent(surge != nullptr ? *surge : quarter, out.replicas,
                                               true, "spec.strategy.rollingUpdate.maxSurge"));
  TS_TRY(out.unavailable_max,
         resolve_int_or_percent(unavailable != nullptr ? *unavailable : quarter, out.replicas,
                                false, "spec.strategy.rollingUpdate.maxUnavailable"));
  // With neither, nothing could ever be replaced.
  if (out.surge_max == 0 && out.unavailable_max == 0) out.unavailable_max = 1;
  return out;
}

}  // namespace tessera::kube
