// tessera up: the whole stack in one process on a simulated fleet.
//
// Seven threads: HTTP, the API's commits, requests in turn by user, the audit log, controllers, scheduler, kubelets. Each component lives on its own executor with
// its own LocalClient; they meet only in the API.

#include <future>
#include <memory>

#include "apiserver/api.h"
#include "apiserver/audit.h"
#include "apiserver/controllers.h"
#include "apiserver/definitions.h"
#include "apiserver/flow.h"
#include "apiserver/front.h"
#include "apiserver/local_client.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/commands.h"
#include "scheduler/config_options.h"
#include "scheduler/config_source.h"
#include "scheduler/scheduler.h"
#include "sim/fleet.h"
#include "sim/kubelet.h"
#include "sim/provisioner.h"

namespace tessera::cli {
namespace {

struct UpOptions {
  int64_t nodes = 24;
  std::string fleet_path;
  std::string data_dir = default_data_dir();
  int64_t port = 0;
  std::string kubeconfig;
  std::string policy;
  std::string scheduler_config;
  bool no_scheduler = false;
  bool verbose = false;
  bool no_audit_log = false;
  int64_t requests_max = 64;
  int64_t user_queue_max = 256;
};

base::Result<sim::Fleet> load_fleet(const UpOptions& options) {
  if (options.fleet_path.empty() && options.nodes == 0) return sim::Fleet{};
  if (options.fleet_path.empty()) return sim::default_fleet(static_cast<int>(options.nodes));
  TS_TRY(const std::string text, base::read_file(options.fleet_path, size_t{16} << 20));
  auto fleet = sim::parse_fleet(text);
  if (!fleet) return base::error(fleet.error().in(options.fleet_path));
  return fleet;
}

// The parts of the process, in the order in which they start; they end in reverse.
class Stack {
 public:
  explicit Stack(const UpOptions& options) : options_(options) {}
  ~Stack() { stop(); }

  base::Status start() {
    TS_TRY(const auto policy,
           scheduler::core::parse_policy(options_.policy.empty() ? "fgd" : options_.policy));
    if (!options_.scheduler_config.empty() && !options_.policy.empty()) {
      return base::error(base::Code::kInvalid,
                         "--policy: with --scheduler-config it belongs into the file");
    }
    TS_TRY(sim::Fleet fleet, load_fleet(options_));
    TS_TRY_STATUS(base::make_dirs(options_.data_dir, 0700));
    TS_TRY(const auto pki, apiserver::load_or_make_pki(options_.data_dir + "/pki", clock_));
    apiserver::Api::Options api;
    api.data_dir = options_.data_dir + "/store";
    api.clock = &clock_;
    api.executor = &commits_;
    api.random = random_.fork();
    api.token_key_pem = pki.token_key_pem;
    TS_TRY_STATUS(base::make_dirs(api.data_dir, 0700));
    TS_TRY(api_, apiserver::Api::open(std::move(api)));
    make_components(pki, std::move(fleet));
    if (kubelets_ && !options_.no_scheduler) TS_TRY_STATUS(make_scheduler(policy));
    const auto defined = kubelets_ ? define_kinds() : nullptr;
    TS_TRY_STATUS(serve(pki));
    // The scheduler watches these kinds, and who is told "ready" may use them.
    if (defined) defined->get_future().wait();
    start_components();
    shown_certificate_ = pki.server_certificate_pem;
    renew_later();
    return write_kubeconfig(pki);
  }

  void stop() {
    if (server_) server_->stop();
    requests_.stop();
    kubelet_loop_.stop();
    scheduler_loop_.stop();
    controller_loop_.stop();
    if (api_) api_->close();
    commits_.stop();
    audit_loop_.stop();
  }

  std::string url() const { return fmt::format("https://127.0.0.1:{}", server_->port()); }
  std::string kubeconfig_path() const {
    return options_.kubeconfig.empty() ? options_.data_dir + "/kubeconfig" : options_.kubeconfig;
  }

