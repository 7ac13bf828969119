#include "apiserver/front_watch.h"

#include <mutex>
#include <set>
#include <utility>

#include "apiserver/front_event_bytes.h"
#include "apiserver/status_body.h"

namespace tessera::apiserver {
namespace {

using Held = std::shared_ptr<base::Subscription>;

// One watcher's response. Events may come before it has begun: the Api may call back before watch()
// returns.
class Stream {
 public:
  Stream(std::shared_ptr<http::Responder> responder, WatchForm form)
      : form_(std::move(form)), responder_(std::move(responder)) {}

  const WatchForm& form() const { return form_; }

  // Only the first event names a Table's columns. Called by one event at a time.
  bool take_first() { return std::exchange(first_, false); }

  // False when the peer is gone.
  bool write(const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    if (begun_) return responder_->write(bytes);
    early_ += bytes;
    return true;
  }

  // False when the stream was ended before it began: end it again now.
  bool begin(http::Headers headers) {
    const std::lock_guard lock(mutex_);
    if (ended_) return true;
    responder_->begin_stream(200, "application/json", std::move(headers));
    begun_ = true;
    if (!early_.empty()) responder_->write(std::move(early_));
    return !ends_at_begin_;
  }

  void hold(Held subscription) {
    const std::lock_guard lock(mutex_);
    subscription_ = std::move(subscription);
  }

  // Gives the subscription to the caller, to be dropped outside of all locks.
  Held end() {
    const std::lock_guard lock(mutex_);
    if (ended_) return nullptr;
    if (!begun_) {
      ends_at_begin_ = true;
      return nullptr;
    }
    ended_ = true;
    responder_->end_stream();
    responder_.reset();
    return std::move(subscription_);
  }

 private:
  const WatchForm form_;
  bool first_ = true;
  std::mutex mutex_;
  std::shared_ptr<http::Responder> responder_;
  Held subscription_;
  std::string early_;
  bool begun_ = false;
  bool ends_at_begin_ = false;
  bool ended_ = false;
};

}  // namespace

struct WatchStreams::Shared {
  const base::Clock* clock = nullptr;
  EventBytes bytes;
  std::mutex mutex;
  std::set<std::shared_ptr<Stream>> streams;

  void add(const std::shared_ptr<Stream>& stream) {
    const std::lock_guard lock(mutex);
    streams.insert(stream);
  }

  void remove(const std::shared_ptr<Stream>& stream) {
    const std::lock_guard lock(mutex);
    streams.erase(stream);
  }

  void finish(const std::shared_ptr<Stream>& stream) {
    if (const Held held = stream->end()) remove(stream);
  }

  void send(const std::shared_ptr<Stream>& stream, const kube::WatchEvent& event) {
    const auto line = bytes.encode(event, stream->form(), stream->take_first(), clock->now());
    if (!stream->write(*line)) finish(stream);
  }

  void send_error(const std::shared_ptr<Stream>& stream, const base::Error& error) {
    send(stream, {kube::WatchEvent::Type::kError, kube::Object(status_body(error))});
  }

  void close(const std::shared_ptr<Stream>& stream, const base::Status& status) {
    // A server that stops just ends its watches; clients come back.
    if (!status && status.error().code != base::Code::kUnavailable)
      send_error(stream, status.error());
    finish(stream);
  }
};

WatchStreams::WatchStreams(Api& api) : api_(api), shared_(std::make_shared<Shared>()) {
  shared_->clock = &api.clock();
}

WatchStreams::~WatchStreams() {
  std::set<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard lock(shared_->mutex);
    streams.swap(shared_->streams);
  }
  for (const auto& stream : streams) stream->end();
}

base::Status WatchStreams::start(const Caller& caller, kube::Request request, const WatchForm& form,
                                 std::shared_ptr<http::Responder> responder,
                                 http::Headers headers) {
  auto stream = std::make_shared<Stream>(responder, form);
  std::weak_ptr<Stream> weak_stream(stream);
  std::weak_ptr<Shared> weak_shared(shared_);
  const auto with_both = [weak_stream, weak_shared](auto&& act) {
    const auto shared = weak_shared.lock();
    const auto live = weak_stream.lock();
    if (shared && live) act(*shared, live);
  };
  shared_->add(stream);
  auto watching = api_.watch(
      caller, std::move(request),
      [with_both](kube::WatchEvent event) {
        with_both([&](Shared& shared, const auto& live) { shared.send(live, event); });
      },
      [with_both](base::Status status) {
        with_both([&](Shared& shared, const auto& live) { shared.close(live, status); });
      });
  const auto in_stream = [](base::Code code) {
    return code == base::Code::kExpired || code == base::Code::kTimeout;
  };
  if (!watching && !in_stream(watching.error().code)) {
    shared_->remove(stream);
    return base::error(std::move(watching).error());
  }
  if (watching) {
    stream->hold(std::move(*watching));
  } else {
    stream->hold(
        std::make_shared<base::Subscription>());  // nothing to drop, but an end to wait for
    shared_->close(stream, base::error(std::move(watching).error()));
  }
  if (!stream->begin(std::move(headers))) shared_->finish(stream);
  responder->on_closed(
      [with_both] { with_both([](Shared& shared, const auto& live) { shared.finish(live); }); });
  return {};
}

}  // namespace tessera::apiserver
