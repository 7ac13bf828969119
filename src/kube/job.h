// Jobs, ReplicaSets and Deployments, decoded: what their controllers look at. Templates stay JSON:
// pods are made of them.
//
// Errors:  decoders answer kInvalid naming the field; unknown fields are skipped.
// Source:  Kubernetes API reference, Job, ReplicaSet, Deployment (v1.36).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/meta.h"
#include "kube/node.h"

namespace tessera::kube {

struct Job {
  Meta meta;
  int32_t parallelism = 1;
  std::optional<int32_t>
      completions;  // none: a work queue, done when one pod succeeded and none runs
  int32_t backoff_limit = 6;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int64_t> ttl_seconds_after_finished;
  std::optional<int32_t> backoff_limit_per_index;
  std::optional<int32_t> max_failed_indexes;
  bool suspend = false;
  bool indexed = false;
  bool only_replace_failed = false;  // not those that are on their way out
  std::string managed_by;            // empty: by the Job controller
  LabelSelector selector;
  json::Value pod_template;
  json::Value failure_policy;  // spec.podFailurePolicy
  json::Value success_policy;

  int32_t active = 0;
  int32_t succeeded = 0;
  int32_t failed = 0;
  std::optional<base::Time> started;
  std::vector<Condition> conditions;

  // A condition Complete or Failed that is true.
  bool finished() const;
  // Another controller looks after it.
  bool managed_elsewhere() const;
};

struct ReplicaSet {
  Meta meta;
  int32_t replicas = 1;
  int32_t min_ready_seconds = 0;
  LabelSelector selector;
  json::Value pod_template;

  int32_t status_replicas = 0;
  int32_t ready_replicas = 0;
  int32_t available_replicas = 0;
  int64_t observed_generation = 0;
};

struct Deployment {
  Meta meta;
  int32_t replicas = 1;
  int32_t min_ready_seconds = 0;
  int32_t progress_deadline_seconds = 600;
  int32_t revision_history_limit = 10;
  bool paused = false;
  bool recreate = false;  // strategy.type: Recreate
  int32_t surge_max =
      0;  // pods above `replicas` while rolling, worked out from a number or a percentage
  int32_t unavailable_max = 0;
  LabelSelector selector;
  json::Value pod_template;
  int64_t observed_generation = 0;
};

base::Result<Job> decode_job(const Object& object);
base::Result<ReplicaSet> decode_replica_set(const Object& object);
base::Result<Deployment> decode_deployment(const Object& object);

// A number, or a percentage of `total` rounded up or down: "25%".
base::Result<int32_t> resolve_int_or_percent(const json::Value& value, int32_t total, bool round_up,
                                             std::string_view path);

}  // namespace tessera::kube
