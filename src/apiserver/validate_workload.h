// What Kubernetes demands of Deployments, ReplicaSets and Jobs.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/apis/apps/validation, pkg/apis/batch/validation.
#pragma once

#include "apiserver/kind.h"
#include "apiserver/validate_path.h"

namespace tessera::apiserver {

void validate_deployment(const json::Value& object, FieldErrors& errors);
void validate_replica_set(const json::Value& object, FieldErrors& errors);
// Both: the selector never changes.
void validate_same_selector(const json::Value& object, const json::Value& before,
                            FieldErrors& errors);

void validate_job(const json::Value& object, FieldErrors& errors);
void validate_job_update(const json::Value& object, const json::Value& before, FieldErrors& errors);

// Also of a CronJob's template: all but the selector.
void validate_job_spec(const json::Value& spec, const Path& at, FieldErrors& errors);

// That the selector at `at`.selector selects the labels of the template at `at`.template.
void validate_selects_template(const json::Value& spec, const Path& at, FieldErrors& errors);

// `supported` is the list of names as it stands in the message.
void refuse_strategy(const json::Value& strategy, const Path& at, std::string_view supported,
                     FieldErrors& errors);

// That the pods of a template start again for ever, which `owner` ("DaemonSet") demands.
void validate_lasting_pods(const json::Value& pod_template, std::string_view owner, const Path& at,
                           FieldErrors& errors);

// A number that is not negative, or a percentage.
void validate_int_or_percent(const json::Value& value, const Path& at, FieldErrors& errors);
// 25 of "25%" as of 25.
int64_t number_of(const json::Value& value);

}  // namespace tessera::apiserver
