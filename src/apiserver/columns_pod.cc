#include <algorithm>

#include "apiserver/columns.h"

namespace tessera::apiserver {
namespace {

using json::Value;

// What the columns READY, STATUS and RESTARTS say of a pod.
struct PodSummary {
  int64_t containers = 0;
  int64_t ready = 0;
  std::string status;
  int64_t restarts = 0;
  std::string restarted_at;  // RFC 3339 in UTC: the text compares as the time does
};

bool has_condition(const Value& pod, std::string_view type) {
  for (const Value& condition : pod["status"]["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition["status"].as_string() == "True";
  }
  return false;
}

bool is_sidecar(const Value& pod, std::string_view name) {
  const auto containers = pod["spec"]["initContainers"].items();
  return std::ranges::any_of(containers, [&](const Value& c) {
    return c["name"].as_string() == name && c["restartPolicy"].as_string() == "Always";
  });
}

void count_restarts(const Value& status, int64_t& restarts, std::string& at) {
  restarts += status["restartCount"].as_int();
  at = std::max(at, status.get("lastState", "terminated", "finishedAt").str());
}

std::string end_of(const Value& terminated) {
  if (!terminated["reason"].as_string().empty()) return terminated["reason"].str();
  if (terminated["signal"].as_int() != 0) {
    return fmt::format("Signal:{}", terminated["signal"].as_int());
  }
  return fmt::format("ExitCode:{}", terminated["exitCode"].as_int());
}

// What an init container that is not done yet says; empty where it is done.
std::string init_status(const Value& pod, const Value& status, size_t index, PodSummary& summary) {
  const Value& terminated = status["state"]["terminated"];
  const Value& waiting = status["state"]["waiting"];
  if (terminated.is_object() && terminated["exitCode"].as_int() == 0) return {};
  if (is_sidecar(pod, status["name"].as_string()) && status["started"].as_bool()) {
    summary.ready += status["ready"].as_bool() ? 1 : 0;
    return {};
  }
  if (terminated.is_object()) return "Init:" + end_of(terminated);
  const std::string reason = waiting["reason"].str();
  if (!reason.empty() && reason != "PodInitializing") return "Init:" + reason;
  return fmt::format("Init:{}/{}", index, pod["spec"]["initContainers"].size());
}

// True while init containers are at work; sidecars' restarts are collected apart, since they alone count afterwards.
bool summarize_init(const Value& pod, PodSummary& summary, PodSummary& sidecars) {
  const Value& statuses = pod["status"]["initContainerStatuses"];
  for (size_t i = 0; i < statuses.size(); ++i) {
    const Value& status = statuses.at(i);
    count_restarts(status, summary.restarts, summary.restarted_at);
    if (is_sidecar(pod, status["name"].as_string())) {
      count_restarts(status, sidecars.restarts, sidecars.restarted_at);
    }
    std::string text = init_status(pod, status, i, summary);
    if (text.empty()) continue;
    summary.status = std::move(text);
    return true;
  }
  return false;
}

void summarize_containers(const Value& pod, PodSummary& summary) {
  bool running = false;
  std::string error;
  const Value& statuses = pod["status"]["containerStatuses"];
  for (size_t i = statuses.size(); i-- > 0;) {
    const Value& status = statuses.at(i);
    const Value& state = status["state"];
    count_restarts(status, summary.restarts, summary.restarted_at);
    if (!state["waiting"]["reason"].as_string().empty()) {
      summary.status = state["waiting"]["reason"].str();
    } else if (state["terminated"].is_object()) {
      summary.status = end_of(state["terminated"]);
      if (state["terminated"]["exitCode"].as_int() != 0) error = summary.status;
    } else if (status["ready"].as_bool() && state["running"].is_object()) {
      running = true;
      ++summary.ready;
    }
  }
  if (summary.status != "Completed") return;
  if (running && has_condition(pod, "Ready")) {
    summary.status = "Running";
  } else if (!error.empty()) {
    summary.status = error;
  } else if (running) {
    summary.status = "NotReady";
  }
}

std::string first_status(const Value& pod) {
  const Value& status = pod["status"];
  for (const Value& condition : status["conditions"].items()) {
    if (condition["type"].as_string() == "PodScheduled" &&
        condition["reason"].as_string() == "SchedulingGated") {
      return "SchedulingGated";
    }
  }
  return status["reason"].as_string().empty() ? status["phase"].str() : status["reason"].str();
}

PodSummary summarize(const Value& pod) {
  PodSummary summary;
  PodSummary sidecars;
  summary.status = first_status(pod);
  summary.containers = static_cast<int64_t>(pod["spec"]["containers"].size());
  for (const Value& container : pod["spec"]["initContainers"].items()) {
    summary.containers += container["restartPolicy"].as_string() == "Always" ? 1 : 0;
  }
  const bool initializing = summarize_init(pod, summary, sidecars);
  if (!initializing || has_condition(pod, "Initialized")) {
    summary.restarts = sidecars.restarts;
    summary.restarted_at = sidecars.restarted_at;
    summarize_containers(pod, summary);
  }
  if (!pod["metadata"].contains("deletionTimestamp")) return summary;
  const std::string_view phase = pod["status"]["phase"].as_string();
  if (pod["status"]["reason"].as_string() == "NodeLost") {
    summary.status = "Unknown";
  } else if (phase != "Succeeded" && phase != "Failed") {
    summary.status = "Terminating";
  }
  return summary;
}

std::string restarts_text(const PodSummary& summary, base::Time now) {
  if (summary.restarts == 0 || summary.restarted_at.empty()) {
    return fmt::format("{}", summary.restarts);
  }
  return fmt::format("{} ({} ago)", summary.restarts, since(Value(summary.restarted_at), now));
}

std::string readiness_gates(const Value& pod) {
  const Value& gates = pod["spec"]["readinessGates"];
  if (gates.empty()) return "<none>";
  int good = 0;
  for (const Value& gate : gates.items()) {
    good += has_condition(pod, gate["conditionType"].as_string()) ? 1 : 0;
  }
  return fmt::format("{}/{}", good, gates.size());
}

Value or_none(const Value& text) {
  return text.as_string().empty() ? Value("<none>") : text;
}

}  // namespace

std::vector<Column> pod_columns() {
  return {
      name_column(),
      text_column("Ready",
                  [](const kube::Object& pod, base::Time) {
                    const PodSummary summary = summarize(pod.json());
                    return Value(fmt::format("{}/{}", summary.ready, summary.containers));
                  }),
      text_column("Status", [](const kube::Object& pod,
                               base::Time) { return Value(summarize(pod.json()).status); }),
      text_column("Restarts",
                  [](const kube::Object& pod, base::Time now) {
                    return Value(restarts_text(summarize(pod.json()), now));
                  }),
      age_column(),
      wide_column("IP",
                  [](const kube::Object& pod, base::Time) {
                    const Value& list = pod.get("status", "podIPs");
                    return or_none(list.empty() ? pod.get("status", "podIP") : list.at(0)["ip"]);
                  }),
      wide_column("Node", [](const kube::Object& pod,
                             base::Time) { return or_none(pod.get("spec", "nodeName")); }),
      wide_column("Nominated Node",
                  [](const kube::Object& pod, base::Time) {
                    return or_none(pod.get("status", "nominatedNodeName"));
                  }),
      wide_column("Readiness Gates", [](const kube::Object& pod, base::Time) {
        return Value(readiness_gates(pod.json()));
      })};
}

}  // namespace tessera::apiserver
