// tessera scheduler: the scheduler alone, against any cluster.
//
// Threads: the scheduler, HTTP (one for each of its clients), and this one, which waits for the signal that ends it.

#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "base/file.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/scheduler_process.h"
#include "kube/kubeconfig.h"

namespace tessera::cli {
namespace {

constexpr const char* kAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

struct SchedulerArgs {
  std::string kubeconfig;
  std::vector<std::string> names;
  std::string policy;
  std::string config;
  std::string config_map;
  std::string lease_ns;
  bool no_election = false;
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

std::string identity() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) name[0] = '\0';
  base::Random random(base::entropy());
  return fmt::format("{}_{}", name[0] != '\0' ? name : "tessera", random.uuid());
}

base::Result<SchedulerProcess::Options> options_of(const SchedulerArgs& args) {
  const bool told = !args.config.empty() || !args.config_map.empty();
  if (!args.config.empty() && !args.config_map.empty())
    return base::error(base::Code::kInvalid, "--config and --config-map: give one of them");
  if (told && (!args.names.empty() || !args.policy.empty())) {
    return base::error(base::Code::kInvalid,
                       "--name and --policy: with a configuration they belong into it, as "
                       "schedulerNames and policy");
  }
  SchedulerProcess::Options out;
  out.file = args.config;
  if (!args.config_map.empty()) {
    const size_t slash = args.config_map.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == args.config_map.size() ||
        args.config_map.find('/', slash + 1) != std::string::npos) {
      return base::error(base::Code::kInvalid, "--config-map {}: write NAMESPACE/NAME",
                         args.config_map);
    }
    out.map_ns = args.config_map.substr(0, slash);
    out.map_name = args.config_map.substr(slash + 1);
  }
  if (!args.names.empty()) out.config.scheduler_names = args.names;
  if (!args.policy.empty()) {
    TS_TRY(out.config.policy, scheduler::core::parse_policy(args.policy));
  }
  TS_TRY(auto cluster, find_cluster(args.kubeconfig));
  const bool in_pod = cluster.context == "in-cluster";
  out.cluster = std::move(cluster.client);
  out.cluster.proxy = has_proxy();
  out.cluster.connections_max = static_cast<int>(args.connections);
  out.lease_ns = args.lease_ns;
  if (in_pod) out.pod_ns = cluster.ns;
  out.election = !args.no_election;
  out.identity = identity();
  return out;
}

int run_scheduler(const SchedulerArgs& args) {
  base::set_log_level(args.verbose ? base::LogLevel::kDebug : base::LogLevel::kInfo);
  auto options = options_of(args);
  if (!options) return fail(options.error());
  const EndSignals end;

  base::LoopThread loop("scheduler");
  SchedulerProcess process(std::move(*options), loop);
  if (const auto started = process.start(); !started) {
    loop.stop();
    return fail(started.error());
  }
  end.wait();
  process.stop();
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
            "Placement policy: fgd, bestfit, packing, clustering, dotprod, random (fgd)")
      .text("--config", args->config, "File with a SchedulerConfig, read again when it changes")
      .text("--config-map", args->config_map,
            "NAMESPACE/NAME of a ConfigMap with it instead, key config.yaml")
      .text("--lease-namespace", args->lease_ns,
            "Where the Lease of the leader is (that of the pod this runs in, or kube-system)")
      .flag("--no-leader-election", args->no_election, "Work without a Lease: no other may run")
      .number("--connections", args->connections, 1, 256, "Calls to the API at once")
      .flag("--verbose", args->verbose, "Log more");
  command.run([args] { return run_scheduler(*args); });
}

}  // namespace tessera::cli
