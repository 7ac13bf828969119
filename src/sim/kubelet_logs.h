// The logs that are being read of the pods of simulated nodes.
//
// Shape:   read() answers what there is; a reader that follows gets the rest by feed(), which the kubelets call when
//          something happens to the pod, and by a timer for the next line. It ends with the run of the container.
// Threads: all on one executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "sim/container_log.h"

namespace tessera::sim {

class LogReadings : public std::enable_shared_from_this<LogReadings> {
 public:
  // The newest object and status of a pod; nothing where it is gone or its node does not answer.
  struct Seen {
    kube::Object pod;
    json::Value status;
  };
  using Look = std::function<std::optional<Seen>(const std::string& key, const std::string& uid)>;

  LogReadings(base::Executor& executor, const base::Clock& clock, Look look)
      : executor_(executor), clock_(clock), look_(std::move(look)) {}

  void read(apiserver::LogQuery query, std::shared_ptr<apiserver::LogReader> reader);
  void feed(const std::string& key);
  size_t size() const { return readings_.size(); }

 private:
  struct Reading;
  using ReadingPtr = std::shared_ptr<Reading>;

  bool advance(Reading& reading);
  void wait(const std::string& key, const ReadingPtr& reading, const ContainerLog& log);

  base::Executor& executor_;
  const base::Clock& clock_;
  const Look look_;
  std::multimap<std::string, ReadingPtr> readings_;  // by "namespace/name"
};

}  // namespace tessera::sim
