#include "kube/http_client.h"

#include "json/parse.h"

namespace tessera::kube {
namespace {

constexpr size_t kLineBytesMax = size_t{64} << 20;
constexpr size_t kInternerSlots = 4096;

// The body of a refused watch comes as the error's text.
base::Status with_status_object(base::Status status) {
  if (status) return status;
  const auto body = json::parse(status.error().message);
  if (!body || (*body)["kind"].as_string() != "Status") return status;
  return base::error(error_of_status(*body));
}

// What a watch's callbacks share; outlives the subscription until the last callback.
struct WatchState {
  WatchState(Detail detail, std::shared_ptr<json::Interner> kept)
      : interner(std::move(kept)), lines(kLineBytesMax, detail, interner.get()) {}

  std::shared_ptr<json::Interner> interner;
  WatchLines lines;
  std::function<void(WatchEvent)> on_event;
  std::function<void(base::Status)> on_close;
  bool over = false;

  void close(base::Status status) {
    if (std::exchange(over, true)) return;
    on_close(std::move(status));
  }
  void feed(std::string_view chunk) {
    if (over) return;
    auto events = lines.feed(chunk);
    if (!events) {
      close(base::error(std::move(events).error()));
      return;
    }
    for (WatchEvent& event : *events) {
      if (over) return;  // dropped by the callback before
      on_event(std::move(event));
    }
  }
};

class Watch : public base::Subscription {
 public:
  explicit Watch(std::shared_ptr<WatchState> state) : state_(std::move(state)) {}
  ~Watch() override { state_->over = true; }
  void hold(std::unique_ptr<base::Subscription> stream) { stream_ = std::move(stream); }

 private:
  std::shared_ptr<WatchState> state_;
  std::unique_ptr<base::Subscription> stream_;
};

}  // namespace

HttpClient::HttpClient(http::ClientOptions options, base::Executor& executor, Detail detail)
    : executor_(executor),
      detail_(detail),
      interner_(detail == Detail::kLean ? std::make_shared<json::Interner>(kInternerSlots)
                                        : nullptr),
      http_(std::make_unique<http::Client>(std::move(options), executor)) {}

HttpClient::~HttpClient() = default;

void HttpClient::call(Request request, std::function<void(Reply)> done) {
  auto made = to_http(request, false);
  if (!made) {
    executor_.post(
        [done = std::move(done), error = std::move(made).error()] { done(base::error(error)); });
    return;
  }
  http_->call(std::move(*made), [done = std::move(done), detail = detail_,
                                 interner = interner_](base::Result<http::Response> response) {
    if (!response) {
      done(base::error(std::move(response).error()));
      return;
    }
    Reply reply = from_http(*response, detail);
    response->body = {};  // may be large
    if (reply && interner) share_parts(*interner, *reply);
    done(std::move(reply));
  });
}

std::unique_ptr<base::Subscription> HttpClient::watch(Request request,
                                                      std::function<void(WatchEvent)> on_event,
                                                      std::function<void(base::Status)> on_close) {
  request.verb = Verb::kList;
  auto state = std::make_shared<WatchState>(detail_, interner_);
  state->on_event = std::move(on_event);
  state->on_close = std::move(on_close);
  auto watch = std::make_unique<Watch>(state);
  auto made = to_http(request, true);
  if (!made) {
    executor_.post([state, error = std::move(made).error()] { state->close(base::error(error)); });
    return watch;
  }
  watch->hold(http_->stream(
      std::move(*made), [state](std::string chunk) { state->feed(chunk); },
      [state](base::Status status) { state->close(with_status_object(std::move(status))); }));
  return watch;
}

}  // namespace tessera::kube
