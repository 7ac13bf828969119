// The client of a component of which only one may write: reads always go through, writes only while `leading` says so.
//
// Shape:   reads and watches go to one client, writes to another (which may be the same). At most in_flight_max writes are
//          handed on at once; each of the others is asked for again when its turn has come, so that no write waits between
//          the question and the wire. After `timeout` a write is given up: its caller hears kTimeout, and a late answer is
//          dropped. The client behind has to give it up by then too. Without `leading` everything goes straight through.
// Errors:  kUnavailable for a write while somebody else leads; it has not been sent.
// Threads: the executor's, which must be that of the clients.
#pragma once

#include <functional>
#include <memory>

#include "base/executor.h"
#include "kube/client.h"

namespace tessera::scheduler {

class GuardedClient : public kube::Client {
 public:
  struct Options {
    std::function<bool()> leading{};
    base::Duration timeout = base::seconds(4);
    size_t in_flight_max = 16;
  };

  GuardedClient(kube::Client& reads, kube::Client& writes, base::Executor& executor,
                Options options);
  ~GuardedClient() override;
  void call(kube::Request request, std::function<void(kube::Reply)> done) override;
  std::unique_ptr<base::Subscription> watch(kube::Request request,
                                            std::function<void(kube::WatchEvent)> on_event,
                                            std::function<void(base::Status)> on_close) override;
  // Writes that have been handed on and neither answered nor given up.
  size_t writing() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera::scheduler
