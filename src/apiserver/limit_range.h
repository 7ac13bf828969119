// What LimitRanges give containers that name no amounts, and what they forbid.
//
// Shape:   apply_limit_range before validation, check_limit_range after it.
// Errors:  the text of a refusal, in Kubernetes' words; empty where all holds.
// Threads: pure.
// Source:  k8s.io/kubernetes v1.36.3 plugin/pkg/admission/limitranger (order, wording, the annotation). That a max alone
//          becomes the default is set in the LimitRange itself when it is written (defaults_policy.cc).
#pragma once

#include <string>

#include "json/value.h"

namespace tessera::apiserver {

void apply_limit_range(const json::Value& limit_range, json::Value& pod);
std::string check_limit_range_pod(const json::Value& limit_range, const json::Value& pod);
std::string check_limit_range_claim(const json::Value& limit_range, const json::Value& claim);

}  // namespace tessera::apiserver
