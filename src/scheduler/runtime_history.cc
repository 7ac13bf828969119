#include "scheduler/runtime_history.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/conditions.h"
#include "scheduler/model_reading.h"

namespace tessera::scheduler {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// As controllers and generateName make them.
bool is_hash(std::string_view part) {
  if (part.size() < 5 || part.size() > 10) return false;
  const bool plain =
      std::ranges::all_of(part, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); });
  if (!plain) return false;
  if (std::ranges::any_of(part, is_digit)) return true;
  return part.size() == 5 && part.find_first_of("aeiou") == std::string_view::npos;
}

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, is_digit);
}

std::string_view owner_of(const kube::Object& pod) {
  for (const json::Value& owner : pod.metadata()["ownerReferences"].items()) {
    if (owner["controller"].as_bool()) return owner["name"].as_string();
  }
  return pod.name();
}

std::string ask_of(const kube::Object& pod) {
  std::string out;
  for (const json::Value& container : pod.get("spec", "containers").items()) {
    const json::Value& resources = container["resources"];
    out +=
        (resources["requests"].is_object() ? resources["requests"] : json::Value::object()).dump();
    out += (resources["limits"].is_object() ? resources["limits"] : json::Value::object()).dump();
  }
  for (const char* name :
       {"tessera.dev/gpu-milli", "tessera.dev/gpu-count", "tessera.dev/gpu-model", "gpu-fraction",
        "gpu-memory", "gpu-fraction-num-devices"})
    out += fmt::format("|{}", pod.annotation(name));
  return fmt::format("{:x}", std::hash<std::string>{}(out));
}

}  // namespace

std::string stem_of(std::string_view name) {
  const std::string_view whole = name;
  for (;;) {
    const size_t dash = name.rfind('-');
    if (dash == std::string_view::npos || dash == 0) break;
    const std::string_view last = name.substr(dash + 1);
    if (!is_number(last) && !is_hash(last)) break;
    name = name.substr(0, dash);
  }
  while (!name.empty() && is_digit(name.back())) name.remove_suffix(1);
  return std::string(name.empty() ? whole : name);
}

RunKeys run_keys(const kube::Object& pod, std::string_view queue) {
  const std::string where = fmt::format("{}/{}/", pod.ns(), queue);
  return {fmt::format("{}owner/{}", where, stem_of(owner_of(pod))),
          fmt::format("{}ask/{}", where, ask_of(pod))};
}

std::optional<Run> run_of(const kube::Object& pod) {
  const std::string_view phase = pod.get("status", "phase").as_string();
  const bool driven_out =
      condition_of(pod["status"], "DisruptionTarget")["status"].as_string() == "True" ||
      pod.deleting();
  if (phase != "Succeeded" && (phase != "Failed" || driven_out)) return std::nullopt;
  constexpr base::Time kNever{INT64_MIN};
  Run run{started_at(pod, kNever), kNever};
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::Value& status : pod.get("status", list).items()) {
      const auto end =
          base::parse_rfc3339(status.get("state", "terminated")["finishedAt"].as_string());
      if (end) run.end = std::max(run.end, *end);
    }
  }
  if (run.start == kNever || run.end == kNever || run.end < run.start) return std::nullopt;
  return run;
}

void RuntimeHistory::add_to(const std::string& key, std::string_view gang, const Run& run) {
  Name& name = names_[key];
  if (name.runs > 0) by_end_.erase({name.last[0].end, key});
  Past past{std::string(gang), run.end, run.end - run.start};
  std::vector<Past> all(name.last.begin(), name.last.begin() + name.runs);
  const auto same =
      std::ranges::find_if(all, [&](const Past& other) { return other.gang == gang; });
  if (same == all.end()) {
    all.push_back(std::move(past));
  } else {
    same->length = std::max(same->length, past.length);
    same->end = std::max(same->end, past.end);
  }
  std::ranges::sort(all, [](const Past& a, const Past& b) {
    return std::tie(b.end, a.gang) < std::tie(a.end, b.gang);
  });
  name.runs = static_cast<int>(std::min(all.size(), name.last.size()));
  std::move(all.begin(), all.begin() + name.runs, name.last.begin());
  by_end_.insert({name.last[0].end, key});
  while (names_.size() > names_max_) {
    names_.erase(by_end_.begin()->second);
    by_end_.erase(by_end_.begin());
  }
}

void RuntimeHistory::add(const RunKeys& keys, std::string_view gang, const Run& run) {
  add_to(keys.owner, gang, run);
  add_to(keys.ask, gang, run);
}

std::optional<base::Duration> RuntimeHistory::estimate(const RunKeys& keys) const {
  for (const std::string* key : {&keys.owner, &keys.ask}) {
    const auto found = names_.find(*key);
    if (found == names_.end()) continue;
    const Name& name = found->second;
    base::Duration length = name.last[0].length;
    if (name.runs > 1) length = base::Duration{length.ns / 2 + name.last[1].length.ns / 2};
    return std::clamp(length, kEstimateMin, kEstimateMax);
  }
  return std::nullopt;
}

}  // namespace tessera::scheduler
