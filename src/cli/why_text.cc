// A WhyAnswer as text and as JSON.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/why_view.h"

namespace tessera::cli {
namespace {

constexpr size_t kGangsShown = 8;
constexpr size_t kPlacesShown = 16;

std::string line(std::string_view what, std::string_view text) {
  return fmt::format("  {:<15}{}\n", what, text);
}

std::string places_text(const WhyGang& gang) {
  std::string out;
  for (size_t i = 0; i < gang.places.size() && i < kPlacesShown; ++i) {
    const WhyPlace& at = gang.places[i];
    out += line(i == 0 ? "On:" : "",
                fmt::format("{}: {}{}", at.node, at.pod,
                            at.gpus.empty() ? "" : fmt::format(" with GPU {}", at.gpus)));
  }
  if (gang.places.size() > kPlacesShown)
    out += line("", fmt::format("and {} more", gang.places.size() - kPlacesShown));
  if (gang.since) out += line("Since:", base::to_rfc3339(*gang.since));
  return out;
}

std::string_view state_of(const WhyGang& gang) {
  if (gang.waiting > 0) return "waiting";
  if (gang.running > 0) return "running";
  if (gang.starting > 0) return "starting";
  if (gang.going > 0) return "ending";
  return gang.failed > 0 ? "failed" : "succeeded";
}

std::string counts_text(const WhyGang& gang) {
  std::vector<std::string> parts;
  const std::pair<int64_t, std::string_view> all[] = {
      {gang.waiting, "waiting"},     {gang.starting, "starting"},   {gang.running, "running"},
      {gang.going, "being deleted"}, {gang.succeeded, "succeeded"}, {gang.failed, "failed"}};
  for (const auto& [count, what] : all) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string gang_text(const WhyGang& gang) {
  std::string out;
  if (gang.verdict) {
    out = scheduler::to_text(*gang.verdict);
    const int64_t all = gang.waiting + gang.starting + gang.running;
    if (gang.verdict->members < all)
      out +=
          line("Note:", fmt::format("this counts {} of its {} pods: the others came after it was "
                                    "written, or may not be placed yet",
                                    gang.verdict->members, all));
  } else if (gang.waiting > 0) {
    out = fmt::format("{} waits\n", gang.job);
    out += line("Verdict:", gang.instead);
    out +=
        line("Condition:", gang.condition.empty()
                               ? fmt::format("pod {} has no PodScheduled condition yet", gang.pod)
                               : gang.condition);
  } else if (gang.running + gang.starting > 0) {
    out = fmt::format("{} {}\n", gang.job, gang.running > 0 ? "runs" : "has its place and starts");
  } else if (gang.going > 0) {
    out = fmt::format("{} is being deleted\n", gang.job);
  } else {
    out = fmt::format("{} has finished\n", gang.job);
  }
  const int64_t all =
      gang.waiting + gang.starting + gang.running + gang.going + gang.succeeded + gang.failed;
  if (all > 1 || (gang.waiting == 0 && gang.places.empty()))
    out += line("Pods:", counts_text(gang));
  return out + places_text(gang);
}

}  // namespace

json::Value to_json(const WhyAnswer& answer) {
  using json::Value;
  Value gangs = Value::array();
  for (const WhyGang& gang : answer.gangs) {
    Value one = Value::object({{"job", gang.job}, {"state", state_of(gang)}});
    one.set("pods", Value::object({{"waiting", gang.waiting},
                                   {"starting", gang.starting},
                                   {"running", gang.running},
                                   {"ending", gang.going},
                                   {"succeeded", gang.succeeded},
                                   {"failed", gang.failed}}));
    if (gang.verdict) one.set("verdict", scheduler::to_json(*gang.verdict));
    if (!gang.instead.empty()) one.set("noVerdict", gang.instead);
    if (!gang.condition.empty()) one.set("condition", gang.condition);
    Value places = Value::array();
    for (const WhyPlace& at : gang.places) {
      Value place = Value::object({{"pod", at.pod}, {"node", at.node}});
      if (!at.gpus.empty()) place.set("gpus", at.gpus);
      places.push_back(std::move(place));
    }
    one.set("places", std::move(places));
    if (gang.since) one.set("since", base::to_rfc3339(*gang.since));
    gangs.push_back(std::move(one));
  }
  Value events = Value::array();
  for (const WhyEvent& event : answer.events)
    events.push_back(Value::object({{"time", event.time},
                                    {"reason", event.reason},
                                    {"pod", event.pod},
                                    {"message", event.message}}));
  Value out = Value::object({{"what", answer.title}, {"gangs", gangs}, {"evictions", events}});
  if (!answer.state.empty()) out.set("state", answer.state);
  return out;
}

std::string render(const WhyAnswer& answer) {
  std::string out;
  if (answer.gangs.empty()) out = fmt::format("{} {}\n", answer.title, answer.state);
  if (answer.gangs.size() > 1) {
    std::map<std::string_view, int64_t> states;
    for (const WhyGang& gang : answer.gangs) ++states[state_of(gang)];
    std::vector<std::string> parts;
    for (const auto& [state, count] : states) parts.push_back(fmt::format("{} {}", count, state));
    out = fmt::format("{} has {} parts that are placed each on its own: {}\n", answer.title,
                      answer.gangs.size(), fmt::join(parts, ", "));
  }
  for (size_t i = 0; i < answer.gangs.size() && i < kGangsShown; ++i)
    out += gang_text(answer.gangs[i]);
  if (answer.gangs.size() > kGangsShown)
    out += fmt::format("and {} more\n", answer.gangs.size() - kGangsShown);
  for (size_t i = 0; i < answer.events.size(); ++i) {
    const WhyEvent& event = answer.events[i];
    out += line(i == 0 ? "Evicted:" : "",
                fmt::format("{} {} ({}): {}", event.time, event.pod, event.reason, event.message));
  }
  return out;
}

}  // namespace tessera::cli
