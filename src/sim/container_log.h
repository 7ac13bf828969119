// What a simulated container has written: made from its life, so that it is the same whenever it is asked for.
//
// Shape:   one line when it starts, steps while it runs (a tenth of tessera.dev/run-for apart, between a second and a
//          minute; without that every ten seconds), one line when it ends. Only the newest 10'000 lines are kept.
// Units:   times are whole seconds, as in the pod's status.
// Errors:  kBadRequest where there is no log (yet), in the kubelet's words.
// Threads: plain values.
// Source:  k8s.io/kubernetes pkg/kubelet (which run's log is meant), cri-client/pkg/logs (tail before since, limit after
//          the time stamp).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/container_log.h"
#include "kube/object.h"

namespace tessera::sim {

// One run of a container.
struct ContainerLife {
  std::string what;  // "container main of pod default/x on node n: image busybox"
  base::Time started;
  std::optional<base::Time> ended;
  int exit_code = 0;
  std::optional<base::Duration> run_for;
};

// The run that a query means, from the newest status.
base::Result<ContainerLife> life_of(const kube::Object& pod, const json::Value& status,
                                    const apiserver::LogQuery& query);

class ContainerLog {
 public:
  explicit ContainerLog(ContainerLife life);
  // How many lines there are by `now`, and the first that is kept.
  int64_t lines(base::Time now) const;
  base::Time time_of(int64_t line) const;
  std::string text_of(int64_t line) const;
  // When the line after those of `now` comes, if nothing happens before.
  std::optional<base::Time> next(base::Time now) const;
  const ContainerLife& life() const { return life_; }

 private:
  int64_t steps(base::Time until) const;

  ContainerLife life_;
  base::Duration period_;
  std::optional<int64_t> steps_max_;
};

// The part of a log that a query asks for, from one piece to the next.
class LogCursor {
 public:
  LogCursor(const ContainerLog& log, const apiserver::LogQuery& query, base::Time now);
  // What has come since the last call.
  std::string take(const ContainerLog& log, base::Time now);
  // The limit of bytes is reached.
  bool full() const { return left_ && *left_ == 0; }

 private:
  std::string stamped(const ContainerLog& log, int64_t line) const;

  bool timestamps_;
  std::optional<base::Time> since_;
  std::optional<int64_t> left_;
  int64_t at_ = 0;
};

}  // namespace tessera::sim
