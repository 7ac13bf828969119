// tessera why: why a job waits, or what became of it.

#include <memory>

#include "cli/commands.h"
#include "cli/live_objects.h"
#include "cli/session.h"
#include "cli/why_view.h"

namespace tessera::cli {
namespace {

struct WhyArgs {
  std::string kubeconfig = default_kubeconfig();
  std::string job;
  std::string ns;
  std::string output;
};

constexpr const char* kEvictions[] = {"Preempted", "Reclaimed", "GangBroken"};

// Objects of the name that the target may mean, of the kinds that we know.
std::vector<kube::Object> named(LiveObjects& live, const WhyTarget& target, const std::string& ns) {
  std::vector<kube::Object> out;
  for (const scheduler::WatchedKind& kind : scheduler::watched_kinds()) {
    const std::string api_version = kind.gvr(kind.known_versions().front()).api_version();
    const bool meant = target.kind.empty()
                           ? !kind.kind.ends_with("Queue") && !kind.kind.ends_with("Class") &&
                                 kind.kind != "Namespace" && kind.kind != "PodDisruptionBudget"
                           : is_kind(target, api_version, kind.kind);
    if (!meant) continue;
    if (kube::Object found = live.find(kind.group, kind.kind, ns, target.name); found)
      out.push_back(std::move(found));
  }
  return out;
}

base::Result<WhyAnswer> look(Session& session, const WhyArgs& args) {
  TS_TRY(const WhyTarget target, parse_target(args.job));
  LiveObjects live(session);
  WhyWorld world;
  world.ns = args.ns.empty() ? session.ns() : args.ns;
  TS_TRY(world.pods, live.list(kube::core_v1("pods"), "Pod", world.ns));
  for (const char* reason : kEvictions) {
    auto events =
        live.list(kube::core_v1("events"), "Event", world.ns, std::string("reason=") + reason);
    if (!events) continue;  // they only add to the answer
    for (kube::Object& event : *events) {
      if (event.get("source", "component").as_string() == "tessera-scheduler")
        world.events.push_back(std::move(event));
    }
  }
  world.sources = live.sources();
  auto answer = explain(target, world);
  if (!answer && answer.error().code == base::Code::kNotFound) {
    world.named = named(live, target, world.ns);
    answer = explain(target, world);
  }
  // What a job belongs to may be hidden from who asks.
  for (const std::string& problem : live.problems()) fmt::print(stderr, "not read: {}\n", problem);
  return answer;
}

int why(const WhyArgs& args) {
  if (!args.output.empty() && args.output != "json")
    return fail({base::Code::kBadRequest,
                 fmt::format("-o {}: json is the only other form", args.output),
                 {}});
  auto session = Session::open(args.kubeconfig);
  if (!session) return fail(session.error());
  const auto answer = look(**session, args);
  if (!answer) return fail(answer.error());
  fmt::print("{}", args.output == "json" ? to_json(*answer).dump_pretty() + "\n" : render(*answer));
  return 0;
}

}  // namespace

void add_why(CommandLine& line) {
  auto args = std::make_shared<WhyArgs>();
  Command& command = line.command("why", "Say why a job waits, where it runs or how it ended");
  command.text("JOB", args->job, "Name, or kind/name: job/train, podgroup/a, pod/train-0", true)
      .text("-n,--namespace", args->ns, "Namespace (that of the kubeconfig)")
      .text("-o,--output", args->output, "json: for tools")
      .text("--kubeconfig", args->kubeconfig, "Which cluster");
  command.run([args] { return why(*args); });
}

}  // namespace tessera::cli
