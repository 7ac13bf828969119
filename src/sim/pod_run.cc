#include "sim/pod_run.h"

#include <algorithm>
#include <charconv>

#include "kube/pod.h"

namespace tessera::sim {
namespace {

using base::Duration;
using base::Time;
using json::Value;
using Role = ContainerAsk::Role;

constexpr Duration kBackOffFirst = base::seconds(10);
constexpr Duration kBackOffMax = base::seconds(300);
constexpr Duration kBackOffReset = base::seconds(600);
constexpr int64_t kSecondsMax =
    1'000'000'000;  // 30 years: more is for ever, and nanoseconds must not overflow
constexpr int kSigKill = 137;
constexpr int kSigTerm = 143;

const std::string* annotation(const kube::Pod& pod, std::string_view key) {
  const auto it = pod.meta.annotations.find(key);
  return it != pod.meta.annotations.end() ? &it->second : nullptr;
}

base::Result<std::optional<Duration>> duration_at(const kube::Pod& pod, std::string_view key) {
  const std::string* text = annotation(pod, key);
  if (text == nullptr) return std::optional<Duration>();
  auto parsed = base::parse_duration(*text);
  if (!parsed || parsed->ns < 0) {
    return base::error(base::Code::kBadRequest,
                       "annotation {}: \"{}\" is not a duration; write it as 90s or 1h30m", key,
                       text->substr(0, 40));
  }
  return std::optional<Duration>(*parsed);
}

base::Result<int64_t> integer_at(const kube::Pod& pod, std::string_view key, int64_t low,
                                 int64_t high, int64_t otherwise) {
  const std::string* text = annotation(pod, key);
  if (text == nullptr) return otherwise;
  int64_t out = 0;
  const auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), out);
  if (ec != std::errc() || end != text->data() + text->size() || out < low || out > high) {
    return base::error(base::Code::kBadRequest,
                       "annotation {}: \"{}\" is not a whole number from {} to {}", key,
                       text->substr(0, 40), low, high);
  }
  return out;
}

ContainerAsk ask_of(const kube::Container& container, Role role) {
  ContainerAsk ask{container.name, role, {}};
  for (const auto& [resource, amount] : container.requests) {
    const bool extended =
        resource.find('/') != std::string::npos && !resource.starts_with("kubernetes.io/");
    if (extended && amount.value() > 0) ask.devices.emplace(resource, amount.value());
  }
  return ask;
}

// The devices that the scheduler chose, from annotation tessera.dev/gpus: "0,3".
std::vector<int> chosen_gpus(const kube::Pod& pod) {
  std::vector<int> out;
  const std::string* text = annotation(pod, "tessera.dev/gpus");
  if (text == nullptr) return out;
  const char* at = text->data();
  const char* end = at + text->size();
  while (at < end) {
    int index = 0;
    const auto [next, ec] = std::from_chars(at, end, index);
    if (ec != std::errc()) break;
    out.push_back(index);
    at = next < end ? next + 1 : next;
  }
  return out;
}

Value condition(std::string_view type, bool value, Time since, int64_t generation,
                std::string_view reason = {}, std::string_view message = {}) {
  Value out = Value::object({{"type", type},
                             {"status", value ? "True" : "False"},
                             {"lastTransitionTime", base::to_rfc3339(since)}});
  if (generation > 0) out.set("observedGeneration", generation);
  // Null takes away what an earlier report said: conditions are merged, not replaced.
  out.set("reason", reason.empty() ? Value() : Value(reason));
  out.set("message", message.empty() ? Value() : Value(message));
  return out;
}

}  // namespace

