// The life of one pod on a simulated node: containers that start, run, fail, restart and stop as the kubelet does it.
//
// Shape:   a state machine on handed-in time. step(now) makes every transition that is due and says when the next one is;
//          status() is what the kubelet would report. Annotations steer it: tessera.dev/run-for (a duration; without it
//          containers run until stopped), tessera.dev/exit-code, tessera.dev/init-run-for, tessera.dev/stop-after (how
//          long the process takes to end after SIGTERM).
// Units:   base::Time of the world's clock.
// Errors:  make() answers kBadRequest for an annotation that cannot be read, naming it.
// Threads: one owner.
// Source:  Kubernetes pod lifecycle (phases, restart policy, back-off 10 s doubling to 5 min, reset after 10 min);
//          KEP-753 (sidecars).
// Does not model: probes, images, what is in volumes, logs; a container that runs is ready.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "sim/devices.h"

namespace tessera::kube {
struct Pod;
}

namespace tessera::sim {

struct RunTimes {
  base::Duration start = base::millis(200);  // sandbox, image, start of the first container
  base::Duration stop =
      base::millis(100);  // how long a process takes to end where no annotation says so
};

class PodRun {
 public:
  static base::Result<PodRun> make(const kube::Pod& pod, const RunTimes& times);

  // What the pod asks of the node's devices.
  const PodAsk& ask() const { return ask_; }

  void admit(PodDevices devices, std::string pod_ip, std::string host_ip, base::Time now);
  // Refused by the kubelet: "OutOfcpu", "UnexpectedAdmissionError".
  void reject(std::string reason, std::string message, base::Time now);
  // Takes up what the API says of a pod that ran here before this kubelet started: the machine was away, as in crash().
  void recover(const kube::Object& pod, base::Time now);
  // Its volumes are not there (yet): no container starts until they are.
  void hold(bool missing, base::Time now);
  // SIGTERM to all, SIGKILL after `grace`. A second call can only make it sooner.
  void stop(base::Duration grace, base::Time now);
  // The node lost power and is back: every process is gone.
  void crash(base::Time now);

  // Makes what is due and answers when to be called again; nothing: only an outside event changes anything.
  std::optional<base::Time> step(base::Time now);

  bool admitted() const { return admitted_; }
  bool stopping() const { return stopping_; }
  // No container runs and none will: devices are free again.
  bool over() const { return over_; }
  std::string_view phase() const;
  // Counts up with every change that status() shows.
  uint64_t revision() const { return revision_; }
  // The status to report, as a strategic merge patch: conditions of others (PodScheduled) stay as they are.
  json::Value status() const;

 private:
  enum class State : uint8_t { kWaiting, kRunning, kTerminated };
  struct Run {
    std::string name;
    std::string image;
    ContainerAsk::Role role = ContainerAsk::Role::kApp;
    State state = State::kWaiting;
    std::string reason = "PodInitializing";
    base::Time since = {};
    std::optional<base::Time> until = {};  // when it ends, or starts again
    int exit_code = 0;
    int restarts = 0;
    int failures = 0;  // in a row, for the back-off
    base::Time started = {};
    std::optional<json::Value> last = {};  // lastState.terminated
  };

  bool advance(base::Time now);
  bool advance_init(base::Time now);
  bool advance_apps(base::Time now);
  void start(Run& run, base::Time now);
  void end(Run& run, int exit_code, base::Time now);
  bool restarts(const Run& run) const;
  void back_off(Run& run, base::Time now);
  bool advance_stop(base::Time now);
  bool finish_if_done(base::Time now);
  void recover_run(Run& run, const json::Value& status, base::Time now);
  bool initialized() const;
  bool sandboxed() const;
  bool ready() const;
  json::Value container_status(const Run& run) const;
  json::Value terminated(const Run& run) const;
  json::Value statuses(bool init) const;

  PodAsk ask_;
  PodDevices devices_;
  RunTimes times_;
  std::vector<Run> runs_;  // init containers first
  bool always_ = false;
  bool on_failure_ = false;
  std::optional<base::Duration> run_for_;
  base::Duration init_run_for_;
  std::optional<base::Duration> stop_after_;
  std::optional<base::Duration> deadline_;
  base::Duration grace_;
  int exit_code_ = 0;
  int64_t generation_ = 0;

  bool admitted_ = false;
  bool stopping_ = false;
  bool over_ = false;
  bool held_ = false;
  bool killed_ =
      false;  // refused, past its deadline, or stopped before all its containers had started
  std::string reason_;
  std::string message_;
  std::string pod_ip_;
  std::string host_ip_;
  base::Time accepted_;
  std::optional<base::Time> begin_;  // when the first container starts
  std::optional<base::Time> initialized_at_;
  std::optional<base::Time> ready_at_;
  std::optional<base::Time> not_ready_at_;
  uint64_t revision_ = 0;
};

}  // namespace tessera::sim
