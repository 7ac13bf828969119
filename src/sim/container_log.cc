#include "sim/container_log.h"

#include <algorithm>

namespace tessera::sim {
namespace {

using apiserver::LogQuery;
using base::Code;
using base::Duration;
using base::Time;
using json::Value;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLinesMax = 10'000;
constexpr Duration kPeriod = base::seconds(10);
constexpr Duration kPeriodMin = base::seconds(1);
constexpr Duration kPeriodMax = base::seconds(60);

const Value* status_of(const Value& status, std::string_view container) {
  for (const char* list :
       {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    for (const Value& one : status[list].items()) {
      if (one["name"].as_string() == container) return &one;
    }
  }
  return nullptr;
}

base::Result<Value> no_log(const LogQuery& query, std::string_view why) {
  return base::error(Code::kBadRequest, "container \"{}\" in pod \"{}\" is {}", query.container,
                     query.pod, why);
}

// The state of the run that is meant: {"startedAt": ...}, with "finishedAt" where it is over.
base::Result<Value> state_of(const Value& status, const LogQuery& query) {
  const Value* found = status_of(status, query.container);
  if (found == nullptr) return no_log(query, "not available");
  const Value& state = (*found)["state"];
  const Value& last = (*found)["lastState"]["terminated"];
  if (query.previous && last.is_null()) {
    return base::error(Code::kBadRequest,
                       "previous terminated container \"{}\" in pod \"{}\" not found",
                       query.container, query.pod);
  }
  if (query.previous) return last;
  if (state.contains("running")) return state["running"];
  if (state.contains("terminated")) return state["terminated"];
  if (!last.is_null()) return last;
  const std::string_view reason = state["waiting"]["reason"].as_string();
  return no_log(query,
                "waiting to start: " + std::string(reason.empty() ? "ContainerCreating" : reason));
}

std::optional<Duration> run_for_of(const kube::Object& pod, std::string_view container) {
  const char* key = "tessera.dev/run-for";
  for (const Value& one : pod.get("spec", "initContainers").items()) {
    if (one["name"].as_string() != container) continue;
    if (one["restartPolicy"].as_string() == "Always") return std::nullopt;
    key = "tessera.dev/init-run-for";
  }
  const Value& text = pod.metadata()["annotations"][key];
  const auto parsed = base::parse_duration(text.as_string());
  return parsed && parsed->ns > 0 ? std::optional(*parsed) : std::nullopt;
}

std::string introduction(const kube::Object& pod, const LogQuery& query) {
  std::string out = fmt::format("simulated container {} of pod {}/{} started on node {}",
                                query.container, query.ns, query.pod, query.node);
  const std::string_view gpus = pod.metadata()["annotations"]["tessera.dev/gpus"].as_string();
  return gpus.empty() ? out : out + fmt::format(", GPUs {}", gpus);
}

// Always nine digits, so that lines stand under each other.
std::string stamp(Time time) {
  std::string text = base::to_rfc3339(time);
  text.pop_back();
  return text + ".000000000Z ";
}

}  // namespace

base::Result<ContainerLife> life_of(const kube::Object& pod, const Value& status,
                                    const LogQuery& query) {
  TS_TRY(const Value state, state_of(status, query));
  ContainerLife out;
  out.what = introduction(pod, query);
  out.started = base::parse_rfc3339(state["startedAt"].as_string()).value_or(Time{});
  if (state.contains("finishedAt")) {
    out.ended = base::parse_rfc3339(state["finishedAt"].as_string()).value_or(out.started);
    out.exit_code = static_cast<int>(state["exitCode"].as_int());
  }
  out.run_for = run_for_of(pod, query.container);
  return out;
}

ContainerLog::ContainerLog(ContainerLife life) : life_(std::move(life)), period_(kPeriod) {
  if (life_.ended) life_.ended = std::max(*life_.ended, life_.started);
  if (!life_.run_for) return;
  const int64_t tenth = life_.run_for->ns / 10 / kSecond * kSecond;
  period_ = base::nanos(std::clamp(tenth, kPeriodMin.ns, kPeriodMax.ns));
  steps_max_ = life_.run_for->ns / period_.ns;
}

int64_t ContainerLog::steps(Time until) const {
  const int64_t count = std::max<int64_t>(0, (until - life_.started).ns / period_.ns);
  return steps_max_ ? std::min(count, *steps_max_) : count;
}

int64_t ContainerLog::lines(Time now) const {
  if (now < life_.started) return 0;
  const bool over = life_.ended && *life_.ended <= now;
  return 1 + steps(over ? *life_.ended : now) + (over ? 1 : 0);
}

Time ContainerLog::time_of(int64_t line) const {
  if (life_.ended && line > steps(*life_.ended)) return *life_.ended;
  return life_.started + base::nanos(line * period_.ns);
}

std::string ContainerLog::text_of(int64_t line) const {
  if (line == 0) return life_.what;
  if (life_.ended && line > steps(*life_.ended)) {
    const std::string_view how = life_.exit_code == 137   ? "killed"
                                 : life_.exit_code == 143 ? "ended by SIGTERM"
                                                          : "ended";
    return fmt::format("{} after {} with exit code {}", how,
                       base::to_string(*life_.ended - life_.started), life_.exit_code);
  }
  const std::string so_far = base::to_string(base::nanos(line * period_.ns));
  if (steps_max_) return fmt::format("step {} of {}, {}", line, *steps_max_, so_far);
  return fmt::format("step {}, {}", line, so_far);
}

std::optional<Time> ContainerLog::next(Time now) const {
  if (life_.ended) return std::nullopt;
  if (now < life_.started) return life_.started;
  const int64_t done = steps(now);
  if (steps_max_ && done >= *steps_max_) return std::nullopt;
  return life_.started + base::nanos((done + 1) * period_.ns);
}

LogCursor::LogCursor(const ContainerLog& log, const LogQuery& query, Time now)
    : timestamps_(query.timestamps), since_(query.since), left_(query.limit_bytes) {
  const int64_t lines = log.lines(now);
  at_ = std::max<int64_t>(0, lines - std::min(query.tail_lines.value_or(kLinesMax), kLinesMax));
}

std::string LogCursor::stamped(const ContainerLog& log, int64_t line) const {
  return (timestamps_ ? stamp(log.time_of(line)) : std::string()) + log.text_of(line) + "\n";
}

std::string LogCursor::take(const ContainerLog& log, Time now) {
  std::string out;
  for (const int64_t end = log.lines(now); at_ < end; ++at_) {
    if (since_ && log.time_of(at_) < *since_) continue;
    if (left_ && static_cast<int64_t>(out.size()) >= *left_) break;
    out += stamped(log, at_);
  }
  if (left_) {
    out.resize(std::min(out.size(), static_cast<size_t>(*left_)));
    *left_ -= static_cast<int64_t>(out.size());
  }
  return out;
}

}  // namespace tessera::sim