base::Result<PodRun> PodRun::make(const kube::Pod& pod, const RunTimes& times) {
  PodRun out;
  out.times_ = times;
  out.always_ = pod.restart_policy == kube::RestartPolicy::kAlways;
  out.on_failure_ = pod.restart_policy == kube::RestartPolicy::kOnFailure;
  TS_TRY(out.run_for_, duration_at(pod, "tessera.dev/run-for"));
  TS_TRY(const auto init_run_for, duration_at(pod, "tessera.dev/init-run-for"));
  out.init_run_for_ = init_run_for.value_or(Duration{});
  TS_TRY(out.stop_after_, duration_at(pod, "tessera.dev/stop-after"));
  TS_TRY(const int64_t code, integer_at(pod, "tessera.dev/exit-code", 0, 255, 0));
  out.exit_code_ = static_cast<int>(code);
  out.grace_ = base::seconds(std::clamp<int64_t>(pod.termination_grace_seconds, 0, kSecondsMax));
  if (pod.active_deadline_seconds && *pod.active_deadline_seconds <= kSecondsMax)
    out.deadline_ = base::seconds(*pod.active_deadline_seconds);
  out.generation_ = pod.meta.generation;
  for (const kube::Container& container : pod.init_containers) {
    const Role role = container.sidecar ? Role::kSidecar : Role::kInit;
    out.ask_.containers.push_back(ask_of(container, role));
    out.runs_.push_back({.name = container.name, .image = container.image, .role = role});
  }
  for (const kube::Container& container : pod.containers) {
    out.ask_.containers.push_back(ask_of(container, Role::kApp));
    out.runs_.push_back({.name = container.name, .image = container.image, .role = Role::kApp});
  }
  TS_TRY(out.ask_.share_milli, integer_at(pod, "tessera.dev/share-milli", 1, 1000, 0));
  if (out.ask_.share_milli > 0) {
    TS_TRY(out.ask_.share_gpus, integer_at(pod, "tessera.dev/share-gpus", 1, 16, 1));
  }
  out.ask_.gpus = chosen_gpus(pod);
  return out;
}

void PodRun::admit(PodDevices devices, std::string pod_ip, std::string host_ip, Time now) {
  admitted_ = true;
  devices_ = std::move(devices);
  pod_ip_ = std::move(pod_ip);
  host_ip_ = std::move(host_ip);
  accepted_ = now;
  begin_ = now + times_.start;
  for (Run& run : runs_) {
    run.since = now;
    run.reason = runs_.front().role == Role::kApp ? "ContainerCreating" : "PodInitializing";
  }
  ++revision_;
}

void PodRun::hold(bool missing, Time now) {
  if (!admitted_ || over_ || held_ == missing || (missing && sandboxed())) return;
  held_ = missing;
  if (!missing) begin_ = std::max(*begin_, now + times_.start);
}

void PodRun::reject(std::string reason, std::string message, Time now) {
  reason_ = std::move(reason);
  message_ = std::move(message);
  accepted_ = now;
  killed_ = true;
  over_ = true;
  for (Run& run : runs_) run.since = now;
  ++revision_;
}

void PodRun::start(Run& run, Time now) {
  run.state = State::kRunning;
  run.reason.clear();
  run.since = now;
  run.started = now;
  run.until.reset();
  if (run.role == Role::kInit) run.until = now + init_run_for_;
  if (run.role == Role::kApp && run_for_) run.until = now + *run_for_;
  ++revision_;
}

void PodRun::end(Run& run, int exit_code, Time now) {
  run.state = State::kTerminated;
  run.exit_code = exit_code;
  run.reason = exit_code == 0 ? "Completed" : "Error";
  run.since = now;
  run.until.reset();
  ++revision_;
}

bool PodRun::restarts(const Run& run) const {
  if (stopping_) return false;
  return always_ || run.role == Role::kSidecar || (on_failure_ && run.exit_code != 0);
}

void PodRun::back_off(Run& run, Time now) {
  run.last = terminated(run);
  if (run.since - run.started >= kBackOffReset) run.failures = 0;
  Duration wait = kBackOffFirst;
  for (int i = 0; i < run.failures && wait < kBackOffMax; ++i) wait = wait * 2;
  ++run.failures;
  run.state = State::kWaiting;
  run.reason = "CrashLoopBackOff";
  run.until = now + std::min(wait, kBackOffMax);
  ++run.restarts;
}

