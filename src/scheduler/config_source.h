// Where the SchedulerConfig comes from, and what changes of it do to a scheduler that runs.
//
// Shape:   on_config runs for the first good version and for each later one, on_refused for each that is bad; the last good one
//          stays in force. A text that stays the same is told once. Two sources:
//          - a file, looked at every 2 s by content, so that it may be swapped by rename or, as a ConfigMap's mount, by a
//            symbolic link. A new text counts when two looks in a row have found it: a file that is written in place is not
//            read in the middle.
//          - one ConfigMap, key config.yaml, by watch.
//          A version that differs in a field that needs a restart (config.h) is refused as a whole; once that is taken back,
//          on_config runs.
// Errors:  start() of a file answers kNotFound, kForbidden, kTooLarge, kBadRequest or kInvalid where the first version is bad,
//          and has told on_config of a good one when it returns. start() of a ConfigMap never fails: a first version that is
//          missing or bad goes to on_refused, and on_config waits for a good one.
// Threads: the executor's. Handlers do not destroy the source; once it is destroyed none runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/random.h"
#include "base/result.h"
#include "kube/client.h"
#include "scheduler/config.h"

namespace tessera::scheduler {

inline constexpr std::string_view kConfigKey = "config.yaml";

class ConfigSource {
 public:
  struct Handlers {
    std::function<void(const SchedulerConfig&)> on_config;
    std::function<void(const base::Error&)> on_refused;
  };

  static std::unique_ptr<ConfigSource> from_file(base::Executor& executor, std::string path,
                                                 Handlers handlers);
  // `client` calls back on `executor`.
  static std::unique_ptr<ConfigSource> from_config_map(kube::Client& client,
                                                       base::Executor& executor,
                                                       base::Random random, std::string ns,
                                                       std::string name, Handlers handlers);

  virtual ~ConfigSource() = default;
  // Once.
  virtual base::Status start() = 0;
};

}  // namespace tessera::scheduler
