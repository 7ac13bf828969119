// The scheduler as a process against a cluster: its clients, its configuration as it changes, its part in the election.
//
// Shape:   start() reads the configuration and goes to work, or stands by. With an election writes and the Lease go over
//          connections of their own: a write is sent at once or not at all, and a renewal waits behind nothing.
//          stop() sends nothing new, waits for what is under way, and gives the Lease up.
// Errors:  start(): a configuration file that is missing or bad. Later versions that are bad change nothing: they are logged,
//          and one in a ConfigMap is told there by an Event.
// Threads: start() and stop() from one thread; all else on the executor.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "kube/events.h"
#include "kube/http_client.h"
#include "kube/leader.h"
#include "scheduler/config.h"
#include "scheduler/config_source.h"
#include "scheduler/scheduler.h"

namespace tessera::cli {

class SchedulerProcess {
 public:
  struct Options {
    http::ClientOptions cluster;
    std::string file;                   // its configuration, or
    std::string map_ns, map_name;       // the ConfigMap, or
    scheduler::SchedulerConfig config;  // as it is
    std::string lease_ns;               // instead of what the configuration says
    std::string pod_ns;                 // where it says nothing
    bool election = true;               // off: whatever the configuration says
    std::string identity;
  };

  SchedulerProcess(Options options, base::LoopThread& loop);
  ~SchedulerProcess();
  base::Status start();
  void stop();

 private:
  base::Status begin();
  void on_config(const scheduler::SchedulerConfig& config);
  void on_refused(const base::Error& error);
  void make(const scheduler::SchedulerConfig& config);
  void elect(const scheduler::SchedulerConfig& config);
  bool leading() const;
  void end(std::function<void()> done);
  void await_writes(std::function<void()> done);
  void tell_when_connected();
  std::unique_ptr<kube::HttpClient> client(base::Duration timeout, int connections);

  Options options_;
  base::LoopThread& loop_;
  base::SystemClock clock_;
  base::Random random_{base::entropy()};
  std::unique_ptr<kube::HttpClient> client_;
  std::unique_ptr<kube::HttpClient> writes_;
  std::unique_ptr<kube::HttpClient> lease_;
  std::unique_ptr<kube::EventRecorder> recorder_;
  std::unique_ptr<kube::LeaderElection> election_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<scheduler::ConfigSource> source_;
  base::Duration write_timeout_ = base::seconds(4);
  bool ending_ = false;
};

}  // namespace tessera::cli