bool PodRun::initialized() const {
  return std::ranges::all_of(runs_, [](const Run& run) {
    return run.role == Role::kApp || (run.role == Role::kInit && run.state == State::kTerminated) ||
           (run.role == Role::kSidecar && (run.state == State::kRunning || run.restarts > 0));
  });
}

bool PodRun::ready() const {
  return std::ranges::all_of(runs_, [](const Run& run) {
    return run.role == Role::kInit || run.state == State::kRunning;
  });
}

// Brings the init containers one step on; they run one after the other, sidecars stay.
bool PodRun::advance_init(Time now) {
  for (Run& run : runs_) {
    if (run.role == Role::kApp) return false;
    const bool due = !run.until || *run.until <= now;
    if (run.state == State::kWaiting && due) {
      start(run, run.until.value_or(begin_ ? std::max(*begin_, run.since) : now));
      return true;
    }
    if (run.state == State::kRunning && run.role == Role::kInit) {
      if (*run.until > now) return false;
      const Time at = *run.until;
      end(run, 0, at);
      for (Run& next : runs_) {
        if (next.state == State::kWaiting && !next.until) next.since = at;
      }
      return true;
    }
    if (run.state == State::kWaiting) return false;
  }
  return false;
}

bool PodRun::advance_apps(Time now) {
  bool moved = false;
  for (Run& run : runs_) {
    if (run.role != Role::kApp) continue;
    if (run.state == State::kWaiting && (!run.until || *run.until <= now)) {
      start(run, run.until.value_or(std::max(*begin_, run.since)));
      moved = true;
    } else if (run.state == State::kRunning && run.until && *run.until <= now) {
      end(run, exit_code_, *run.until);
      if (restarts(run)) back_off(run, run.since);
      moved = true;
    }
  }
  return moved;
}

// Once no app container runs or comes again, sidecars end and the pod is over.
bool PodRun::finish_if_done(Time now) {
  const bool done = std::ranges::all_of(runs_, [](const Run& run) {
    return run.role != Role::kApp || run.state == State::kTerminated;
  });
  if (!done) return false;
  for (Run& run : runs_) {
    if (run.role == Role::kSidecar && run.state == State::kRunning) end(run, 0, now);
  }
  over_ = true;
  ++revision_;
  return true;
}

bool PodRun::advance_stop(Time now) {
  bool moved = false;
  bool running = false;
  for (Run& run : runs_) {
    if (run.state == State::kRunning && run.until && *run.until <= now) {
      end(run, run.exit_code, *run.until);
      moved = true;
    }
    running |= run.state == State::kRunning;
  }
  if (running) return moved;
  over_ = true;
  ++revision_;
  return true;
}

bool PodRun::advance(Time now) {
  if (over_ || !admitted_) return false;
  if (deadline_ && accepted_ + *deadline_ <= now && !stopping_) {
    reason_ = "DeadlineExceeded";
    message_ = "Pod was active on the node longer than the specified deadline";
    killed_ = true;
    stop(grace_, now);
    return true;
  }
  if (stopping_) return advance_stop(now);
  if (held_ || *begin_ > now) return false;
  if (!initialized()) return advance_init(now);
  if (!initialized_at_) initialized_at_ = now;
  return advance_init(now) || advance_apps(now) || finish_if_done(now);
}

std::optional<Time> PodRun::step(Time now) {
  for (int guard = 0; guard < 10'000 && advance(now); ++guard) {
  }
  if (ready() && !over_) {
    if (!ready_at_) ready_at_ = now;
    not_ready_at_.reset();
  } else {
    if (!not_ready_at_) not_ready_at_ = ready_at_ ? now : accepted_;
    ready_at_.reset();
  }
  if (over_ || !admitted_) return std::nullopt;
  std::optional<Time> next;
  auto consider = [&](Time t) {
    if (!next || t < *next) next = t;
  };
  if (!held_ && *begin_ > now) consider(*begin_);
  if (deadline_ && !stopping_) consider(accepted_ + *deadline_);
  for (const Run& run : runs_) {
    if (run.until && *run.until > now) consider(*run.until);
  }
  return next;
}

