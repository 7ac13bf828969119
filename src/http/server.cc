#include "http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "http/connection.h"

namespace tessera::http {
namespace {

using base::Code;

constexpr int kAcceptsMax = 64;  // in one turn of the loop

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

base::Result<std::pair<SocketAddress, socklen_t>> parse_address(const std::string& address,
                                                                uint16_t port) {
  SocketAddress out{};
  if (inet_pton(AF_INET, address.c_str(), &out.v4.sin_addr) == 1) {
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = htons(port);
    return std::pair(out, socklen_t{sizeof out.v4});
  }
  if (inet_pton(AF_INET6, address.c_str(), &out.v6.sin6_addr) == 1) {
    out.v6.sin6_family = AF_INET6;
    out.v6.sin6_port = htons(port);
    return std::pair(out, socklen_t{sizeof out.v6});
  }
  return base::error(Code::kBadRequest,
                     "cannot listen on \"{}\": give an IP address such as 127.0.0.1 or ::1",
                     address);
}

tl::unexpected<base::Error> listen_error(const ServerOptions& options, int reason) {
  switch (reason) {
    case EADDRINUSE:
      return base::error(Code::kUnavailable,
                         "port {} on {} is already in use: stop the program that listens there or "
                         "choose another port (0 takes any free one)",
                         options.port, options.address);
    case EACCES:
      return base::error(Code::kForbidden,
                         "port {} on {} may not be opened: ports below 1024 need privileges, "
                         "choose a higher one",
                         options.port, options.address);
    case EADDRNOTAVAIL:
      return base::error(Code::kUnavailable,
                         "cannot listen on {}: this machine does not have that address",
                         options.address);
    default:
      return base::error(Code::kUnavailable, "cannot listen on port {} of {}: {}", options.port,
                         options.address, std::strerror(reason));
  }
}

base::Result<int> listen_on(const ServerOptions& options) {
  TS_TRY(const auto bound, parse_address(options.address, options.port));
  const auto& [address, size] = bound;
  const int fd = ::socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return listen_error(options, errno);
  const int one = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(fd, &address.any, size) != 0 || ::listen(fd, SOMAXCONN) != 0) {
    const int reason = errno;
    ::close(fd);
    return listen_error(options, reason);
  }
  return fd;
}

uint16_t port_of(int fd) {
  SocketAddress address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, &address.any, &size) != 0) return 0;
  return ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
}

void tune(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // A watch whose peer vanished without a word ends after about two minutes.
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  const int idle_s = 60;
  const int interval_s = 20;
  const int probes = 3;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

// Accepts and deals connections out to the lanes in turn.
class Listener : public EventLoop::Source {
 public:
  Listener(int fd, std::shared_ptr<ServerShared> shared, std::vector<std::shared_ptr<Lane>> lanes)
      : fd_(fd), shared_(std::move(shared)), lanes_(std::move(lanes)) {}
  ~Listener() override { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void on_ready(Ready) override {
    for (int i = 0; i < kAcceptsMax; ++i) {
      const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        take(fd);
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        base::log_warn("cannot accept a connection: {}", std::strerror(errno));
        lanes_[0]->loop.set(fd_, false, false);  // until the next tick
        return;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return;
      }
    }
  }

  void resume() { lanes_[0]->loop.set(fd_, true, false); }

 private:
  void take(int fd) {
    if (shared_->connections >= shared_->options.connections_max) {
      base::log_warn("connection refused: {} are open, which is the limit",
                     shared_->options.connections_max);
      ::close(fd);
      return;
    }
    ++shared_->connections;
    tune(fd);
    const std::shared_ptr<Lane> lane = lanes_[next_++ % lanes_.size()];
    if (lane == lanes_[0]) {
      Connection::open(shared_, lane, fd);
    } else if (!lane->loop.post(
                   [shared = shared_, lane, fd] { Connection::open(shared, lane, fd); })) {
      --shared_->connections;
      ::close(fd);
    }
  }

  const int fd_;
  const std::shared_ptr<ServerShared> shared_;
  const std::vector<std::shared_ptr<Lane>> lanes_;
  size_t next_ = 0;
};

// Often enough that a time limit is kept to within a quarter, and rarely enough to cost nothing at
// rest.
base::Duration tick_period(const ServerOptions& options) {
  const int64_t shortest = std::min(options.request_timeout.ns, options.idle_timeout.ns);
  return base::nanos(std::clamp(shortest / 4, base::millis(5).ns, base::seconds(1).ns));
}

}  // namespace

std::string_view Request::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return {};
}

struct Server::Impl {
  std::shared_ptr<ServerShared> shared = std::make_shared<ServerShared>();
  std::vector<std::shared_ptr<Lane>> lanes;
  std::shared_ptr<Listener> listener;
  int listener_fd = -1;
  uint16_t port = 0;

  base::Status start();
  void stop();
};

base::Status Server::Impl::start() {
  const ServerOptions& options = shared->options;
  if (!lanes.empty()) return base::error(Code::kInternal, "the server was started before");
  if (!options.certificate_pem.empty()) {
    TS_TRY(SslContextPtr context, make_server_context(options));
    shared->tls_now = std::move(context);
  }
  TS_TRY(listener_fd, listen_on(options));
  port = port_of(listener_fd);
  for (int i = 0; i < std::max(1, options.threads); ++i) {
    lanes.push_back(std::make_shared<Lane>());
  }
  listener = std::make_shared<Listener>(listener_fd, shared, lanes);
  for (const auto& lane : lanes) {
    const bool first = lane == lanes[0];
    lane->loop.every(tick_period(options), [raw = lane.get(), first, accepts = listener.get()] {
      raw->check_deadlines();
      if (first) accepts->resume();
    });
    auto started = lane->loop.start("http");
    if (!started) {
      stop();
      return started;
    }
  }
  lanes[0]->loop.post([first = lanes[0], accepts = listener, fd = listener_fd] {
    if (!first->loop.add(fd, accepts, true, false)) {
      base::log_error("cannot wait for connections: {}", std::strerror(errno));
    }
  });
  return {};
}

void Server::Impl::stop() {
  if (lanes.empty()) return;
  lanes[0]->loop.post([first = lanes[0], fd = listener_fd] { first->loop.remove(fd); });
  for (const auto& lane : lanes) {
    lane->loop.post([lane] { lane->close_all(); });
  }
  for (const auto& lane : lanes) lane->loop.stop();
  listener.reset();
}

Server::Server(ServerOptions options, Handler handler) : impl_(std::make_unique<Impl>()) {
  impl_->shared->options = std::move(options);
  impl_->shared->handler = std::move(handler);
}

Server::~Server() {
  stop();
}

base::Status Server::start() {
  return impl_->start();
}

uint16_t Server::port() const {
  return impl_->port;
}

base::Status Server::use_certificate(const std::string& certificate_pem,
                                     const std::string& private_key_pem) {
  ServerOptions options = impl_->shared->options;
  options.certificate_pem = certificate_pem;
  options.private_key_pem = private_key_pem;
  TS_TRY(SslContextPtr context, make_server_context(options));
  const std::lock_guard lock(impl_->shared->tls_mutex);
  impl_->shared->tls_now = std::move(context);
  return {};
}

void Server::stop() {
  impl_->stop();
}

}  // namespace tessera::http
