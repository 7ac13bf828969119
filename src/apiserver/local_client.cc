#include "apiserver/local_client.h"

#include <atomic>
#include <utility>

namespace tessera::apiserver {
namespace {

// Lives as long as the caller wants the watch; what is on its way to the caller's executor looks here first.
struct Tap {
  std::function<void(kube::WatchEvent)> on_event;
  std::function<void(base::Status)> on_close;
  std::atomic<bool> open{true};
};

class TapHandle : public base::Subscription {
 public:
  explicit TapHandle(std::shared_ptr<Tap> tap) : tap_(std::move(tap)) {}
  ~TapHandle() override { tap_->open = false; }
  std::unique_ptr<base::Subscription> inner;

 private:
  std::shared_ptr<Tap> tap_;
};

}  // namespace

LocalClient::LocalClient(Api& api, base::Executor& executor, Caller caller)
    : api_(api), executor_(executor), caller_(std::move(caller)) {}

void LocalClient::call(kube::Request request, std::function<void(kube::Reply)> done) {
  api_.call(caller_, std::move(request),
            [&executor = executor_, done = std::move(done)](ApiReply reply) {
              executor.post([done, result = std::move(reply.result)] { done(result); });
            });
}

std::unique_ptr<base::Subscription> LocalClient::watch(
    kube::Request request, std::function<void(kube::WatchEvent)> on_event,
    std::function<void(base::Status)> on_close) {
  auto tap = std::make_shared<Tap>();
  tap->on_event = std::move(on_event);
  tap->on_close = std::move(on_close);
  auto close = [&executor = executor_, tap](const base::Status& why) {
    executor.post([tap, why] {
      if (tap->open.exchange(false) && tap->on_close) tap->on_close(why);
    });
  };
  auto handle = std::make_unique<TapHandle>(tap);
  auto inner = api_.watch(
      caller_, std::move(request),
      [&executor = executor_, tap](kube::WatchEvent event) {
        executor.post([tap, event = std::move(event)] {
          if (tap->open) tap->on_event(event);
        });
      },
      close);
  if (inner) {
    handle->inner = std::move(*inner);
  } else {
    close(base::error(inner.error()));
  }
  return handle;
}

}  // namespace tessera::apiserver