void PodRun::stop(Duration grace, Time now) {
  if (over_) return;
  const Duration takes = stop_after_.value_or(times_.stop);
  const bool killed = takes > grace;
  const Time end_at = now + (killed ? grace : takes);
  for (Run& run : runs_) {
    if (run.state == State::kRunning) {
      // A process that ends by itself before that keeps its own exit code.
      if (run.until && *run.until <= end_at) {
        if (!stopping_) run.exit_code = run.role == Role::kApp ? exit_code_ : 0;
        continue;
      }
      run.until = end_at;
      run.exit_code = killed ? kSigKill : kSigTerm;
    } else if (run.state == State::kWaiting) {
      run.until.reset();
      killed_ |= run.role == Role::kApp;
    }
  }
  stopping_ = true;
  ++revision_;
}

// One container, from its status.
void PodRun::recover_run(Run& run, const Value& status, Time now) {
  run.restarts = static_cast<int>(std::clamp<int64_t>(status["restartCount"].as_int(), 0, 1 << 20));
  auto time_of = [now](const Value& text) {
    return base::parse_rfc3339(text.as_string()).value_or(now);
  };
  const Value& state = status["state"];
  if (state.contains("running")) {
    run.state = State::kRunning;
    run.started = time_of(state["running"]["startedAt"]);
    run.since = run.started;
  } else if (state.contains("terminated")) {
    run.state = State::kTerminated;
    run.exit_code = static_cast<int>(state["terminated"]["exitCode"].as_int());
    run.started = time_of(state["terminated"]["startedAt"]);
    run.since = time_of(state["terminated"]["finishedAt"]);
    run.reason = run.exit_code == 0 ? "Completed" : "Error";
  }
}

void PodRun::recover(const kube::Object& pod, Time now) {
  if (over_ || !admitted_) return;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Value& status : pod.get("status", list).items()) {
      const auto run = std::ranges::find(runs_, status["name"].as_string(), &Run::name);
      if (run != runs_.end()) recover_run(*run, status, now);
    }
  }
  if (auto started = base::parse_rfc3339(pod.get("status", "startTime").as_string()))
    accepted_ = *started;
  crash(now);
}

void PodRun::crash(Time now) {
  if (over_ || !admitted_) return;
  begin_ = now + times_.start;
  for (Run& run : runs_) {
    if (run.state != State::kRunning) continue;
    end(run, kSigKill, now);
    if (run.role == Role::kInit || restarts(run)) {
      run.last = terminated(run);
      run.state = State::kWaiting;
      run.reason = "ContainerCreating";
      run.until = *begin_;
      ++run.restarts;
    }
  }
  ++revision_;
}

// The pod's sandbox stands: its first container has started or may.
bool PodRun::sandboxed() const {
  return std::ranges::any_of(
      runs_, [](const Run& run) { return run.state != State::kWaiting || run.restarts > 0; });
}

std::string_view PodRun::phase() const {
  if (over_) {
    const bool failed = killed_ || std::ranges::any_of(runs_, [](const Run& run) {
                          return run.role == Role::kApp && run.exit_code != 0;
                        });
    return failed ? "Failed" : "Succeeded";
  }
  if (!admitted_) return "Pending";
  const bool began = std::ranges::any_of(runs_, [](const Run& run) {
    return run.role == Role::kApp && (run.state != State::kWaiting || run.restarts > 0);
  });
  return began ? "Running" : "Pending";
}

