#include "scheduler/job_allowance.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

namespace tessera::scheduler {
namespace {

constexpr int64_t kLimitDefault = 6;

bool ignores_disruptions(const kube::Object& job) {
  for (const json::Value& rule : job.get("spec", "podFailurePolicy", "rules").items()) {
    if (rule["action"].as_string() != "Ignore") continue;
    for (const json::Value& pattern : rule["onPodConditions"].items()) {
      const std::string_view status = pattern["status"].as_string();
      if (pattern["type"].as_string() == "DisruptionTarget" && (status.empty() || status == "True"))
        return true;
    }
  }
  return false;
}

}  // namespace

int64_t evictions_allowed(const kube::Object& job) {
  const std::string_view text = job.annotation(kEvictionsAllowed);
  int64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = ec == std::errc() && end == text.data() + text.size();
  return whole ? std::clamp<int64_t>(value, 0, std::numeric_limits<int32_t>::max()) : 0;
}

std::optional<json::Value> allowance_patch(const kube::Object& job, int64_t allowed, int64_t more) {
  if (!job || more <= 0 || ignores_disruptions(job)) return std::nullopt;
  const int64_t most = std::numeric_limits<int32_t>::max();
  const int64_t written = evictions_allowed(job);
  const int64_t own =
      std::max<int64_t>(0, job.get("spec", "backoffLimit").as_int(kLimitDefault) - written);
  const int64_t now = std::min(std::max(written, allowed) + more, most - std::min(own, most));
  using json::Value;
  return Value::object(
      {{"metadata", Value::object({{"uid", job.uid()},
                                   {"annotations", Value::object({{std::string(kEvictionsAllowed),
                                                                   std::to_string(now)}})}})},
       {"spec", Value::object({{"backoffLimit", own + now}})}});
}

}  // namespace tessera::scheduler