 private:
  base::Status serve(const apiserver::Pki& pki) {
    apiserver::FlowControl::Options flow;
    flow.executor = &requests_;
    flow.running_max = static_cast<size_t>(options_.requests_max);
    flow.queue_max = static_cast<size_t>(options_.user_queue_max);
    flow_ = std::make_unique<apiserver::FlowControl>(flow);
    if (!options_.no_audit_log) {
      apiserver::AuditLog::Options audit;
      audit.path = options_.data_dir + "/audit.log";
      audit.executor = &audit_loop_;
      audit.clock = &clock_;
      TS_TRY(audit_, apiserver::AuditLog::open(std::move(audit)));
    }
    apiserver::FrontOptions front;
    front.random = random_.fork();
    front.audit = audit_.get();
    front.flow = flow_.get();
    front.logs = kubelets_.get();
    front_ = std::make_unique<apiserver::Front>(*api_, std::move(front));
    http::ServerOptions http;
    http.port = static_cast<uint16_t>(options_.port);
    http.certificate_pem = pki.server_certificate_pem;
    http.private_key_pem = pki.server_key_pem;
    http.client_ca_pem = pki.ca_certificate_pem;
    http.refusal = apiserver::refusal;
    server_ = std::make_unique<http::Server>(
        http, [this](http::Request request, std::shared_ptr<http::Responder> responder) {
          front_->handle(std::move(request), std::move(responder));
        });
    return server_->start();
  }

  apiserver::LocalClient* client(base::Executor& executor, std::string_view name) {
    clients_.push_back(
        std::make_unique<apiserver::LocalClient>(*api_, executor, apiserver::system_caller(name)));
    return clients_.back().get();
  }

  // It is the only one here, and stands for no election.
  base::Status make_scheduler(scheduler::core::Policy policy) {
    const auto make = [this](scheduler::Scheduler::Options scheduling) {
      scheduler_ = std::make_unique<scheduler::Scheduler>(*client(scheduler_loop_, "scheduler"),
                                                          scheduler_loop_, clock_, random_.fork(),
                                                          std::move(scheduling));
    };
    if (options_.scheduler_config.empty()) {
      scheduler::Scheduler::Options scheduling;
      scheduling.names = {"tessera", "default-scheduler"};
      scheduling.policy = policy;
      make(std::move(scheduling));
      return {};
    }
    scheduler::ConfigSource::Handlers handlers;
    handlers.on_config = [this, make](const scheduler::SchedulerConfig& config) {
      auto scheduling = scheduler::scheduler_options(config);
      if (scheduler_) return scheduler_->reconfigure(std::move(scheduling));
      make(std::move(scheduling));  // before start() returns
    };
    config_ = scheduler::ConfigSource::from_file(scheduler_loop_, options_.scheduler_config,
                                                 std::move(handlers));
    return config_->start();
  }

  void make_components(const apiserver::Pki& pki, sim::Fleet fleet) {
    apiserver::Controllers::Options controlling;
    controlling.kinds = &api_->kinds();
    controlling.root_ca_pem = pki.ca_certificate_pem;
    controllers_ = std::make_unique<apiserver::Controllers>(
        *client(controller_loop_, "kube-controller-manager"), controller_loop_, clock_,
        random_.fork(), controlling);
    if (fleet.nodes.empty()) return;
    kubelets_ =
        std::make_unique<sim::Kubelets>(*client(kubelet_loop_, "kubelets"), kubelet_loop_, clock_,
                                        random_.fork(), std::move(fleet), sim::Kubelets::Options{});
    provisioner_ = std::make_unique<sim::Provisioner>(
        *client(kubelet_loop_, "provisioner"), kubelet_loop_, clock_, random_.fork(),
        sim::Provisioner::Options{.default_class = true});
  }

  // The kinds of config/crd: what is missing is told, the rest works without it.
  std::shared_ptr<std::promise<void>> define_kinds() {
    auto ended = std::make_shared<std::promise<void>>();
    apiserver::install_definitions(*clients_.front(), controller_loop_,
                                   apiserver::builtin_definitions(),
                                   [ended](const base::Status& status) {
                                     if (!status) base::log_error("{}", status.error().message);
                                     ended->set_value();
                                   });
    return ended;
  }

  void start_components() {
    controllers_->start();
    if (scheduler_) scheduler_->start();
    if (kubelets_) kubelets_->start();
    if (provisioner_) provisioner_->start();
  }