Value PodRun::terminated(const Run& run) const {
  return Value::object({{"exitCode", run.exit_code},
                        {"reason", run.exit_code == 0 ? "Completed" : "Error"},
                        {"startedAt", base::to_rfc3339(run.started)},
                        {"finishedAt", base::to_rfc3339(run.since)},
                        {"containerID", "simulated://" + run.name}});
}

Value PodRun::container_status(const Run& run) const {
  Value state;
  switch (run.state) {
    case State::kWaiting:
      state = Value::object({{"waiting", Value::object({{"reason", run.reason}})}});
      break;
    case State::kRunning:
      state = Value::object(
          {{"running", Value::object({{"startedAt", base::to_rfc3339(run.started)}})}});
      break;
    case State::kTerminated:
      state = Value::object({{"terminated", terminated(run)}});
      break;
  }
  const bool running = run.state == State::kRunning;
  const bool init_done =
      run.role == Role::kInit && run.state == State::kTerminated && run.exit_code == 0;
  Value out = Value::object(
      {{"name", run.name},
       {"image", run.image},
       {"imageID", ""},
       {"ready", running || init_done},
       {"started", running},
       {"restartCount", run.restarts},
       {"state", std::move(state)},
       {"lastState", run.last ? Value::object({{"terminated", *run.last}}) : Value::object()}});
  if (run.state != State::kWaiting) out.set("containerID", "simulated://" + run.name);
  const auto devices = devices_.by_container.find(run.name);
  if (devices != devices_.by_container.end()) {
    std::map<std::string_view, Value> lists;
    for (const Device& device : devices->second) {
      lists[device.resource].push_back(
          Value::object({{"resourceID", device.id}, {"health", "Healthy"}}));
    }
    Value& all = out.ref("allocatedResourcesStatus");
    for (auto& [resource, list] : lists) {
      all.push_back(Value::object({{"name", resource}, {"resources", list}}));
    }
  }
  return out;
}

Value PodRun::statuses(bool init) const {
  Value out = Value::array();
  for (const Run& run : runs_) {
    if ((run.role != Role::kApp) == init) out.push_back(container_status(run));
  }
  return out;
}

Value PodRun::status() const {
  Value conditions = Value::array();
  const std::string_view now_phase = phase();
  const bool done = now_phase == "Succeeded";
  const std::string_view why = done ? "PodCompleted" : over_ ? "PodFailed" : "ContainersNotReady";
  const Time since = ready_at_.value_or(not_ready_at_.value_or(accepted_));
  const bool is_ready = ready_at_.has_value();
  const bool began = admitted_ && sandboxed();
  conditions.push_back(
      condition("PodReadyToStartContainers", began && !over_, accepted_, generation_));
  conditions.push_back(condition("Initialized", initialized() || done,
                                 initialized_at_.value_or(accepted_), generation_,
                                 done ? "PodCompleted" : ""));
  conditions.push_back(condition("Ready", is_ready, since, generation_, is_ready ? "" : why));
  conditions.push_back(
      condition("ContainersReady", is_ready, since, generation_, is_ready ? "" : why));
  Value out = Value::object({{"phase", now_phase},
                             {"conditions", std::move(conditions)},
                             {"startTime", base::to_rfc3339(accepted_)},
                             {"reason", reason_.empty() ? Value() : Value(reason_)},
                             {"message", message_.empty() ? Value() : Value(message_)}});
  if (generation_ > 0) out.set("observedGeneration", generation_);
  if (!admitted_) return out;
  out.set("containerStatuses", statuses(false));
  if (runs_.front().role != Role::kApp) out.set("initContainerStatuses", statuses(true));
  out.set("hostIP", host_ip_);
  out.set("hostIPs", Value::array({Value::object({{"ip", host_ip_}})}));
  if (began) {
    out.set("podIP", pod_ip_);
    out.set("podIPs", Value::array({Value::object({{"ip", pod_ip_}})}));
  }
  return out;
}

}  // namespace tessera::sim
