#include "apiserver/controller_job_policy.h"

#include <algorithm>
#include <charconv>

namespace tessera::apiserver::controller {

using json::Value;
using kube::Object;

namespace {

// As many are kept apart.
constexpr int32_t kIndexesMax = 1'000'000;
constexpr base::Duration kBackoffFirst = base::seconds(10);
constexpr base::Duration kBackoffMax = base::seconds(600);
constexpr std::string_view kFailures = "batch.kubernetes.io/job-index-failure-count";
constexpr std::string_view kIgnoredFailures = "batch.kubernetes.io/job-index-ignored-failure-count";

std::optional<int32_t> whole_number(std::string_view text) {
  int32_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = end.ec == std::errc() && end.ptr == text.data() + text.size();
  return all && number >= 0 ? std::optional<int32_t>(number) : std::nullopt;
}

base::Time time_of(const Value& text) {
  const auto time = base::parse_rfc3339(text.as_string());
  return time ? *time : base::Time{};
}

// When the last container ended; nothing while one runs.
base::Time containers_ended(const Object& pod) {
  base::Time last;
  for (const Value& container : pod.get("status", "containerStatuses").items()) {
    const base::Time at = time_of(container.get("state", "terminated", "finishedAt"));
    if (at.ns == 0) return {};
    last = std::max(last, at);
  }
  return last;
}

const Value* container_with_code(const Value& statuses, const Value& wanted) {
  const Value* name = wanted.find("containerName");
  const auto values = wanted["values"].items();
  for (const Value& container : statuses.items()) {
    const Value& ended = container["state"]["terminated"];
    if (!ended.is_object() || ended["exitCode"].as_int() == 0) continue;
    if (name != nullptr && !(*name == container["name"])) continue;
    const bool listed = std::ranges::find(values, ended["exitCode"]) != values.end();
    const std::string_view word = wanted["operator"].as_string();
    if ((word == "In" && listed) || (word == "NotIn" && !listed)) return &container;
  }
  return nullptr;
}

const Value* condition_like(const Object& pod, const Value& patterns) {
  for (const Value& condition : pod.get("status", "conditions").items()) {
    for (const Value& pattern : patterns.items()) {
      if (condition["type"] == pattern["type"] && condition["status"] == pattern["status"]) {
        return &condition;
      }
    }
  }
  return nullptr;
}

// Why the rule fits; empty where it does not.
std::string rule_fits(const Object& pod, const Value& rule) {
  if (const Value* codes = rule.find("onExitCodes")) {
    const Value* container = container_with_code(pod.get("status", "containerStatuses"), *codes);
    if (container == nullptr) {
      container = container_with_code(pod.get("status", "initContainerStatuses"), *codes);
    }
    if (container == nullptr) return {};
    return fmt::format("Container {} for pod {} failed with exit code {}",
                       (*container)["name"].as_string(), pod.key(),
                       container->get("state", "terminated", "exitCode").as_int());
  }
  const Value* condition = condition_like(pod, rule["onPodConditions"]);
  if (condition == nullptr) return {};
  return fmt::format("Pod {} has condition {}", pod.key(), (*condition)["type"].as_string());
}

}  // namespace

std::set<int32_t> parse_indexes(std::string_view text, int32_t limit) {
  limit = std::min(limit, kIndexesMax);
  std::set<int32_t> out;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t dash = std::min(part.find('-'), part.size());
    const auto first = whole_number(part.substr(0, dash));
    const auto last = dash < part.size() ? whole_number(part.substr(dash + 1)) : first;
    if (!first || !last) continue;
    for (int32_t i = *first; i <= *last && i < limit; ++i) out.insert(out.end(), i);
  }
  return out;
}

std::string format_indexes(const std::set<int32_t>& indexes) {
  std::string out;
  for (auto it = indexes.begin(); it != indexes.end();) {
    const int32_t first = *it;
    int32_t last = first;
    while (++it != indexes.end() && *it == last + 1) last = *it;
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    if (last > first) out += (last == first + 1 ? "," : "-") + std::to_string(last);
  }
  return out;
}

std::optional<int32_t> index_of(const Object& pod) {
  return whole_number(pod.annotation(kCompletionIndex));
}

bool index_counts(const kube::Job& job, const Object& pod) {
  if (!job.indexed) return true;
  const auto index = index_of(pod);
  return index && *index < job.completions.value_or(0);
}

bool pod_succeeded(const Object& pod) {
  return pod.get("status", "phase").as_string() == "Succeeded";
}

bool pod_failed(const kube::Job& job, const Object& pod) {
  const std::string_view phase = pod.get("status", "phase").as_string();
  if (phase == "Failed") return true;
  return !job.only_replace_failed && pod.deleting() && phase != "Succeeded";
}

