// tessera snapshot: what the scheduler knows of a cluster, as one file.

#include "scheduler/snapshot.h"

#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/live_objects.h"
#include "cli/session.h"

namespace tessera::cli {
namespace {

struct SnapshotArgs {
  std::string kubeconfig = default_kubeconfig();
  std::string output;
};

int snapshot(const SnapshotArgs& args) {
  auto session = Session::open(args.kubeconfig);
  if (!session) return fail(session.error());
  const auto taken = take_snapshot(**session, base::SystemClock().now());
  if (!taken) return fail(taken.error());
  const std::string text = scheduler::to_text(*taken);
  if (args.output.empty() || args.output == "-") {
    fmt::print("{}", text);
  } else {
    if (const auto done = base::write_file(args.output, text, 0600); !done)
      return fail(done.error());
    fmt::print("{}: {} objects\n", args.output, taken->objects.size());
  }
  for (const std::string& kind : taken->left_out) fmt::print(stderr, "left out: {}\n", kind);
  return 0;
}

}  // namespace

void add_snapshot(CommandLine& line) {
  auto args = std::make_shared<SnapshotArgs>();
  Command& command =
      line.command("snapshot", "Save what the scheduler reads of a cluster, for `tessera plan`");
  command.text("-o,--output", args->output, "File, readable by you alone (standard output)")
      .text("--kubeconfig", args->kubeconfig, "Which cluster");
  command.run([args] { return snapshot(*args); });
}

}  // namespace tessera::cli
