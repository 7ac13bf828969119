#include "scheduler/guarded_client.h"

#include <deque>

namespace tessera::scheduler {

using base::Code;

struct GuardedClient::State : std::enable_shared_from_this<GuardedClient::State> {
  struct Write {
    kube::Request request;
    std::function<void(kube::Reply)> done;
  };

  State(kube::Client& r, kube::Client& w, base::Executor& e, Options o)
      : reads(r), writes(w), executor(e), options(std::move(o)) {}

  void pump() {
    while (!waiting.empty() && writing < options.in_flight_max) {
      Write write = std::move(waiting.front());
      waiting.pop_front();
      if (options.leading()) {
        send(std::move(write));
      } else {
        executor.post([done = std::move(write.done)] {
          done(base::error(Code::kUnavailable, "not sent: another scheduler leads"));
        });
      }
    }
  }

  void send(Write write) {
    ++writing;
    auto answered = [weak = weak_from_this(), done = std::move(write.done),
                     over = std::make_shared<bool>(false)](kube::Reply reply) {
      if (std::exchange(*over, true)) return;
      if (const auto self = weak.lock()) {
        --self->writing;
        self->pump();
      }
      done(std::move(reply));
    };
    executor.post_after(options.timeout,
                        [answered] { answered(base::error(Code::kTimeout, "no answer in time")); });
    writes.call(std::move(write.request), answered);
  }

  kube::Client& reads;
  kube::Client& writes;
  base::Executor& executor;
  Options options;
  std::deque<Write> waiting;
  size_t writing = 0;
};

GuardedClient::GuardedClient(kube::Client& reads, kube::Client& writes, base::Executor& executor,
                             Options options)
    : state_(std::make_shared<State>(reads, writes, executor, std::move(options))) {}

GuardedClient::~GuardedClient() = default;

void GuardedClient::call(kube::Request request, std::function<void(kube::Reply)> done) {
  const bool reads = request.verb == kube::Verb::kGet || request.verb == kube::Verb::kList;
  if (reads) return state_->reads.call(std::move(request), std::move(done));
  if (!state_->options.leading) return state_->writes.call(std::move(request), std::move(done));
  state_->waiting.push_back({std::move(request), std::move(done)});
  state_->pump();
}

std::unique_ptr<base::Subscription> GuardedClient::watch(
    kube::Request request, std::function<void(kube::WatchEvent)> on_event,
    std::function<void(base::Status)> on_close) {
  return state_->reads.watch(std::move(request), std::move(on_event), std::move(on_close));
}

size_t GuardedClient::writing() const {
  return state_->writing;
}

}  // namespace tessera::scheduler
