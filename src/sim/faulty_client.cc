#include "sim/faulty_client.h"

#include <utility>

namespace tessera::sim {
namespace {

bool writes(kube::Verb verb) {
  return verb != kube::Verb::kGet && verb != kube::Verb::kList;
}

// A watch whose end may come from either side. The inner watch is dropped with the last holder.
struct Link : base::Subscription {
  struct State {
    std::unique_ptr<base::Subscription> inner;
    std::function<void(kube::WatchEvent)> on_event;
    std::function<void(base::Status)> on_close;
    bool open = true;
    void close(base::Status why) {
      if (!std::exchange(open, false)) return;
      auto callback = std::exchange(on_close, nullptr);
      inner.reset();
      callback(std::move(why));
    }
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  ~Link() override {
    state->open = false;
    state->inner.reset();
  }
};

}  // namespace

FaultyClient::FaultyClient(kube::Client& inner, base::Executor& executor, base::Random random,
                           const NetworkFaults& faults)
    : inner_(inner), executor_(executor), random_(random), faults_(faults) {}

base::Duration FaultyClient::delay() {
  if (faults_.delay_max.ns <= 0) return {};
  return base::nanos(
      static_cast<int64_t>(random_.below(static_cast<uint64_t>(faults_.delay_max.ns))));
}

void FaultyClient::call(kube::Request request, std::function<void(kube::Reply)> done) {
  auto refuse = [&](base::Code code, std::string_view what) {
    ++injected_;
    executor_.post_after(delay(), [done, error = base::Error{code, std::string(what), {}}] {
      done(tl::unexpected(error));
    });
  };
  if (random_.chance(faults_.refuse))
    return refuse(base::Code::kUnavailable, "connection refused (injected)");
  if (writes(request.verb) && request.verb != kube::Verb::kCreate &&
      random_.chance(faults_.conflict)) {
    return refuse(base::Code::kConflict, "the object has been modified (injected)");
  }
  const bool lose = random_.chance(faults_.lose_reply);
  injected_ += lose ? 1 : 0;
  const base::Duration back = delay();
  executor_.post_after(
      delay(), [this, request = std::move(request), done = std::move(done), lose, back]() mutable {
        auto seen = request;
        inner_.call(std::move(request), [this, seen = std::move(seen), done = std::move(done), lose,
                                         back](kube::Reply reply) mutable {
          if (reply && writes(seen.verb) && on_acknowledged) on_acknowledged(seen, *reply);
          if (lose) reply = base::error(base::Code::kTimeout, "no answer in time (injected)");
          if (back.ns == 0) return done(std::move(reply));
          executor_.post_after(back, [done = std::move(done), reply = std::move(reply)]() mutable {
            done(std::move(reply));
          });
        });
      });
}

std::unique_ptr<base::Subscription> FaultyClient::watch(
    kube::Request request, std::function<void(kube::WatchEvent)> on_event,
    std::function<void(base::Status)> on_close) {
  auto link = std::make_unique<Link>();
  link->state->on_event = std::move(on_event);
  link->state->on_close = std::move(on_close);
  std::weak_ptr<Link::State> weak = link->state;
  link->state->inner = inner_.watch(
      std::move(request),
      [this, weak](kube::WatchEvent event) {
        auto state = weak.lock();
        if (!state || !state->open) return;
        if (!random_.chance(faults_.break_watch)) return state->on_event(std::move(event));
        ++injected_;
        // Closed from a task of its own: the inner watch is in the middle of calling us.
        executor_.post([weak] {
          if (auto later = weak.lock()) {
            later->close(base::error(base::Code::kUnavailable, "connection reset (injected)"));
          }
        });
        state->on_event = [](const kube::WatchEvent&) {};
      },
      [weak](base::Status why) {
        if (auto state = weak.lock()) state->close(std::move(why));
      });
  return link;
}

}  // namespace tessera::sim
