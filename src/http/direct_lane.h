// One connection of the direct client, and the exchange that it carries.
//
// Shape:   open() connects; begin() gives it an exchange, at any time when it has none. What becomes of it is told to the
//          owner through the hooks, once for each exchange.
// Threads: the loop's.
#pragma once

#include <netinet/in.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "http/client.h"
#include "http/event_loop.h"
#include "http/response_reader.h"
#include "http/transfer.h"
#include "http/transport.h"

namespace tessera::http {

// Where the server is.
struct Address {
  sockaddr_in6 socket{};  // large enough for IPv4 too
  socklen_t size = 0;
  std::string text;       // "127.0.0.1", as its certificate must name it
  std::string authority;  // "127.0.0.1:6443", for Host
  std::string prefix;     // of every path
  bool tls = false;
};
// None where the URL names no IP address.
std::optional<Address> address_of(const std::string& base_url);

// A request on its way, and who waits for it.
struct DirectExchange {
  uint64_t id = 0;
  ClientRequest request;
  std::function<void(base::Result<Response>)> done;  // of a call
  std::shared_ptr<StreamState> stream;               // of a stream
  std::string bytes;                                 // the request as it is sent
  base::Duration deadline;                           // of a call, on the loop's clock
  bool again = false;  // was sent before, on a connection that was gone
};

class DirectLane : public EventLoop::Source, public std::enable_shared_from_this<DirectLane> {
 public:
  struct Hooks {
    // The exchange is over. `reusable`: the lane waits for the next one, else it has closed.
    std::function<void(DirectLane&, std::unique_ptr<DirectExchange>, base::Result<Response>,
                       bool reusable)>
        finished;
    // A kept connection was closed before anything of the answer came.
    std::function<void(DirectLane&, std::unique_ptr<DirectExchange>)> stale;
    // A piece of a stream's body; false: read no more for now.
    std::function<bool(DirectExchange&, std::string)> chunk;
    // The server closed while nothing was under way.
    std::function<void(DirectLane&)> closed;
    std::string scratch;  // what is read goes through it
  };

  DirectLane(EventLoop& loop, const Address& address, const ClientOptions& options,
             SSL_CTX* context, Hooks& hooks)
      : loop_(loop), address_(address), options_(options), context_(context), hooks_(hooks) {}
  ~DirectLane() override = default;  // the descriptor goes with the transport
  DirectLane(const DirectLane&) = delete;
  DirectLane& operator=(const DirectLane&) = delete;

  // Connects and carries the exchange once that is done.
  void open(std::unique_ptr<DirectExchange> exchange);
  void begin(std::unique_ptr<DirectExchange> exchange);
  // Goes on reading a stream.
  void resume();
  void close();
  // Fails what took too long.
  void look_at(base::Duration now);
  bool idle() const { return step_ == Step::kIdle; }
  const DirectExchange* exchange() const { return exchange_.get(); }
  void on_ready(Ready ready) override;

 private:
  enum class Step : uint8_t { kConnecting, kHandshake, kSending, kReading, kIdle, kClosed };

  void advance(Ready ready);
  bool connected();
  bool shake_hands();
  bool send_some();
  bool read_some();
  void take(std::string_view bytes);
  void want(bool read, bool write) { loop_.set(fd_, read, write); }
  void finish();
  void fail(base::Code code, std::string_view reason, std::string_view mend = {});
  void ended(const IoResult& result);

  EventLoop& loop_;
  const Address& address_;
  const ClientOptions& options_;
  SSL_CTX* context_;
  Hooks& hooks_;
  int fd_ = -1;
  Step step_ = Step::kClosed;
  bool kept_ = false;  // has carried an exchange before
  bool held_ = false;  // a stream whose reader is behind
  std::unique_ptr<Transport> transport_;
  base::Duration connect_by_;
  std::unique_ptr<DirectExchange> exchange_;
  size_t sent_ = 0;
  std::optional<ResponseReader> reader_;
};

}  // namespace tessera::http
