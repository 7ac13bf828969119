// tessera scheduler: the scheduler alone, against any cluster.
//
// Three threads: HTTP, the scheduler, and this one, which waits for the signal that ends it.

#include "scheduler/scheduler.h"

#include <csignal>
#include <cstdlib>
#include <memory>

#include "base/file.h"
#include "base/log.h"
#include "cli/commands.h"
#include "kube/http_client.h"
#include "kube/kubeconfig.h"

namespace tessera::cli {
namespace {

constexpr const char* kAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

struct SchedulerArgs {
  std::string kubeconfig;
  std::vector<std::string> names;
  std::string policy = "fgd";
  int64_t connections = 16;
  bool verbose = false;
};

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The file that was named, else the cluster that this process runs in, else the user's own file.
base::Result<kube::Kubeconfig> find_cluster(const std::string& given) {
  const std::string named = given.empty() ? env("KUBECONFIG") : given;
  if (!named.empty()) return kube::load_kubeconfig(named);
  if (const std::string host = env("KUBERNETES_SERVICE_HOST"); !host.empty()) {
    return kube::in_cluster_config(host, env("KUBERNETES_SERVICE_PORT"), kAccountFolder);
  }
  auto config = kube::load_kubeconfig(env("HOME") + "/.kube/config");
  if (!config && config.error().code == base::Code::kNotFound) {
    return base::error(base::Code::kNotFound, "{}; name a cluster with --kubeconfig or $KUBECONFIG",
                       config.error().message);
  }
  return config;
}

// Whether the API answers, so that a wrong address or certificate is told at once.
void tell_when_connected(kube::Client& client, const std::string& url) {
  kube::Request request;
  request.verb = kube::Verb::kList;
  request.gvr = kube::core_v1("nodes");
  request.query = {{"limit", "1"}};
  client.call(std::move(request), [url](const kube::Reply& reply) {
    if (reply) {
      base::log_info("connected url={}", url);
    } else {
      base::log_warn("cannot list nodes yet, trying on: {}", reply.error().message);
    }
  });
}

int run_scheduler(const SchedulerArgs& args) {
  base::set_log_level(args.verbose ? base::LogLevel::kDebug : base::LogLevel::kInfo);
  const auto policy = scheduler::core::parse_policy(args.policy);
  if (!policy) return fail(policy.error());
  auto config = find_cluster(args.kubeconfig);
  if (!config) return fail(config.error());
  // Blocked before any thread starts, so that only sigwait below gets them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  base::SystemClock clock;
  base::LoopThread loop("scheduler");
  config->client.proxy = has_proxy();
  config->client.connections_max = static_cast<int>(args.connections);
  const std::string url = config->client.base_url;
  kube::HttpClient client(std::move(config->client), loop, kube::Detail::kLean);
  scheduler::Scheduler::Options options;
  if (!args.names.empty()) options.names = args.names;
  options.policy = *policy;
  scheduler::Scheduler scheduler(client, loop, clock, base::Random(base::entropy()),
                                 std::move(options));
  tell_when_connected(client, url);
  scheduler.start();
  int signal = 0;
  sigwait(&signals, &signal);
  base::log_info("stopping signal={}", signal);
  loop.stop();
  return 0;
}

}  // namespace

void add_scheduler(CommandLine& line) {
  auto args = std::make_shared<SchedulerArgs>();
  Command& command =
      line.command("scheduler", "Schedule the pods of a cluster, until Ctrl-C or SIGTERM");
  command
      .text("--kubeconfig", args->kubeconfig,
            "The cluster; else $KUBECONFIG, the cluster this runs in, or ~/.kube/config")
      .texts("--name", args->names, "schedulerName of the pods served, more than once (tessera)")
      .text("--policy", args->policy,
            "Placement policy: fgd, bestfit, packing, clustering, dotprod, random")
      .number("--connections", args->connections, 1, 256, "Calls to the API at once")
      .flag("--verbose", args->verbose, "Log more");
  command.run([args] { return run_scheduler(*args); });
}

}  // namespace tessera::cli