  // Certificates that end within a month are made anew, however long the process runs.
  void renew_later() {
    audit_loop_.post_after(base::seconds(12 * 3600), [this] {
      if (const auto done = renew(); !done) {
        base::log_error("certificates cannot be renewed: {}", done.error().message);
      }
      renew_later();
    });
  }

  base::Status renew() {
    TS_TRY(const auto pki, apiserver::load_or_make_pki(options_.data_dir + "/pki", clock_));
    if (pki.server_certificate_pem == shown_certificate_) return {};
    TS_TRY_STATUS(server_->use_certificate(pki.server_certificate_pem, pki.server_key_pem));
    shown_certificate_ = pki.server_certificate_pem;
    base::log_info("serving certificate renewed");
    return write_kubeconfig(pki);
  }

  base::Status write_kubeconfig(const apiserver::Pki& pki) {
    return base::write_file(kubeconfig_path(), apiserver::kubeconfig(pki, url()), 0600);
  }

  UpOptions options_;
  std::string shown_certificate_;
  base::SystemClock clock_;
  base::Random random_{base::entropy()};
  base::LoopThread audit_loop_{"audit-log"};
  std::unique_ptr<apiserver::AuditLog> audit_;
  base::LoopThread commits_{"api-commits"};
  base::LoopThread requests_{"api-requests"};
  base::LoopThread controller_loop_{"controllers"};
  base::LoopThread scheduler_loop_{"scheduler"};
  base::LoopThread kubelet_loop_{"kubelets"};
  std::unique_ptr<apiserver::Api> api_;
  std::unique_ptr<apiserver::FlowControl> flow_;
  std::unique_ptr<apiserver::Front> front_;
  std::unique_ptr<http::Server> server_;
  std::vector<std::unique_ptr<apiserver::LocalClient>> clients_;
  std::unique_ptr<apiserver::Controllers> controllers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<scheduler::ConfigSource> config_;
  std::unique_ptr<sim::Kubelets> kubelets_;
  std::unique_ptr<sim::Provisioner> provisioner_;
};

int up(const UpOptions& options) {
  base::set_log_level(options.verbose ? base::LogLevel::kDebug : base::LogLevel::kInfo);
  const EndSignals end;
  Stack stack(options);
  if (auto status = stack.start(); !status) return fail(status.error());
  fmt::print("ready {}\n", stack.url());
  fmt::print("kubeconfig {}\n", stack.kubeconfig_path());
  fmt::print(
      "This is an embedded Kubernetes API for trying, testing and simulating on one machine;\n"
      "GPUs and kubelets are simulated. End it with Ctrl-C.\n");
  std::fflush(stdout);
  end.wait();
  stack.stop();
  return 0;
}

}  // namespace

void add_up(CommandLine& line) {
  auto options = std::make_shared<UpOptions>();
  Command& command = line.command("up", "Start everything in this process on a simulated fleet");
  command
      .number("--nodes", options->nodes, 0, sim::kFleetNodesMax,
              "Nodes of the built-in fleet; 0 leaves scheduler and kubelets out")
      .text("--fleet", options->fleet_path, "Fleet file, instead of --nodes")
      .text("--data", options->data_dir, "Folder of the store, keys and certificates")
      .number("--port", options->port, 0, 65535, "HTTPS port on loopback; 0 takes a free one")
      .text("--kubeconfig", options->kubeconfig, "Where to write the kubeconfig (DATA/kubeconfig)")
      .text("--policy", options->policy,
            "Placement policy: fgd, bestfit, packing, clustering, dotprod, random (fgd)")
      .text("--scheduler-config", options->scheduler_config,
            "File with a SchedulerConfig, read again when it changes")
      .flag("--no-scheduler", options->no_scheduler,
            "Leave the scheduler out: another is to be started with 'tessera scheduler'")
      .flag("--no-audit-log", options->no_audit_log, "Do not write DATA/audit.log")
      .number("--requests-max", options->requests_max, 1, 4096,
              "Requests that run at once; system:masters are not counted")
      .number("--user-queue-max", options->user_queue_max, 1, 65536,
              "Requests of one user that may wait; more are refused with 429")
      .flag("--verbose", options->verbose, "Log more");
  command.run([options] { return up(*options); });
}

}  // namespace tessera::cli
