// tessera top: the cluster at a glance, once or live.

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <memory>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/top_view.h"

namespace tessera::cli {
namespace {

struct TopArgs {
  std::string kubeconfig = default_kubeconfig();
  bool watch = false;
  std::string show_for;
};

base::Result<std::vector<kube::Object>> list(Session& session, const char* resource) {
  kube::Request request;
  request.verb = kube::Verb::kList;
  request.gvr = kube::core_v1(resource);
  TS_TRY(const json::Value reply, session.call(request));
  std::vector<kube::Object> out;
  for (const json::Value& item : reply["items"].items()) out.emplace_back(item);
  return out;
}

base::Result<Picture> look(Session& session) {
  TS_TRY(const auto nodes, list(session, "nodes"));
  TS_TRY(const auto pods, list(session, "pods"));
  return summarize(nodes, pods);
}

// Ends the wait early when a signal came.
volatile std::sig_atomic_t g_stop = 0;

void wait(Session& session, base::Duration d) {
  auto promise = std::make_shared<std::promise<void>>();
  auto future = promise->get_future();
  session.executor().post_after(d, [promise] { promise->set_value(); });
  future.wait();
}

int top(const TopArgs& args) {
  base::Duration length{INT64_MAX};
  if (!args.show_for.empty()) {
    auto parsed = base::parse_duration(args.show_for);
    if (!parsed) return fail(parsed.error().in("--for"));
    length = *parsed;
  }
  auto session = Session::open(args.kubeconfig);
  if (!session) return fail(session.error());
  const bool live = args.watch && ::isatty(STDOUT_FILENO) == 1;
  std::signal(SIGINT, [](int) { g_stop = 1; });
  std::signal(SIGTERM, [](int) { g_stop = 1; });
  const base::SystemClock clock;
  const base::Duration start = clock.monotonic();
  if (live) fmt::print("\x1b[?25l\x1b[2J");
  int status = 0;
  while (true) {
    auto picture = look(**session);
    if (!picture) {
      status = fail(picture.error());
      break;
    }
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size = {50, 140, 0, 0};
    const bool brief = args.watch && !live;
    const std::string text = render(*picture, size.ws_col, size.ws_row - 1, live);
    fmt::print("{}{}{}", live ? "\x1b[H\x1b[J" : "",
               brief ? text.substr(0, text.find('\n') + 1) : text, "");
    std::fflush(stdout);
    const bool over = g_stop != 0 || clock.monotonic() - start >= length;
    if (!args.watch || over) {
      if (brief) fmt::print("{}", text);
      break;
    }
    wait(**session, live ? base::millis(500) : base::seconds(2));
  }
  if (live) fmt::print("\x1b[?25h");
  return status;
}

}  // namespace

void add_top(CommandLine& line) {
  auto args = std::make_shared<TopArgs>();
  Command& command = line.command("top", "Show nodes, GPUs, namespaces and why pods wait");
  command.text("--kubeconfig", args->kubeconfig, "Which cluster")
      .flag("--watch", args->watch, "Keep showing")
      .text("--for", args->show_for, "End the watch after this time, as 30s");
  command.run([args] { return top(*args); });
}

}  // namespace tessera::cli