base::Time finished_at(const Object& pod) {
  if (const base::Time at = containers_ended(pod); at.ns != 0) return at;
  const Value& ready = condition_of(pod["status"], "Ready");
  const base::Time not_ready = time_of(ready["lastTransitionTime"]);
  if (ready["status"].as_string() == "False" && not_ready.ns != 0) return not_ready;
  const base::Time deleted = time_of(pod.metadata()["deletionTimestamp"]);
  constexpr int64_t kYearSeconds = 366 * 86'400;
  const int64_t grace = pod.metadata()["deletionGracePeriodSeconds"].as_int();
  if (deleted.ns != 0) return deleted - base::seconds(std::clamp<int64_t>(grace, 0, kYearSeconds));
  return time_of(pod.metadata()["creationTimestamp"]);
}

FailureMatch match_failure(const kube::Job& job, const Object& pod) {
  const auto rules = job.failure_policy["rules"].items();
  for (size_t i = 0; i < rules.size(); ++i) {
    const std::string why = rule_fits(pod, rules[i]);
    if (why.empty()) continue;
    const std::string_view action = rules[i]["action"].as_string();
    if (action == "Ignore") return {.counts = false};
    if (action == "Count") return {};
    if (action == "FailIndex") return {.fail_index = true};
    if (action == "FailJob") {
      return {.fail_job = fmt::format("{} matching FailJob rule at index {}", why, i)};
    }
  }
  return {};
}

std::optional<std::string> match_success(const kube::Job& job, const std::set<int32_t>& succeeded) {
  if (succeeded.empty()) return std::nullopt;
  const auto rules = job.success_policy["rules"].items();
  for (size_t i = 0; i < rules.size(); ++i) {
    const Value* count = rules[i].find("succeededCount");
    const Value* indexes = rules[i].find("succeededIndexes");
    auto have = static_cast<int64_t>(succeeded.size());
    bool met = false;
    if (indexes != nullptr) {
      const auto wanted = parse_indexes(indexes->as_string(), job.completions.value_or(0));
      if (wanted.empty()) continue;
      have = std::ranges::count_if(wanted, [&](int32_t each) { return succeeded.contains(each); });
      met = have == static_cast<int64_t>(wanted.size());
    }
    if (met || (count != nullptr && have >= count->as_int())) {
      return fmt::format("Matched rules at index {}", i);
    }
  }
  return std::nullopt;
}

IndexFailures failures_before(const Object& pod) {
  return {whole_number(pod.annotation(kFailures)).value_or(0),
          whole_number(pod.annotation(kIgnoredFailures)).value_or(0)};
}

IndexFailures failures_after(const kube::Job& job, const Object& pod) {
  IndexFailures out = failures_before(pod);
  int32_t& grown = match_failure(job, pod).counts ? out.counted : out.ignored;
  if (grown < std::numeric_limits<int32_t>::max()) ++grown;
  return out;
}

void annotate_failures(Value& annotations, const IndexFailures& failures) {
  annotations.set(kFailures, std::to_string(failures.counted));
  if (failures.ignored > 0) annotations.set(kIgnoredFailures, std::to_string(failures.ignored));
}

bool index_failed(const kube::Job& job, const Object& pod) {
  if (!pod_failed(job, pod)) return false;
  const FailureMatch match = match_failure(job, pod);
  if (match.fail_index) return true;
  return match.counts && failures_before(pod).counted >= job.backoff_limit_per_index.value_or(0);
}

base::Time retry_after(int64_t failures, base::Time last) {
  if (failures <= 0) return {};
  base::Duration wait = kBackoffFirst;
  for (int64_t i = 1; i < failures && wait < kBackoffMax; ++i) wait = wait * 2;
  return last + std::min(wait, kBackoffMax);
}

void JobHistory::note(const kube::Job& job, const std::vector<Object>& pods) {
  for (const Object& pod : pods) {
    if (pod_succeeded(pod)) success_ = std::max(success_, finished_at(pod));
  }
  for (const Object& pod : pods) {
    // One without the finalizer that is only going was let go on purpose.
    const bool ended = pod.get("status", "phase").as_string() == "Failed";
    if (!ended && !has_finalizer(pod, kJobFinalizer)) continue;
    if (pod_failed(job, pod)) failures_[std::string(pod.uid())] = finished_at(pod);
  }
  std::erase_if(failures_, [&](const auto& each) { return each.second <= success_; });
}

base::Time JobHistory::retry_at() const {
  base::Time last;
  for (const auto& [uid, at] : failures_) last = std::max(last, at);
  return retry_after(static_cast<int64_t>(failures_.size()), last);
}

}  // namespace tessera::apiserver::controller
