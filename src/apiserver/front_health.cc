#include "apiserver/front_health.h"

#include <algorithm>
#include <vector>

#include "base/log.h"

namespace tessera::apiserver {
namespace {

struct Check {
  std::string_view name;
  base::Status status;
};

std::vector<Check> checks_of(std::string_view page, const Api& api) {
  std::vector<Check> out;
  const base::Status healthy = api.healthy();
  out.push_back({"ping", {}});
  out.push_back({"store", healthy});
  if (page == "readyz") {
    const bool closing = !healthy && healthy.error().code == base::Code::kUnavailable;
    out.push_back({"shutdown", closing ? healthy : base::Status()});
  }
  return out;
}

std::vector<std::string> excluded_by(const Query& query) {
  std::vector<std::string> out;
  for (const auto& [key, value] : query) {
    if (key == "exclude") out.push_back(value);
  }
  return out;
}

HealthAnswer one_check(const std::vector<Check>& checks, std::string_view name) {
  const auto found = std::ranges::find(checks, name, &Check::name);
  if (found == checks.end()) return {404, {}};
  if (found->status) return {200, "ok"};
  return {500, "internal server error: " + found->status.error().message + "\n"};
}

// Names that were to be left out and are not there, as Kubernetes lists them: "a", "b".
std::string unknown_names(const std::vector<std::string>& excluded,
                          const std::vector<Check>& checks) {
  std::string out;
  for (const std::string& name : excluded) {
    if (std::ranges::find(checks, name, &Check::name) != checks.end()) continue;
    out.append(out.empty() ? "" : ", ").append("\"").append(name.substr(0, 64)).append("\"");
  }
  return out;
}

}  // namespace

bool is_health_path(std::span<const std::string> segments) {
  return !segments.empty() && segments.size() <= 2 &&
         (segments[0] == "healthz" || segments[0] == "livez" || segments[0] == "readyz");
}

HealthAnswer health_answer(std::span<const std::string> segments, const Query& query,
                           const Api& api) {
  const std::vector<Check> checks = checks_of(segments[0], api);
  if (segments.size() == 2) return one_check(checks, segments[1]);
  const std::vector<std::string> excluded = excluded_by(query);
  std::string text;
  bool failed = false;
  for (const Check& check : checks) {
    if (std::ranges::find(excluded, check.name) != excluded.end()) {
      text += fmt::format("[+]{} excluded: ok\n", check.name);
    } else if (check.status) {
      text += fmt::format("[+]{} ok\n", check.name);
    } else {
      failed = true;
      base::log_warn("health check failed page={} check={} error={}", segments[0], check.name,
                     check.status.error().message);
      text += fmt::format("[-]{} failed: reason withheld\n", check.name);
    }
  }
  if (failed) return {500, fmt::format("{}{} check failed\n", text, segments[0])};
  const bool verbose =
      std::ranges::any_of(query, [](const auto& pair) { return pair.first == "verbose"; });
  if (!verbose) return {200, "ok"};
  const std::string unknown = unknown_names(excluded, checks);
  if (!unknown.empty()) {
    text += "warn: some health checks cannot be excluded: no matches for " + unknown + "\n";
  }
  return {200, fmt::format("{}{} check passed\n", text, segments[0])};
}

}  // namespace tessera::apiserver
