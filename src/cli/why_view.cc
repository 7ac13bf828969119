#include "cli/why_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "json/parse.h"
#include "kube/pod_phase.h"
#include "scheduler/conditions.h"
#include "scheduler/group_reading.h"
#include "scheduler/watched_kinds.h"

namespace tessera::cli {
namespace {

using base::Code;
using kube::Object;
using scheduler::Group;
using scheduler::ObjectName;

struct ShortName {
  std::string_view text;
  std::string_view kind;
};
constexpr ShortName kShortNames[] = {{"po", "pod"},          {"deploy", "deployment"},
                                     {"sts", "statefulset"}, {"rs", "replicaset"},
                                     {"ds", "daemonset"},    {"cj", "cronjob"},
                                     {"pg", "podgroup"},     {"lws", "leaderworkerset"}};

std::string small(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// By what name a pod answers to the target: the smaller, the better. Nothing: it is none of it.
struct Match {
  int rank = 0;
  ObjectName name{};
};

int rank_of(std::string_view kind) {
  if (kind == "Pod") return 0;
  if (kind == "Job") return 1;
  return kind == "PodGroup" ? 2 : 3;
}

struct Member {
  Object pod{};
  Group group{};
  std::vector<ObjectName> names{};  // the pod, its group's object, its owners
};

std::optional<Match> match_of(const WhyTarget& target, const Member& member) {
  std::optional<Match> best;
  for (const ObjectName& name : member.names) {
    if (name.name != target.name) continue;
    if (!target.kind.empty() && !is_kind(target, name.api_version, name.kind)) continue;
    const int rank = rank_of(name.kind);
    if (!best || rank < best->rank) best = Match{rank, name};
  }
  return best;
}

Member member_of(const Object& pod, const scheduler::GroupSources& sources) {
  Member out{pod, scheduler::read_group(pod, sources), {}};
  out.names.push_back({"v1", "Pod", std::string(pod.ns()), std::string(pod.name())});
  if (!out.group.object.kind.empty()) out.names.push_back(out.group.object);
  for (const scheduler::Owner& owner : scheduler::context_of(pod, sources).owners)
    out.names.push_back(owner.name);
  return out;
}

std::string_view phase_of(const Object& pod) {
  return pod.get("status", "phase").as_string();
}

bool waits(const Object& pod) {
  return !kube::has_ended(pod) && !pod.deleting() &&
         pod.get("spec", "nodeName").as_string().empty();
}

std::optional<base::Time> placed_at(const Object& pod) {
  for (const json::Value* text :
       {&scheduler::condition_of(pod["status"], "PodScheduled")["lastTransitionTime"],
        &pod.get("status", "startTime")}) {
    const auto time = base::parse_rfc3339(text->as_string());
    if (time) return *time;
  }
  return std::nullopt;
}

std::optional<scheduler::Verdict> verdict_on(const Object& pod) {
  const auto root = json::parse(pod.annotation(scheduler::kVerdictAnnotation));
  if (!root) return std::nullopt;
  auto verdict = scheduler::parse_verdict(*root);
  if (!verdict || verdict->sentence.empty()) return std::nullopt;
  return std::move(*verdict);
}

// No verdict stands on any pod of the gang: what can be told all the same.
void tell_otherwise(const Object& pod, WhyGang& out) {
  out.pod = pod.name();
  const json::Value& condition = scheduler::condition_of(pod["status"], "PodScheduled");
  if (condition["status"].as_string() == "False")
    out.condition =
        fmt::format("{}: {}", condition["reason"].as_string(), condition["message"].as_string());
  std::vector<std::string> gates;
  for (const json::Value& gate : pod.get("spec", "schedulingGates").items())
    gates.push_back(gate["name"].str());
  const std::string_view name = pod.get("spec", "schedulerName").as_string();
  if (!gates.empty()) {
    out.instead = fmt::format(
        "scheduling gates keep it from every scheduler until they are taken "
        "off: {}",
        fmt::join(gates, ", "));
  } else if (name == "tessera") {
    out.instead =
        "the scheduler has not written a verdict: it has just come, or the scheduler "
        "does not run";
  } else {
    out.instead = fmt::format(
        "no verdict is stored: schedulerName is \"{}\", whose scheduler may "
        "be another one than tessera",
        name);
  }
}

void count(const Object& pod, WhyGang& out) {
  const std::string_view phase = phase_of(pod);
  if (phase == "Succeeded") {
    ++out.succeeded;
  } else if (phase == "Failed") {
    ++out.failed;
  } else if (pod.deleting()) {
    ++out.going;
  } else if (waits(pod)) {
    ++out.waiting;
  } else {
    ++(phase == "Running" ? out.running : out.starting);
    out.places.push_back({std::string(pod.name()), pod.get("spec", "nodeName").str(),
                          std::string(pod.annotation("tessera.dev/gpus"))});
    const auto at = placed_at(pod);
    if (at && (!out.since || *at < *out.since)) out.since = at;
  }
}

WhyGang gang_of(const std::vector<const Member*>& members) {
  WhyGang out;
  out.job = members.front()->group.spec.name;
  const Object* waiting = nullptr;
  for (const Member* member : members) {
    count(member->pod, out);
    if (!waits(member->pod)) continue;
    if (waiting == nullptr) waiting = &member->pod;
    if (!out.verdict) out.verdict = verdict_on(member->pod);
  }
  if (waiting != nullptr && !out.verdict) tell_otherwise(*waiting, out);
  return out;
}

// Evictions of these pods, or of such that came before them under the same owner.
bool concerns(const json::Value& event, const WhyAnswer& answer, const ObjectName& what) {
  const std::string_view pod = event.get("involvedObject", "name").as_string();
  if (pod == what.name || (what.kind != "Pod" && pod.starts_with(what.name + "-"))) return true;
  return std::ranges::any_of(answer.gangs, [&](const WhyGang& gang) {
    return std::ranges::any_of(gang.places, [&](const WhyPlace& at) { return at.pod == pod; });
  });
}

void add_events(const WhyWorld& world, const ObjectName& what, WhyAnswer& out) {
  constexpr size_t kEventsShown = 5;
  for (const Object& event : world.events) {
    if (!concerns(event.json(), out, what)) continue;
    std::string_view time = event["lastTimestamp"].as_string();
    if (time.empty()) time = event["eventTime"].as_string();
    out.events.push_back({std::string(time), event["reason"].str(),
                          event.get("involvedObject", "name").str(), event["message"].str()});
  }
  std::ranges::stable_sort(out.events,
                           [](const auto& a, const auto& b) { return a.time > b.time; });
  if (out.events.size() > kEventsShown) out.events.resize(kEventsShown);
}

std::string state_without_pods(const Object& object) {
  if (object.get("spec", "suspend").as_bool() ||
      object.get("spec", "runPolicy", "suspend").as_bool())
    return "is suspended: it has no pods until spec.suspend is false";
  for (const json::Value& condition : object.get("status", "conditions").items()) {
    if (condition["status"].as_string() != "True") continue;
    const std::string_view type = condition["type"].as_string();
    if (type == "Complete" || type == "Succeeded" || type == "Completed")
      return fmt::format("has finished well at {}", condition["lastTransitionTime"].as_string());
    if (type == "Failed")
      return fmt::format("has failed at {}: {}", condition["lastTransitionTime"].as_string(),
                         condition["message"].as_string());
  }
  return "has no pods: its controller has made none yet, or does not run";
}

std::string title_of(const ObjectName& name) {
  return fmt::format("{} {}/{}", name.kind, name.ns, name.name);
}

}  // namespace

base::Result<WhyTarget> parse_target(std::string_view text) {
  WhyTarget out;
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view kind = text.substr(0, slash);
    const size_t dot = kind.find('.');
    out.kind = small(kind.substr(0, dot));
    if (dot != std::string_view::npos) out.group = small(kind.substr(dot + 1));
    for (const ShortName& known : kShortNames) {
      if (known.text == out.kind) out.kind = known.kind;
    }
    if (out.kind == "vcjob" || out.kind == "vj") {
      out.kind = "job";
      out.group = "batch.volcano.sh";
    }
  }
  out.name = text.substr(slash == std::string_view::npos ? 0 : slash + 1);
  if (out.name.empty() || out.name.find('/') != std::string::npos ||
      (slash != std::string_view::npos && out.kind.empty()))
    return base::error(Code::kBadRequest,
                       "\"{}\" names no job: give a name, or kind/name such as job/train", text);
  return out;
}

bool is_kind(const WhyTarget& target, std::string_view api_version, std::string_view kind) {
  if (!target.group.empty() && target.group != scheduler::group_of(api_version)) return false;
  const std::string one = small(kind);
  if (target.kind == one || target.kind == one + "s") return true;
  return std::ranges::any_of(scheduler::watched_kinds(), [&](const auto& known) {
    return known.kind == kind && known.resource == target.kind;
  });
}

base::Result<WhyAnswer> explain(const WhyTarget& target, const WhyWorld& world) {
  std::vector<std::pair<Match, Member>> found;
  int best = 9;
  for (const Object& pod : world.pods) {
    Member member = member_of(pod, world.sources);
    const auto match = match_of(target, member);
    if (!match) continue;
    best = std::min(best, match->rank);
    found.emplace_back(*match, std::move(member));
  }
  WhyAnswer out;
  ObjectName what;
  std::vector<std::string> order;
  std::map<std::string, std::vector<const Member*>> gangs;
  for (const auto& [match, member] : found) {
    if (match.rank != best) continue;
    if (what.name.empty()) what = match.name;
    if (gangs[member.group.key].empty()) order.push_back(member.group.key);
    gangs[member.group.key].push_back(&member);
  }
  for (const std::string& key : order) out.gangs.push_back(gang_of(gangs[key]));
  std::ranges::stable_sort(out.gangs, std::greater(), [](const auto& g) { return g.waiting > 0; });
  if (out.gangs.empty()) {
    const Object* named = nullptr;
    for (const Object& object : world.named) {
      if (named == nullptr || rank_of(object.kind()) < rank_of(named->kind())) named = &object;
    }
    if (named == nullptr)
      return base::error(
          Code::kNotFound,
          "namespace \"{}\" has no {} \"{}\": look with `kubectl get pods -n {}`, or name another "
          "namespace with -n",
          world.ns, target.kind.empty() ? "pod, job, PodGroup or owner" : target.kind, target.name,
          world.ns);
    what = {std::string(named->api_version()), std::string(named->kind()), world.ns, target.name};
    out.state = state_without_pods(*named);
  }
  out.title = title_of(what);
  add_events(world, what, out);
  return out;
}

}  // namespace tessera::cli
