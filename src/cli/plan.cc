// tessera plan: what would become of a job, or of the cluster, if. Writes nothing.

#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/live_objects.h"
#include "cli/manifests.h"
#include "cli/session.h"
#include "scheduler/config.h"
#include "scheduler/config_options.h"
#include "scheduler/what_if.h"

namespace tessera::cli {
namespace {

struct PlanArgs {
  std::string kubeconfig = default_kubeconfig();
  std::vector<std::string> files;
  std::string ns;
  std::string snapshot;
  std::string config;
  std::vector<std::string> names;
  std::vector<std::string> add_nodes;
  std::vector<std::string> quotas;
  std::vector<std::string> evict;
  std::vector<std::string> drain;
  std::string output;
};

constexpr size_t kSnapshotBytesMax = size_t{2} << 30;

// Lists are cut at commas when they are read: what begins no item of its own goes on with the one before.
template <class Begins>
std::vector<std::string> rejoined(const std::vector<std::string>& parts, Begins begins) {
  std::vector<std::string> out;
  for (const std::string& part : parts) {
    if (out.empty() || begins(part)) {
      out.push_back(part);
    } else {
      out.back() += "," + part;
    }
  }
  return out;
}

base::Result<scheduler::Changes> changes_of(const PlanArgs& args) {
  scheduler::Changes out;
  for (const std::string& path : args.files) {
    TS_TRY(std::vector<Manifest> manifests, read_manifests(path));
    for (Manifest& manifest : manifests) out.manifests.push_back(std::move(manifest.object));
  }
  const auto counts = [](const std::string& text) { return text[0] >= '0' && text[0] <= '9'; };
  for (const std::string& text : rejoined(args.add_nodes, counts)) {
    TS_TRY(scheduler::AddNodes nodes, scheduler::parse_add_nodes(text));
    out.add_nodes.push_back(std::move(nodes));
  }
  const auto names = [](const std::string& text) { return text.find('=') != std::string::npos; };
  for (const std::string& text : rejoined(args.quotas, names)) {
    TS_TRY(scheduler::SetAmounts quota, scheduler::parse_set_amounts(text));
    out.quotas.push_back(std::move(quota));
  }
  out.evict = args.evict;
  out.drain = args.drain;
  return out;
}

base::Result<scheduler::WhatIfOptions> options_of(const PlanArgs& args,
                                                  const scheduler::Snapshot& snapshot) {
  scheduler::WhatIfOptions out;
  out.now = snapshot.taken;
  out.model.names = snapshot.scheduler_names;
  if (!args.config.empty()) {
    TS_TRY(const std::string text, base::read_file(args.config, scheduler::kConfigBytesMax));
    TS_TRY(const scheduler::SchedulerConfig config, scheduler::parse_config(text, args.config));
    out.model.names = config.scheduler_names;
    out.model.engine = scheduler::engine_options(config);
    out.evictions = config.evictions;
    if (config.shard) {
      out.model.shard_key = config.shard->key;
      out.model.shard_value = config.shard->value;
    }
  }
  if (!args.names.empty()) out.model.names = args.names;
  if (out.model.names.empty()) out.model.names = {"tessera"};
  return out;
}

base::Result<scheduler::Snapshot> look(const PlanArgs& args, std::string& ns) {
  if (!args.snapshot.empty()) {
    TS_TRY(const std::string text, base::read_file(args.snapshot, kSnapshotBytesMax));
    auto read = scheduler::parse_snapshot(text);
    if (!read) return base::error(read.error().in(args.snapshot));
    return read;
  }
  TS_TRY(const auto session, Session::open(args.kubeconfig));
  ns = session->ns();
  return take_snapshot(*session, base::SystemClock().now());
}

base::Result<scheduler::WhatIfAnswer> answer(const PlanArgs& args) {
  TS_TRY(scheduler::Changes changes, changes_of(args));
  if (changes.manifests.empty() && changes.add_nodes.empty() && changes.quotas.empty() &&
      changes.evict.empty() && changes.drain.empty())
    return base::error(base::Code::kBadRequest,
                       "nothing to plan: give a manifest with -f, or a change such as "
                       "--add-nodes 2, --drain NODE, --evict JOB or --set-quota QUEUE=gpu:8");
  TS_TRY(const scheduler::Snapshot snapshot, look(args, changes.ns));
  if (!args.ns.empty()) changes.ns = args.ns;
  TS_TRY(const scheduler::WhatIfOptions options, options_of(args, snapshot));
  return scheduler::what_if(snapshot, changes, options);
}

int plan(const PlanArgs& args) {
  if (!args.output.empty() && args.output != "json")
    return fail({base::Code::kBadRequest,
                 fmt::format("-o {}: json is the only other form", args.output),
                 {}});
  const auto found = answer(args);
  if (!found) return fail(found.error());
  fmt::print("{}", args.output == "json" ? scheduler::to_json(*found).dump_pretty() + "\n"
                                         : scheduler::to_text(*found));
  return 0;
}

}  // namespace

void add_plan(CommandLine& line) {
  auto args = std::make_shared<PlanArgs>();
  Command& command = line.command(
      "plan", "Say what would happen if a job came or the cluster changed; nothing is written");
  command.texts("-f,--filename", args->files, "Manifests that would be created: files or folders")
      .text("-n,--namespace", args->ns, "Namespace of what names none (that of the kubeconfig)")
      .text("--snapshot", args->snapshot, "A file of `tessera snapshot` (the live cluster)")
      .texts("--add-nodes", args->add_nodes, "More nodes: 2, 2:LIKE-NODE or 2:model=H200,gpus=8")
      .texts("--drain", args->drain, "Nodes that would be emptied")
      .texts("--evict", args->evict, "Pods, groups or owners that would have to leave")
      .texts("--set-quota", args->quotas, "Queues with another quota: research=gpu:8,cpu:64")
      .text("--config", args->config, "The scheduler's SchedulerConfig (as built in)")
      .texts("--scheduler-name", args->names, "Names that tessera serves (as the pods show)")
      .text("-o,--output", args->output, "json: for tools")
      .text("--kubeconfig", args->kubeconfig, "Which cluster");
  command.run([args] { return plan(*args); });
}

}  // namespace tessera::cli
