// A WhatIfAnswer as text and as JSON.

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/what_if.h"

namespace tessera::scheduler {
namespace {

using json::Value;

constexpr size_t kLinesShown = 20;
constexpr size_t kVerdictsShown = 3;

std::string pods_text(size_t count) {
  return fmt::format("{} {}", count, count == 1 ? "pod" : "pods");
}

std::string indented(const std::string& text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1);
    out += "  " + text.substr(at, end + 1 - at);
    at = end + 1;
  }
  return out;
}

// At most kLinesShown lines, and how many more there are.
template <class Items, class Line>
std::string listed(const Items& items, Line line) {
  std::string out;
  for (size_t i = 0; i < items.size() && i < kLinesShown; ++i) out += "  " + line(items[i]) + "\n";
  if (items.size() > kLinesShown) out += fmt::format("  and {} more\n", items.size() - kLinesShown);
  return out;
}

std::string job_text(const PlannedJob& job) {
  std::string out;
  if (job.waiting.empty()) {
    out = fmt::format("{} would start now\n", job.title);
  } else if (job.placed.empty()) {
    out = fmt::format("{} would not start now\n", job.title);
  } else {
    out = fmt::format("{} would start now with {} of its {}\n", job.title, job.placed.size(),
                      pods_text(job.placed.size() + job.waiting.size()));
  }
  out += listed(job.placed, [](const PlannedPod& pod) {
    return fmt::format("{} on {}{}", pod.pod, pod.node,
                       pod.gpus.empty() ? "" : fmt::format(", GPU {}", pod.gpus));
  });
  for (size_t i = 0; i < job.verdicts.size() && i < kVerdictsShown; ++i)
    out += indented(to_text(job.verdicts[i]));
  if (job.verdicts.size() > kVerdictsShown)
    out += fmt::format("  and {} more reasons\n", job.verdicts.size() - kVerdictsShown);
  for (const std::string& problem : job.problems) out += fmt::format("  waits: {}\n", problem);
  return out;
}

std::string eviction_text(const PlannedEviction& each) {
  const std::string then = !each.comes_back    ? "nothing makes it anew"
                           : each.then.empty() ? "its next pod would wait"
                                               : fmt::format("its next pod on {}", each.then);
  return fmt::format("{} from {} ({}: {}); {}", each.pod, each.node, each.reason, each.why, then);
}

Value job_json(const PlannedJob& job) {
  Value placed = Value::array();
  for (const PlannedPod& pod : job.placed) {
    Value one = Value::object({{"pod", pod.pod}, {"node", pod.node}});
    if (!pod.gpus.empty()) one.set("gpus", pod.gpus);
    placed.push_back(std::move(one));
  }
  Value waiting = Value::array();
  for (const std::string& pod : job.waiting) waiting.push_back(pod);
  Value verdicts = Value::array();
  for (const Verdict& verdict : job.verdicts) verdicts.push_back(to_json(verdict));
  Value problems = Value::array();
  for (const std::string& problem : job.problems) problems.push_back(problem);
  return Value::object({{"title", job.title},
                        {"starts", !job.placed.empty()},
                        {"placed", placed},
                        {"waiting", waiting},
                        {"verdicts", verdicts},
                        {"problems", problems}});
}

}  // namespace

json::Value to_json(const WhatIfAnswer& answer) {
  Value jobs = Value::array();
  for (const PlannedJob& job : answer.jobs) jobs.push_back(job_json(job));
  Value evictions = Value::array();
  for (const PlannedEviction& each : answer.evictions) {
    Value one = Value::object({{"pod", each.pod},
                               {"node", each.node},
                               {"reason", each.reason},
                               {"why", each.why},
                               {"comesBack", each.comes_back}});
    if (!each.then.empty()) one.set("then", each.then);
    evictions.push_back(std::move(one));
  }
  Value start = Value::array();
  for (const PlannedEffect& each : answer.start)
    start.push_back(Value::object({{"pod", each.pod}, {"node", each.node}}));
  Value wait = Value::array();
  for (const PlannedEffect& each : answer.wait)
    wait.push_back(Value::object({{"pod", each.pod}, {"otherwise", each.node}, {"why", each.why}}));
  Value notes = Value::array();
  for (const std::string& note : answer.notes) notes.push_back(note);
  return Value::object({{"jobs", jobs},
                        {"evictions", evictions},
                        {"othersStart", start},
                        {"othersWait", wait},
                        {"notes", notes}});
}

std::string to_text(const WhatIfAnswer& answer) {
  std::string out;
  for (const PlannedJob& job : answer.jobs) out += job_text(job);
  if (!answer.evictions.empty())
    out += fmt::format("{} would have to leave\n", pods_text(answer.evictions.size())) +
           listed(answer.evictions, eviction_text);
  if (!answer.start.empty())
    out +=
        fmt::format("{} would start that otherwise would not\n", pods_text(answer.start.size())) +
        listed(answer.start, [](const PlannedEffect& each) {
          return fmt::format("{} on {}", each.pod, each.node);
        });
  if (!answer.wait.empty())
    out += fmt::format("{} would wait that otherwise would not\n", pods_text(answer.wait.size())) +
           listed(answer.wait, [](const PlannedEffect& each) {
             return fmt::format("{} (otherwise on {}): {}", each.pod, each.node, each.why);
           });
  if (out.empty()) out = "nothing would be different\n";
  for (const std::string& note : answer.notes) out += fmt::format("note: {}\n", note);
  return out;
}

}  // namespace tessera::scheduler
