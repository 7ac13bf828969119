// The answer to one request on its way from the handler (any thread) to the connection (its loop's
// thread).
//
// Shape:   the handler's side is ExchangeResponder; it collects output here and wakes the
//          connection, which takes it.
// Threads: any; the mutex is never held across a callback.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http/server.h"

namespace tessera::http {

// How the answer is framed: known from the request.
struct Framing {
  bool chunked = true;     // else a stream ends with the connection (HTTP/1.0)
  bool head_only = false;  // HEAD: headers without the body
};

class Exchange {
 public:
  // `wake` makes the connection call take(); it is called under the mutex and must only post.
  Exchange(Framing framing, size_t backlog_max, std::function<void()> wake);

  // The handler's side.
  void send(Response response);
  void begin_stream(int status, std::string content_type, Headers headers);
  bool write(std::string chunk);
  void end_stream();
  void on_closed(std::function<void()> callback);
  // No one can answer any more.
  void abandon();

  // The connection's side.
  struct Output {
    std::optional<Response> response;     // a whole answer
    std::optional<Response> stream_head;  // status and headers of a stream
    std::string bytes;                    // of the stream, framed
    bool ended = false;
    bool cut = false;  // close the connection without an end
  };
  Output take();
  // What of the taken output the socket has not accepted yet.
  void set_unsent(size_t bytes);
  bool streaming() const;
  // The peer is gone.
  void close();

 private:
  enum class State { kOpen, kStreaming, kDone, kGone };
  void wake_once();

  const Framing framing_;
  const size_t backlog_max_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  State state_ = State::kOpen;
  bool woken_ = false;
  bool cut_ = false;
  std::optional<Response> response_;
  std::optional<Response> stream_head_;
  std::string pending_;
  size_t unsent_ = 0;
  std::vector<std::function<void()>> callbacks_;
};

// What the handler holds; the last copy to go abandons the exchange.
class ExchangeResponder : public Responder {
 public:
  explicit ExchangeResponder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~ExchangeResponder() override { exchange_->abandon(); }
  ExchangeResponder(const ExchangeResponder&) = delete;
  ExchangeResponder& operator=(const ExchangeResponder&) = delete;

  void send(Response response) override { exchange_->send(std::move(response)); }
  void begin_stream(int status, std::string content_type, Headers headers) override {
    exchange_->begin_stream(status, std::move(content_type), std::move(headers));
  }
  bool write(std::string chunk) override { return exchange_->write(std::move(chunk)); }
  void end_stream() override { exchange_->end_stream(); }
  void on_closed(std::function<void()> callback) override {
    exchange_->on_closed(std::move(callback));
  }

 private:
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace tessera::http
