#include "cli/scheduler_process.h"

#include <future>

#include "base/log.h"
#include "scheduler/config_options.h"

namespace tessera::cli {

using base::Duration;
using json::Value;

namespace {

constexpr Duration kLookEvery = base::millis(20);

}  // namespace

SchedulerProcess::SchedulerProcess(Options options, base::LoopThread& loop)
    : options_(std::move(options)), loop_(loop) {
  client_ = client(options_.cluster.request_timeout, options_.cluster.connections_max);
}

SchedulerProcess::~SchedulerProcess() = default;

std::unique_ptr<kube::HttpClient> SchedulerProcess::client(Duration timeout, int connections) {
  http::ClientOptions cluster = options_.cluster;
  cluster.request_timeout = timeout;
  cluster.connections_max = connections;
  return std::make_unique<kube::HttpClient>(std::move(cluster), loop_, kube::Detail::kLean);
}

base::Status SchedulerProcess::start() {
  auto begun = std::make_shared<std::promise<base::Status>>();
  loop_.post([this, begun] { begun->set_value(begin()); });
  return begun->get_future().get();
}

base::Status SchedulerProcess::begin() {
  tell_when_connected();
  recorder_ =
      std::make_unique<kube::EventRecorder>(*client_, clock_, random_.fork(), "tessera-scheduler");
  scheduler::ConfigSource::Handlers handlers;
  handlers.on_config = [this](const auto& config) { on_config(config); };
  handlers.on_refused = [this](const base::Error& error) { on_refused(error); };
  if (!options_.file.empty()) {
    source_ = scheduler::ConfigSource::from_file(loop_, options_.file, std::move(handlers));
  } else if (!options_.map_name.empty()) {
    source_ = scheduler::ConfigSource::from_config_map(
        *client_, loop_, random_.fork(), options_.map_ns, options_.map_name, std::move(handlers));
  }
  if (source_) return source_->start();
  on_config(options_.config);
  return {};
}

// Whether the API answers, so that a wrong address or certificate is told at once.
void SchedulerProcess::tell_when_connected() {
  kube::Request request;
  request.verb = kube::Verb::kList;
  request.gvr = kube::core_v1("nodes");
  request.query = {{"limit", "1"}};
  client_->call(std::move(request), [url = options_.cluster.base_url](const kube::Reply& reply) {
    if (reply) {
      base::log_info("connected url={}", url);
    } else {
      base::log_warn("cannot list nodes yet, trying on: {}", reply.error().message);
    }
  });
}

void SchedulerProcess::on_config(const scheduler::SchedulerConfig& config) {
  if (!scheduler_) return make(config);
  base::log_info("configuration taken over");
  scheduler_->reconfigure(scheduler::scheduler_options(config));
}

// On the object itself, where whoever wrote it looks. Of several processes the leader says it.
void SchedulerProcess::on_refused(const base::Error& error) {
  if (options_.map_name.empty() || (election_ && !leading())) return;
  client_->get(kube::core_v1("configmaps"), options_.map_ns, options_.map_name,
               [this, message = error.message](const kube::Reply& reply) {
                 if (!reply) return;
                 Value map = *reply;
                 map.set("apiVersion", "v1");
                 map.set("kind", "ConfigMap");
                 recorder_->warning(kube::Object(map), "ConfigRefused", message);
               });
}

void SchedulerProcess::make(const scheduler::SchedulerConfig& config) {
  scheduler::Scheduler::Options scheduling = scheduler::scheduler_options(config);
  const bool elected = options_.election && config.leader_election.enabled;
  if (elected) {
    write_timeout_ = scheduler::request_timeout(config.leader_election);
    writes_ = client(write_timeout_, options_.cluster.connections_max);
    scheduling.leading = [this] { return leading(); };
    scheduling.write_timeout = write_timeout_;
    scheduling.writes = writes_.get();
    scheduling.writes_in_flight_max = static_cast<size_t>(options_.cluster.connections_max);
  }
  scheduler_ = std::make_unique<scheduler::Scheduler>(*client_, loop_, clock_, random_.fork(),
                                                      std::move(scheduling));
  scheduler_->start();
  if (elected) elect(config);
}

void SchedulerProcess::elect(const scheduler::SchedulerConfig& config) {
  kube::LeaderElection::Options lease = scheduler::leader_options(config, options_.identity);
  if (config.leader_election.ns.empty() && !options_.pod_ns.empty()) lease.ns = options_.pod_ns;
  if (!options_.lease_ns.empty()) lease.ns = options_.lease_ns;
  base::log_info("standing for election lease={}/{} identity={}", lease.ns, lease.name,
                 lease.identity);
  lease_ = client(lease.request_timeout, 2);
  kube::LeaderElection::Handlers handlers;
  handlers.on_started = [this](int64_t) { scheduler_->lead(); };
  handlers.on_lost = [this](const std::string&) { scheduler_->stand_by(); };
  handlers.on_new_leader = [own = lease.identity](const std::string& holder) {
    if (holder != own) base::log_info("standing by leader={}", holder);
  };
  election_ = std::make_unique<kube::LeaderElection>(*lease_, loop_, clock_, random_.fork(), lease,
                                                     std::move(handlers));
  if (const auto started = election_->start(); !started)
    base::log_error("{}", started.error().message);  // its options came from a checked document
}

bool SchedulerProcess::leading() const {
  return !ending_ && election_ && election_->leading();
}

void SchedulerProcess::stop() {
  auto ended = std::make_shared<std::promise<void>>();
  auto once = std::make_shared<bool>(false);
  const auto done = [ended, once] {
    if (!std::exchange(*once, true)) ended->set_value();
  };
  loop_.post([this, done] {
    source_.reset();
    // With no answer the Lease runs out by itself.
    loop_.post_after(write_timeout_ * 2, done);
    end(done);
  });
  ended->get_future().wait();
  loop_.stop();
}

// The Lease is emptied when no write of this process can follow.
void SchedulerProcess::end(std::function<void()> done) {
  if (!election_) return done();
  ending_ = true;
  scheduler_->stand_by();
  await_writes([this, done = std::move(done)] { election_->stop(done); });
}

void SchedulerProcess::await_writes(std::function<void()> done) {
  loop_.post_after(kLookEvery, [this, done = std::move(done)] {
    if (scheduler_->stats().writing == 0) return done();
    await_writes(done);
  });
}

}  // namespace tessera::cli
