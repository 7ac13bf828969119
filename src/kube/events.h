// Records events about objects ("Scheduled", "FailedScheduling") as core/v1 Events, without
// flooding the API.
//
// Shape:   the same event about the same object within ten minutes raises the count of one Event;
//          more than ten like events (same object and reason, other texts) within that time are
//          folded into one "(combined from similar events)". Each object may cause 25 events at
//          once and one every 5 minutes after that; what is over is dropped. A few are written at a
//          time, so that a burst of them stands in nobody's way; past 4096 that wait, more are dropped.
// Errors:  a refused write is logged and dropped; an Event that has gone is written anew.
// Threads: the executor of the client.
// Source:  client-go tools/record (semantics and limits).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"
#include "kube/client.h"

namespace tessera::kube {

class EventRecorder {
 public:
  // `component` is the source ("tessera-scheduler"), `host` the node that it is about or runs on,
  // may be empty.
  EventRecorder(Client& client, const base::Clock& clock, base::Random random,
                std::string component, std::string host = {});
  ~EventRecorder();

  // An object needs apiVersion, kind and metadata.
  void normal(const Object& about, std::string_view reason, std::string_view message);
  void warning(const Object& about, std::string_view reason, std::string_view message);

  size_t dropped() const;  // over the limits, since the start

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::kube
